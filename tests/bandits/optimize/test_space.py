"""Search spaces: points become rows and come back, and stay inside their bounds."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import credo
from credo import bandits
from credo.bandits.optimize.search import ascend_in_box, maximize
from credo.bandits.optimize.space import even_points

BOUNDS = {
    "rate": (1e-4, 1e-1, "log"),
    "share": (-3.0, 7.0),
    "depth": (1, 10, "whole"),
    "width": (8, 1024, "log", "whole"),
    "kind": ["a", "b", None],
}
SPACE = bandits.Space.read(BOUNDS)
POINTS = st.fixed_dictionaries(
    {
        "rate": st.floats(1e-4, 1e-1),
        "share": st.floats(-3.0, 7.0),
        "depth": st.integers(1, 10),
        "width": st.integers(8, 1024),
        "kind": st.sampled_from(["a", "b", None]),
    }
)
SNAP, PLACE = jax.jit(SPACE.snap), jax.jit(SPACE.place)


@given(POINTS)
def test_a_point_becomes_a_row_and_comes_back(point: Any) -> None:
    row = SPACE.encode(point)
    back: Any = SPACE.decode(row)
    for name in ("depth", "width", "kind"):
        assert back[name] == point[name] and type(back[name]) is type(point[name])
    # the grid has 2^23 steps over a range
    assert abs(back["share"] - point["share"]) <= 10.0 * 2.0**-23
    assert abs(np.log(back["rate"] / point["rate"])) <= np.log(1e3) * 2.0**-23
    # what came back is a point of the grid: from there nothing moves, compiled or not
    np.testing.assert_array_equal(SPACE.encode(back), row)
    np.testing.assert_allclose(SNAP(jnp.asarray(row)), row, atol=2.0**-21)


@given(st.lists(st.floats(0.0, 1.0, exclude_max=True), min_size=5, max_size=5))
def test_every_number_of_the_unit_cube_is_a_point_inside_the_bounds(unit: list[float]) -> None:
    point: Any = SPACE.decode(PLACE(jnp.asarray(unit)))
    assert 1e-4 <= point["rate"] <= 1e-1 and -3.0 <= point["share"] <= 7.0
    assert point["depth"] in range(1, 11) and point["width"] in range(8, 1025)
    assert point["kind"] in ("a", "b", None)
    assert SPACE.encode(point).shape == (7,)


def test_ends_and_whole_numbers_come_back_exactly() -> None:
    top: Any = SPACE.decode(np.ones(7))
    bottom: Any = SPACE.decode(-np.ones(7))
    assert top["rate"] == 1e-1 and bottom["share"] == -3.0
    wholes = bandits.Space.read({"n": (0, 5, "whole")})
    shares = jax.vmap(wholes.place)(jnp.linspace(0.0, 0.9999, 600)[:, None])
    counts = np.unique(np.round(np.asarray(shares) * 2.5 + 2.5), return_counts=True)[1]
    assert counts.shape == (6,) and counts.min() >= 99  # each has its share of the cube


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ([[1.0, 0.5]], "lower one first"),
        ([1.0, 2.0], r"array \(d, 2\)"),
        ({}, "at least one variable"),
        ({"rate": (0.0, 1.0, "log")}, "rate must be above 0"),
        ({"n": (0.5, 3, "whole")}, "n must be whole"),
        ({"kind": []}, "must list different texts"),
        ({"kind": ["a", "a"]}, "different"),
        ({"rate": (0.0, 1.0, "lgo")}, "rate must be"),
        ({"rate": (0.0, float("nan"))}, "finite"),
    ],
)
def test_bounds_that_cannot_be_are_refused(bounds: Any, words: str) -> None:
    with pytest.raises(credo.CredoError, match=words) as caught:
        bandits.Space.read(bounds)
    assert caught.value.field == "bounds"


def test_points_are_spread_evenly() -> None:
    points = np.asarray(even_points(jax.random.key(3), 0, 64, 2))
    assert points.min() >= 0.0 and points.max() < 1.0
    cells = np.unique(np.floor(points * 4).astype(int), axis=0)
    assert len(cells) == 16  # 64 points at random leave a cell of 16 empty in one case of four
    root = 1.32471795724474602596  # g^3 = g + 1
    np.testing.assert_allclose(
        (points[1:] - points[:-1]) % 1.0, np.tile([1 / root, root**-2], (63, 1)), rtol=1e-9
    )
    later = np.asarray(even_points(jax.random.key(3), 5, 1, 2))
    np.testing.assert_allclose(later[0], points[5], atol=1e-12)


def test_ascent_finds_the_maximum_whatever_the_scale_and_stays_in_the_box() -> None:
    scales = jnp.asarray([1e4, 1.0, 1e-4])
    target = jnp.asarray([0.37, -0.81, 2.0])  # the last lies outside

    def hill(x: Any) -> Any:
        return -jnp.sum(scales * (x - target) ** 2)

    free = jnp.asarray([True, True, True])
    rows, values = ascend_in_box(hill, jnp.zeros((2, 3)), jnp.ones(3), free, 80)
    np.testing.assert_allclose(rows, np.array([[0.37, -0.81, 1.0]] * 2), atol=2e-5)
    np.testing.assert_allclose(values[0], hill(rows[0]), rtol=1e-12)
    held, _ = ascend_in_box(hill, jnp.zeros((1, 3)), jnp.ones(3), jnp.asarray([True, False, True]), 20)
    assert float(held[0, 1]) == 0.0


@pytest.mark.slow
def test_the_maximiser_finds_the_best_of_many_peaks_and_of_mixed_variables() -> None:
    line = bandits.Space.read([[-4.0, 4.0]])
    row = maximize(
        lambda x: jnp.sum(jnp.cos(8 * jnp.pi * x) - (x - 0.26) ** 2),
        line,
        jnp.zeros((1, 1)),
        jax.random.key(0),
    )
    np.testing.assert_allclose(row, 0.25, atol=1e-3)
    target = {"rate": 3e-3, "share": 1.0, "depth": 7, "width": 100, "kind": "b"}
    goal = jnp.asarray(SPACE.encode(target))
    row = maximize(lambda x: -jnp.sum((x - goal) ** 2), SPACE, jnp.zeros((1, 7)), jax.random.key(0))
    found: Any = SPACE.decode(row)
    assert found["depth"] == 7 and found["width"] == 100 and found["kind"] == "b"
    assert abs(found["share"] - 1.0) < 1e-3 and abs(np.log(found["rate"] / 3e-3)) < 1e-3
    small = bandits.Space.read({"n": (1, 5, "whole"), "kind": ["x", "y"]})
    best = small.encode({"n": 4, "kind": "y"})
    row = maximize(
        lambda x: x @ jnp.asarray(best) + jnp.sum(x * 0), small, jnp.zeros((1, 3)), jax.random.key(0)
    )
    assert small.decode(row) == {"n": 5, "kind": "y"}  # searched whole


def test_all_points_are_listed_up_to_so_many() -> None:
    space = bandits.Space.read({"n": (1, 3, "whole"), "kind": ["a", "b"]})
    every = space.points(6)
    assert every is not None and space.points(5) is None
    points: list[Any] = [space.decode(row) for row in every]
    assert {(point["n"], point["kind"]) for point in points} == {(n, k) for n in (1, 2, 3) for k in "ab"}
    assert len(points) == 6 and bandits.Space.read([[0.0, 1.0]]).points(10**6) is None
