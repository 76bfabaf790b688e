"""Dates as people write them: found in the first rows, read in every later one, and written again."""

from __future__ import annotations

import datetime as dt
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credo.core.errors import FormatError
from credo.tables import Chunk, ColumnSpec, Encoder, Schema, infer_schema
from credo.tables.cells import to_numbers
from credo.tables.clock import Clock
from credo.tables.infer import late_column
from credo.tables.styles import Style, find_date_style, numbered_times

EPOCH = dt.datetime(1970, 1, 1)
DAYS = [dt.datetime(2023, 1, 31, 15, 4, 5) + dt.timedelta(days=day) for day in range(40)]
FORMS = [
    ("%d.%m.%Y", "day first"),
    ("%-d.%-m.%Y", "day first"),
    ("%d.%m.%y", "day first"),
    ("%m/%d/%Y", "month first"),
    ("%d/%m/%Y", "day first"),
    ("%m/%d/%y", "month first"),
    ("%d-%m-%Y", "day first"),
    ("%Y/%m/%d", ""),
    ("%Y.%m.%d", ""),
    ("%d %b %Y", ""),
    ("%d-%b-%y", ""),
    ("%B %d, %Y", ""),
    ("%A, %d %B %Y", ""),
    ("%Y%m%d", ""),
    ("%m/%d/%Y %I:%M %p", "month first"),
    ("%-m/%-d/%Y %-I:%M:%S %p", "month first"),
    ("%d.%m.%Y %H:%M", "day first"),
    ("%a, %d %b %Y %H:%M:%S +0100", ""),
    ("%a, %d %b %Y %H:%M:%S GMT", ""),
    ("%Y/%m/%d %H:%M:%S-05:00", ""),
    ("%Y%m%d%H%M%S", ""),
]


def parsed(cell: object, form: str) -> dt.datetime:
    """The time of a cell, without its zone, as Python reads it."""
    return dt.datetime.strptime(str(cell), form.replace("%-", "%"))


def read(cells: list[object], name: str = "day") -> tuple[Schema, np.ndarray, list[str]]:
    """The schema of a column by its first cells, its seconds since 1970, and why rows were skipped."""
    y = [float(row % 7) + 0.5 for row in range(len(cells))]
    chunk = Chunk({name: cells, "x": y, "y": y}, np.arange(2, len(cells) + 2))
    first = chunk.part(0, min(len(cells), 40))
    schema = Schema.from_dict(json.loads(json.dumps(infer_schema(first, "y").to_dict())))
    encoder = Encoder(schema, standardise=False)
    _, _, _, report = encoder.encode(encoder.initial(), chunk)
    seconds = encoder.complete(chunk).numbers[:, 0] + schema.columns[0].origin
    return schema, seconds, [str(row) for row in report.bad]


@pytest.mark.parametrize(("form", "order"), FORMS)
def test_dates_are_read_by_the_style_of_their_column_and_written_again(form: str, order: str) -> None:
    cells: list[object] = [day.strftime(form) for day in DAYS]
    wanted = np.array([(parsed(cell, form) - EPOCH).total_seconds() for cell in cells])
    wanted -= 3600.0 * (1 if form.endswith("+0100") else -5 if form.endswith("-05:00") else 0)
    schema, seconds, bad = read(cells)
    assert schema.columns[0].kind == "datetime" and not bad
    np.testing.assert_array_equal(seconds, wanted)
    assert f"column 'day' holds dates{', ' if order else ''}{order}: '" in " ".join(schema.notes)
    clock = Clock.infer("day", cells)
    times = clock.read(cells)
    assert clock.texts(times.ticks, float(times.offset[0])) == cells and clock.words == "every day"
    assert Clock.from_dict(json.loads(json.dumps(clock.to_dict()))) == clock


