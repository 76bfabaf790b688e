"""What single cells, words, names and lines of a table mean."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest

from credo.core.errors import DataError
from credo.tables import ColumnSpec
from credo.tables.cells import (
    cell_text,
    is_count,
    is_decorated,
    is_missing,
    label_text,
    to_list,
    to_number_columns,
    truth,
)
from credo.tables.chunks import DriftWatch
from credo.tables.hashing import find_words, hash_words, slot_of
from credo.tables.opening import is_archive
from credo.tables.readers import guess_delimiter, is_plain, unique_names
from credo.tables.times import find_cycles, to_times


def test_a_missing_cell_is_spelled_in_many_ways() -> None:
    cells = (None, float("nan"), " n/a ", "-", 0, "0")
    assert [is_missing(cell) for cell in cells] == [True, True, True, True, False, False]


def test_cells_become_plain_objects_and_numbers() -> None:
    assert to_list(np.array([1, 2])) == [1, 2]
    times = np.array(["2024-05-01T12:00", "NaT"], "datetime64[ns]")
    assert to_list(times) == [dt.datetime(2024, 5, 1, 12), None]
    spans = to_list(np.array([1500, "NaT"], "timedelta64[ms]"))
    assert spans[0] == 1.5 and is_missing(spans[1])
    numbers = to_number_columns([["1", "2"], [3.0, 4.5]])
    assert numbers is not None and numbers.tolist() == [[1.0, 3.0], [2.0, 4.5]]
    assert to_number_columns([["1", "?"]]) is None
    assert is_count(np.array([0.0, 3.0, 2.5, -1.0])).tolist() == [True, True, False, False]


def test_a_decorated_number_has_a_sign_or_commas_between_thousands() -> None:
    cells = ("$5.20", "1,000", "5.20", "1,5", 3)
    assert [is_decorated(cell) for cell in cells] == [True, True, False, False, False]


def test_a_cell_is_a_truth_a_category_or_a_class() -> None:
    assert [truth(cell) for cell in ("Yes", False, "maybe")] == [True, False, None]
    assert [cell_text(cell) for cell in (" a ", 1.0, True)] == ["a", "1", "True"]
    assert (label_text("1.0", True), label_text("1.0", False)) == ("1", "1.0")


def test_a_table_that_changes_for_good_is_refused() -> None:
    watch = DriftWatch("d.csv", "do not fit")
    watch.good(100)
    with pytest.raises(DataError, match=r"d\.csv changes at line 102: 26 of the 50 rows up to line 127"):
        for line in range(102, 140):
            watch.bad(line)


def test_cycles_are_those_that_some_times_show() -> None:
    assert find_cycles(86400.0 * np.arange(100)) == ("weekday", "yearday")
    assert find_cycles(3600.0 * np.arange(48)) == ("hour", "weekday")


def test_categories_and_words_have_slots_that_never_change() -> None:
    assert (slot_of("Oslo", 16), slot_of("Bergen", 16)) == (12, 6)
    assert find_words("It's 5 o'clock!") == ["it", "s", "5", "o", "clock"]
    x = np.zeros((2, 4), np.float32)
    missing = hash_words(ColumnSpec("title", "text", slots=4), ["a b a", None], x, 0)
    assert missing.tolist() == [False, True]
    np.testing.assert_allclose(x, [[0.0, 0.58, 0.0, -1.15], [0.0] * 4], atol=0.005)  # two digits


def test_a_line_with_quotation_marks_is_not_plain() -> None:
    assert is_plain(["1,x\n", "2,y\n"], ["a", "b"], ",")
    assert not is_plain(["1,x\n", '2,"y"\n'], ["a", "b"], ",")


def test_a_header_gives_names_and_the_delimiter() -> None:
    assert unique_names(["a ", ""], "data.csv") == ["a", "column_2"]
    assert guess_delimiter('a;"b,c,d";e') == ";"


def test_a_file_that_is_not_there_is_no_archive() -> None:
    assert not is_archive("prices.zip")


def test_times_are_read_in_utc_and_by_the_clock_as_written() -> None:
    utc, clock, wrong = to_times(["1970-01-02", "", "1970-01-01T01:00:00+01:00", "soon"])
    np.testing.assert_array_equal(utc, [86400.0, np.nan, 0.0, np.nan])
    np.testing.assert_array_equal(clock, [86400.0, np.nan, 3600.0, np.nan])
    assert wrong.tolist() == [False, False, False, True]
