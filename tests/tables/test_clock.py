"""The clock of a series: times become steps, and steps times."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest

from credo.core.errors import DataError
from credo.tables.clock import Clock

HOURS = [f"2024-03-01T{hour:02d}:00" for hour in range(24)]


def test_hours_with_a_gap_become_steps_and_hours_again() -> None:
    cells = [*HOURS[:5], *HOURS[9:]]
    clock = Clock.infer("t", cells)
    read = clock.read(cells)
    assert (clock.words, clock.seasons, read.why) == ("every hour", (24, 168), {})
    assert read.ticks.tolist() == [*range(5), *range(9, 24)]
    assert clock.texts(read.ticks, 0.0) == cells
    assert clock.texts(np.array([24]), 0.0) == ["2024-03-02T00:00"]


@pytest.mark.parametrize(
    ("cells", "words", "seasons", "following"),
    [
        (["2024-01-31", "2024-02-29", "2024-03-31"], "every month", (12,), ["2024-04-30", "2024-05-31"]),
        (["1949-01", "1949-02", "1949-03"], "every month", (12,), ["1949-04", "1949-05"]),
        (["2024-01-15", "2024-04-15", "2024-07-15"], "every quarter", (4,), ["2024-10-15", "2025-01-15"]),
        (["2024-02-27", "2024-02-28", "2024-02-29"], "every day", (7, 365), ["2024-03-01", "2024-03-02"]),
        (["2024-01-01", "2024-01-08", "2024-01-15"], "every week", (52,), ["2024-01-22", "2024-01-29"]),
        (
            ["2024-01-01T00:00:00", "2024-01-01T00:00:30", "2024-01-01T00:01:00"],
            "every 30 seconds",
            (2880, 20160),
            ["2024-01-01T00:01:30", "2024-01-01T00:02:00"],
        ),
        ([0.5, 0.75, 1.0], "every 0.25", (), ["1.25", "1.5"]),
        (["1", "2", "3"], "every 1", (), ["4", "5"]),
        (
            [dt.date(2024, 1, 1), dt.date(2024, 1, 2), dt.date(2024, 1, 3)],
            "every day",
            (7, 365),
            ["2024-01-04", "2024-01-05"],
        ),
    ],
)
def test_the_step_and_its_seasons_are_inferred(
    cells: list[object], words: str, seasons: tuple[int, ...], following: list[str]
) -> None:
    clock = Clock.infer("t", cells)
    assert (clock.words, clock.seasons) == (words, seasons)
    assert clock.texts(np.array([3, 4]), 0.0) == following
    assert clock.read(cells).ticks.tolist() == [0, 1, 2]
    assert Clock.from_dict(clock.to_dict()) == clock


def test_a_friday_is_followed_by_a_monday_where_no_row_is_on_a_weekend() -> None:
    days = [
        f"{day}" for day in np.arange("2024-01-01", "2024-02-01", dtype="datetime64[D]") if np.is_busday(day)
    ]
    clock = Clock.infer("t", days)
    assert (clock.words, clock.seasons) == ("every day from Monday to Friday", (5,))
    assert clock.read(days).ticks.tolist() == list(range(len(days)))
    assert clock.texts(np.arange(len(days)), 0.0) == days
    assert clock.read(["2024-02-03"]).why  # a Saturday


def test_hours_with_zones_go_on_through_the_change_to_summer_time() -> None:
    cells = [
        "2024-03-31T00:00+01:00",
        "2024-03-31T01:00+01:00",
        "2024-03-31T03:00+02:00",
        "2024-03-31T04:00+02:00",
    ]
    clock = Clock.infer("t", cells)
    read = clock.read(cells)
    assert read.ticks.tolist() == [0, 1, 2, 3] and read.offset.tolist() == [3600, 3600, 7200, 7200]
    assert clock.texts(np.array([4]), 7200.0) == ["2024-03-31T05:00+02:00"]
    assert clock.clock(np.array([4]), 7200.0) % 86400 == 5 * 3600


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [
        (["2024-01-01", "2024-01-02"], "time 't' must have at least 3 values; got 2"),
        (["a", "b", "c"], "time 't' must hold times such as .* or numbers; got 'a'"),
        (["2024-01-03", "2024-01-02", "2024-01-01"], "time 't' must grow from row to row"),
        ([0.0, 1.0, 2.4, 3.4, 4.9, 5.9], "time 't' must have a common step; got times of which"),
    ],
)
def test_times_that_make_no_clock_are_refused_in_a_sentence(cells: list[object], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        Clock.infer("t", cells)


def test_rows_without_a_place_say_why() -> None:
    clock = Clock.infer("t", HOURS)
    why = clock.read(["2024-03-02T00:30", "", "soon", "2024-03-02T00:05"]).why
    assert set(why) == {0, 1, 2}
    assert "'2024-03-02T00:30'" in why[0] and "between two steps; allowed is a time every hour" in why[0]
    assert why[1] == "has no time: 't' is missing" and "which is no ISO time" in why[2]
