"""Faults that others reported of reading tables and files."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

import credo
from credo.core.errors import DataError
from credo.recipes.options import Options
from credo.scale import KeyedOptions, KeyedResult, learn_keyed
from credo.sessions import ColumnOptions
from credo.tables import Chunk, Encoder, Schema, infer_schema, open_table

TARGETS = [str(value) for value in np.random.default_rng(0).normal(size=24)]
"""Cells of a target that holds numbers."""

LARGE = ("1582218195625938945", "1582218195625938944")
"""Two ids that are one number in double precision."""


def read(text: str | bytes) -> tuple[tuple[str, ...], list[tuple[object, ...]], list[str]]:
    """The columns, the rows and the bad rows of a text."""
    source = open_table(io.BytesIO(text.encode() if isinstance(text, str) else text))
    rows: list[tuple[object, ...]] = []
    bad: list[str] = []
    for chunk in source:
        rows += zip(*(list(chunk.columns[name]) for name in chunk.names), strict=True)
        bad += map(str, chunk.bad)
    return source.columns, rows, bad


def schema_of(cells: list[object]) -> Schema:
    """The schema of a table with these cells in the column `a`."""
    return infer_schema(Chunk({"a": cells, "y": TARGETS[: len(cells)]}, np.arange(2, 2 + len(cells))), "y")


def encoded(schema: Schema, cells: list[object]) -> tuple[np.ndarray, list[str]]:
    """The inputs that cells of the column `a` become, without standardising, and the bad rows."""
    encoder = Encoder(schema, standardise=False, clip=1e30)
    chunk = Chunk({"a": cells, "y": TARGETS[: len(cells)]}, np.arange(2, 2 + len(cells)))
    _, x, _, report = encoder.encode(encoder.initial(), chunk)
    return x, list(map(str, report.bad))


def test_a_byte_order_mark_does_not_take_the_quotes_of_the_first_name_for_letters() -> None:
    """pandas-dev/pandas#4793: the first name of a marked file keeps its quotation mark."""
    columns, rows, bad = read(b'\xef\xbb\xbf"price, net","b"\n1,2\n')
    assert columns == ("price, net", "b") and rows == [("1", "2")] and not bad


def test_blank_lines_above_the_header_do_not_make_it_a_row() -> None:
    """pola-rs/polars#25166: the names of a one-column file come again as its first row."""
    columns, rows, bad = read("\n\ncol\nval1\nval2\n")
    assert columns == ("col",) and rows == [("val1",), ("val2",)] and not bad


def test_lines_may_end_with_a_carriage_return_alone() -> None:
    """petl-developers/petl#292: a file whose lines end as on old Macs cannot be read."""
    columns, rows, bad = read("a,b\r1,2\r3,4\r")
    assert columns == ("a", "b") and rows == [("1", "2"), ("3", "4")] and not bad


@pytest.mark.parametrize("text", ['a,b\n1,2\n3,"4\n5,6\n7,8\n', 'a,b\n1,2\n3,"4', '"a","b\n1,2\n3,4\n'])
def test_a_quotation_mark_that_is_never_closed_is_said_and_takes_no_rows_along(text: str) -> None:
    """cldf/csvw#52: one open quotation mark makes all later rows part of its cell, and nothing is said."""
    line = 1 if text.startswith('"') else 3
    with pytest.raises(DataError, match=f"opens a quotation mark at line {line} that is never closed"):
        read(text)
    closed = text.replace('"4', '"4"').replace('"b', '"b"')
    assert len(read(closed)[1]) == closed.count("\n") - (1 if closed.endswith("\n") else 0)


def test_a_quoted_line_end_just_before_the_end_of_the_file_is_no_open_quotation_mark() -> None:
    """pandas-dev/pandas#5500: an end of the file inside a text is said of rows where there is none."""
    assert read('a,b\n1,"x\n"\n3,"y\n"\n')[1] == [("1", "x\n"), ("3", "y\n")]


def test_a_key_that_comes_twice_in_a_json_line_is_a_bad_row() -> None:
    """serde-rs/json#762: of a key that comes twice one value is dropped, another one in each parser."""
    _, rows, bad = read(
        '{"a": 1, "b": 2}\n{"a": 1, "a": 2}\n{"a": 3, "b": {"c": 1, "c": 2}}\n{"a": 5, "b": 6}\n'
    )
    assert rows == [(1, 2), (5, 6)]
    assert bad == ["line 2 has the key 'a' twice", "line 3 has the key 'c' twice"]


def test_a_number_that_is_not_one_in_json_lines_counts_as_missing() -> None:
    """pandas-dev/pandas#30716: a NaN in a file of JSON lines makes it unreadable without a reason."""
    _, rows, bad = read('{"a": NaN, "y": 1}\n{"a": -Infinity, "y": 2}\n{"a": 3, "y": 4}\n')
    assert len(rows) == 3 and not bad
    x, refused = encoded(schema_of([1.5, 2.5, float("nan"), 4.5]), [row[0] for row in rows])
    assert not refused and np.isfinite(x).all() and x.shape[0] == 3
    assert x[2, 0] == 3.0 and not np.array_equal(x[0], x[2]) and np.array_equal(x[0], x[1])