MONTHS = [(2020 + month // 12, month % 12 + 1) for month in range(60)]
QUARTERS = [(2010 + quarter // 4, quarter % 4 + 1) for quarter in range(60)]


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([f"2023-W{week:02d}" for week in range(1, 53)], "every week"),
        ([f"2023W{week:02d}" for week in range(1, 53)], "every week"),
        ([f"{year}Q{quarter}" for year, quarter in QUARTERS], "every quarter"),
        ([f"{year}-Q{quarter}" for year, quarter in QUARTERS], "every quarter"),
        ([f"Q{quarter} {year}" for year, quarter in QUARTERS], "every quarter"),
        ([f"{year}-{month:02d}" for year, month in MONTHS], "every month"),
        ([f"{month:02d}/{year}" for year, month in MONTHS], "every month"),
        ([f"{dt.date(year, month, 1):%b %Y}" for year, month in MONTHS], "every month"),
        ([str(1675159200 + 3600 * hour) for hour in range(60)], "every hour"),
        ([str(1675159200000 + 3600000 * hour) for hour in range(60)], "every hour"),
        ([f"{day:%Y-%m-%d %H:%M:%S}" for day in DAYS], "every day"),
        ([f"{day:%Y-%m-%dT%H:%M:%SZ}" for day in DAYS], "every day"),
    ],
)
def test_weeks_quarters_months_and_seconds_are_times(cells: list[object], words: str) -> None:
    clock = Clock.infer("time", cells[:-1])
    assert clock.words == words and clock.read(cells).ticks.tolist() == list(range(len(cells)))
    assert clock.texts(np.arange(len(cells)), 0.0) == cells
    schema, seconds, bad = read(cells, "time")
    assert schema.columns[0].kind == "datetime" and not bad and (np.diff(seconds) > 0).all()


def test_all_rows_decide_which_comes_first_and_the_default_is_said() -> None:
    early: list[object] = [f"0{month}/0{day}/2023" for month in range(1, 6) for day in range(1, 8)]
    schema, seconds, _ = read(early)
    assert seconds[1] - seconds[0] == 86400.0
    assert schema.notes == (
        "column 'day' holds dates, month first: '01/02/2023' is 2023-01-02; no row says which comes first, "
        "so write them as 2023-01-02 if this is wrong",
    )
    schema, seconds, _ = read([*early, "13/01/2023"])
    assert seconds[7] - seconds[0] == 86400.0
    assert schema.notes == ("column 'day' holds dates, day first: '13/01/2023' is 2023-01-13",)
    dots: list[object] = [str(cell).replace("/", ".") for cell in early]
    assert "day first: '01.02.2023' is 2023-02-01; no row says" in read(dots)[0].notes[0]


def test_a_later_cell_that_does_not_fit_is_a_bad_row_and_an_empty_one_is_missing() -> None:
    cells: list[object] = [day.strftime("%d.%m.%Y") for day in DAYS]
    _, seconds, bad = read([*cells, "2023-05-01", "05/01/2023", "31.02.2023", "", "1.5.2023 8:30"])
    assert bad == [
        f"line {line} holds {cell!r} in the datetime column 'day'"
        for line, cell in ((42, "2023-05-01"), (43, "05/01/2023"), (44, "31.02.2023"))
    ]
    assert np.isnan(seconds[43]) and seconds[44] == (dt.datetime(2023, 5, 1, 8, 30) - EPOCH).total_seconds()


def test_numbers_are_dates_only_where_name_or_cells_say_so() -> None:
    days: list[object] = [int(day.strftime("%Y%m%d")) for day in DAYS]

    def column(name: str, cells: list[object]) -> ColumnSpec:
        return read(cells, name)[0].columns[0]

    assert column("day", days).kind == column("x1", list(map(float, map(str, days)))).kind == "datetime"
    assert column("price", days).kind == "numeric"
    assert column("x1", [20230131 + 7 * row for row in range(40)]).kind == "numeric"
    assert column("day", list(range(40))).kind == column("year", list(range(1990, 2030))).kind == "numeric"
    seconds: list[object] = [1700000000 + 3600 * row for row in range(40)]
    assert column("created_at", seconds).kind == "datetime" and column("size", seconds).kind == "numeric"
    minutes: list[object] = [1700000040 + 3600 * row for row in range(40)]
    assert column("size", minutes).kind == "datetime" and column("price", minutes).kind == "numeric"
    assert column("size", minutes[::-1]).kind == "numeric"


def test_iso_times_and_plain_words_have_no_style() -> None:
    assert read([str(day) for day in DAYS])[0].columns[0].style is None
    for words in (["12A", "13B"], ["1.2.3", "1.2.4"], ["a/b/c"], ["10-20", "20-30"], ["May", "June"]):
        assert find_date_style(words) is None
    late = late_column("day", "31.01.2023")
    assert late is not None and late.kind == "datetime" and late.style == Style("date", "%d.%m.%Y")


def test_a_style_from_a_file_is_looked_at() -> None:
    for saved in ({"kind": "date", "date": "%d%d"}, {"kind": "date", "date": "%k"}, {"kind": "epoch"}):
        with pytest.raises(FormatError, match=r"style\.(date|unit) must be"):
            Style.from_saved(saved)
    with pytest.raises(FormatError, match=r"style.kind must be"):
        Style.from_saved({"kind": "week"})


@given(
    st.sampled_from(FORMS),
    st.lists(st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(2068, 1, 1)), min_size=1),
)
def test_any_date_is_read_as_it_was_written(form: tuple[str, str], moments: list[dt.datetime]) -> None:
    cells = [moment.strftime(form[0]) for moment in [*DAYS, *moments]]
    numbers, wrong = to_numbers(cells)
    style = find_date_style(cells) if wrong.any() else numbered_times("day", cells, numbers)
    assert style is not None
    for cell in cells:
        wanted = parsed(cell, form[0])
        moment = style.moment(cell)
        assert moment is not None and moment.replace(tzinfo=None) == wanted
        offset = (moment.utcoffset() or dt.timedelta()).total_seconds()
        assert style.text((wanted - EPOCH).total_seconds(), offset) == cell
