"""The small helpers of core, each by an example."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.errors import suggest
from credo.core.extensions import extensions, missing
from credo.core.files import json_bytes, write_atomically
from credo.core.groups import Groups, each, in_order, pick, places_by_kind
from credo.core.inputs import require_narrow, shapes_of
from credo.core.integers import read_integer
from credo.core.outlying import inliers
from credo.core.records import find_record, record_name
from credo.core.subarrays import at_corner, beside, corners, put
from credo.core.trees import fits, leaf_names, ravel


def test_a_leaf_is_a_corner_of_a_wider_one() -> None:
    narrow, wide = ravel({"w": jnp.zeros((2, 1))})[1], ravel({"w": jnp.zeros((2, 3))})[1]
    assert corners(narrow, wide).tolist() == [0, 3]
    assert beside(np.array([0, 3]), 5).tolist() == [1, 2, 4]
    assert put(jnp.asarray([1.0, 2.0]), jnp.zeros(4), np.array([0, 3])).tolist() == [1.0, 0.0, 0.0, 2.0]
    assert at_corner("mean", jnp.ones(2), jnp.zeros(3)).tolist() == [1.0, 1.0, 0.0]


def test_things_of_several_kinds_keep_their_places() -> None:
    assert places_by_kind(["a", "b", "a"]) == ((0, 2), (1,))
    both: Groups[Any] = Groups((jnp.asarray([1.0, 3.0]), jnp.asarray([[2.0, 2.0]])), ((0, 2), (1,)))
    assert both.size == 3
    assert in_order(each(jnp.sum, both)).tolist() == [1.0, 4.0, 3.0]
    assert np.asarray(pick(both, 1)).tolist() == [2.0, 2.0]


def test_a_group_of_entry_points_may_be_empty() -> None:
    assert extensions("credo.nothing") == {}
    assert "pip install -e papers" in missing("credo.nothing")


def test_a_file_is_written_with_its_folder(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a" / "b.bin", b"abc")
    assert (tmp_path / "a" / "b.bin").read_bytes() == b"abc"


def test_json_has_null_where_a_number_is_not_finite() -> None:
    assert json_bytes({"nlpd": float("nan"), "rows": np.int64(3)}) == b'{\n  "nlpd": null,\n  "rows": 3\n}\n'


def test_a_number_that_would_wrap_around_is_refused() -> None:
    with (
        jax.enable_x64(False),
        pytest.raises(credo.CredoError, match="y must fit into 32 bits; got 3000000000"),
    ):
        require_narrow("y", 3_000_000_000)


def test_shapes_are_told_by_leaf() -> None:
    assert shapes_of({"w": np.ones((2, 3)), "b": np.ones(3)}) == "{'b': (3,), 'w': (2, 3)}"


def test_a_whole_number_may_be_spelled_with_an_exponent() -> None:
    assert [read_integer(text) for text in ("12", " 1e3", "20.0")] == [12, 1000, 20]
    for text in ("1.5", "inf", "nan", "x"):
        with pytest.raises(ValueError):
            read_integer(text)


def test_leaves_have_paths_that_names_fit() -> None:
    assert leaf_names([{"b": 0.0, "w": 1.0}, {"w": 2.0}]) == ["0.b", "0.w", "1.w"]
    assert [fits("2.w", name) for name in ("2.w", "2", "*.w", "w")] == [True, True, True, False]


def test_an_entry_far_from_the_others_is_no_inlier() -> None:
    entries = np.array([[1.0], [2.0], [4.0], [1e9], [np.nan]])
    assert inliers(entries).ravel().tolist() == [True, True, True, False, False]


def test_a_record_has_a_name_in_files() -> None:
    assert record_name(credo.Static) == "Static"
    assert find_record("Static") is credo.Static
    assert find_record("Nobody") is None


def test_a_misspelled_name_gets_a_hint() -> None:
    assert suggest("mnits", ["mnist", "digits"]) == "did you mean 'mnist'?"
    assert suggest("zebra", ["mnist", "digits"]) == ""


ORDERS = [((0, 1), (2, 3, 4)), ((3, 4), (0, 1, 2)), ((0, 2, 3), (1, 4)), ((4, 0), (1, 2, 3))]


@pytest.mark.parametrize("places", ORDERS)
def test_things_of_several_kinds_are_put_in_order(places: tuple[tuple[int, ...], ...]) -> None:
    stacks = tuple(jnp.asarray(np.repeat(np.array(group, float)[:, None], 2, axis=1)) for group in places)
    some: Any = Groups(stacks, places)
    np.testing.assert_array_equal(in_order(some)[:, 1], np.arange(5.0))