def test_a_column_of_whole_numbers_takes_decimals_later() -> None:
    """pola-rs/polars#12692: a column that begins with whole numbers refuses the first decimal one."""
    x, bad = encoded(schema_of(["1", "2", "3", "7"] * 6), ["4", "2.1", "-0.5"])
    assert not bad
    np.testing.assert_allclose(x[:, 0], [4.0, 2.1, -0.5], rtol=1e-6)


def test_numbers_in_scientific_notation_are_numbers() -> None:
    """pola-rs/polars#1134: a column such as 1e-3 is inferred as text."""
    schema = schema_of(["1e-3", "2E5", "-3.5e+2", "4"] * 6)
    assert [column.kind for column in schema.columns] == ["numeric"]
    np.testing.assert_allclose(encoded(schema, ["1e-3", "2E5", "-3.5e+2"])[0][:, 0], [1e-3, 2e5, -350.0])


def test_a_whole_number_of_eighty_digits_does_not_stop_the_reading() -> None:
    """pola-rs/polars#12473: a number that is too large for 64 bits makes a whole file fail."""
    schema = schema_of(["1", "2", "3", "9" * 80] * 6)
    x, bad = encoded(schema, ["9" * 80, "2", ""])
    assert not bad and x.shape[0] == 3 and np.isfinite(x).all()
    assert x[1].tolist() == [2.0, 0.0] and x[[0, 2], 1].tolist() == [1.0, 1.0]  # the flag of a gap


def test_a_category_that_is_called_na_is_a_category_of_its_own() -> None:
    """datasets/country-codes#38: Namibia, whose code is NA, vanishes from a table of countries."""
    x, bad = encoded(schema_of(["NA", "DE", "FR"] * 8), ["NA", "DE", "FR"])
    assert not bad and len({row.tobytes() for row in x}) == 3


def test_a_gap_in_a_column_of_truth_values_is_not_true() -> None:
    """e2nIEE/pandapower#1426: a missing truth value is cast to true."""
    schema = schema_of([True, False, None] * 8)
    assert [column.kind for column in schema.columns] == ["boolean"]
    x, bad = encoded(schema, [True, float("nan"), False, None])
    assert not bad and np.array_equal(x[1], x[3])
    assert not np.array_equal(x[1], x[0]) and not np.array_equal(x[1], x[2])


def test_times_with_several_offsets_are_moments_of_one_axis() -> None:
    """pandas-dev/pandas#24987: a column of times with several offsets is kept as text."""
    schema = schema_of([f"2018-01-{day:02d} 09:01:00+09:00" for day in range(1, 25)])
    assert [column.kind for column in schema.columns] == ["datetime"]
    same = ["2018-01-05T09:00:00+09:00", "2018-01-05T00:00:00Z", "2018-01-04T19:00:00-05:00"]
    x, bad = encoded(schema, [*same, "2018-01-05T09:00:00+00:00"])
    assert not bad and x[:3, 0].tolist() == [x[0, 0]] * 3
    assert x[3, 0] - x[0, 0] == 9 * 3600


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> KeyedResult:
    """A run with a learner for each id, of which some are large, begin with zeros or are absent."""
    folder = tmp_path_factory.mktemp("keyed")
    keys = [*LARGE, "007", "7", ""] * 4
    rows = [
        f"{key},{place % 3},{target}" for place, (key, target) in enumerate(zip(keys, TARGETS, strict=False))
    ]
    (folder / "t.csv").write_text("\n".join(["id,a,y", *rows]) + "\n")
    options = KeyedOptions("id", ColumnOptions("y", task="regression"), Options(model="linear"))
    return learn_keyed(str(folder / "t.csv"), folder / "run", options)


def counts(result: KeyedResult) -> dict[str, int]:
    """How many rows the learner of each key has seen."""
    saved = credo.Keyed.load(Path(str(result.folder)) / "shard-000")
    return {key: int(saved.belief(key).t) for key in (*LARGE, "007", "7") if key in saved}


def test_ids_beyond_double_precision_stay_apart_beside_gaps(keyed: KeyedResult) -> None:
    """pandas-dev/pandas#32134: whole numbers beside a gap become floats, and lose their last digits."""
    assert {key: counts(keyed).get(key) for key in LARGE} == dict.fromkeys(LARGE, 4)


def test_ids_that_differ_by_zeros_in_front_stay_apart(keyed: KeyedResult) -> None:
    """productdevbook/hucre#52: zip codes lose the zeros that they begin with."""
    assert counts(keyed)["007"] == counts(keyed)["7"] == 4 and keyed.metrics["keys"] == 4


def test_rows_without_a_key_are_counted_and_said(keyed: KeyedResult) -> None:
    """pandas-dev/pandas#3729: rows whose key is missing are dropped from a grouping in silence."""
    assert keyed.metrics["rows"] == 16 and keyed.bad_rows == 4
    assert keyed.bad and "line 6" in keyed.bad[0] and "key" in keyed.bad[0]
