"""Spaces in which some variables are there only with some options of a choice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo import bandits
from credo.bandits import optimize

BOUNDS: dict[str, Any] = {
    "kind": ["tree", "net", "linear"],
    "depth": optimize.given((1, 9, "whole"), kind="tree"),
    "rate": optimize.given((1e-4, 1.0, "log"), kind=["net", "linear"]),
    "unit": optimize.given(["relu", "tanh"], kind="net"),
    "slope": optimize.given((0.0, 1.0), unit="relu"),
}
SPACE = bandits.Space.read(BOUNDS)
POINTS: list[dict[str, Any]] = [
    {"kind": "tree", "depth": 7},
    {"kind": "linear", "rate": 1.0},
    {"kind": "net", "rate": 1e-4, "unit": "tanh"},
    {"kind": "net", "rate": 1e-4, "unit": "relu", "slope": 0.25},
]


@pytest.mark.parametrize("point", POINTS)
def test_a_point_has_the_variables_that_its_choices_give(point: Any) -> None:
    row = SPACE.encode(point)
    assert row.shape == (8,) and SPACE.decode(row) == point
    np.testing.assert_allclose(SPACE.snap(jnp.asarray(row)), row, atol=2.0**-21)
    assert SPACE.plain(point) == point


@pytest.mark.slow
def test_rows_at_random_and_their_neighbours_are_points() -> None:
    units = jax.random.uniform(jax.random.key(0), (40, 5))
    rows = jax.vmap(SPACE.place)(units)
    beside = jax.vmap(SPACE.neighbours)(rows).reshape(-1, 8)
    for row in np.concatenate([rows, beside[::7]]):
        point = SPACE.decode(row)
        np.testing.assert_allclose(SPACE.encode(point), row, atol=2.0**-21)
    kinds = {tuple(sorted(SPACE.decode(row))) for row in np.asarray(rows)}
    assert len(kinds) == 4


def test_a_space_of_few_points_has_each_of_them_once() -> None:
    small = bandits.Space.read({"kind": ["a", "b"], "n": optimize.given((1, 3, "whole"), kind="a")})
    every = small.points(6)
    assert every is not None
    assert sorted(str(small.decode(row)) for row in every) == sorted(
        [*(str({"kind": "a", "n": n}) for n in (1, 2, 3)), str({"kind": "b"})]
    )


@pytest.mark.parametrize(
    ("point", "words"),
    [
        ({"kind": "tree"}, "must have a value for depth"),
        ({"kind": "tree", "depth": 3, "rate": 0.1}, "must have no value for rate"),
        ({"kind": "net", "rate": 0.1, "unit": "tanh", "slope": 0.5}, "no value for slope"),
        ({"depth": 3}, "must have a value for kind"),
    ],
)
def test_points_that_do_not_fit_are_refused(point: Any, words: str) -> None:
    with pytest.raises(credo.CredoError, match=words):
        SPACE.encode(point)


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"x": optimize.given((0.0, 1.0), kind="a"), "kind": ["a", "b"]}, r"stands before it \(none\)"),
        ({"kind": ["a", "b"], "x": optimize.given((0.0, 1.0), kind="c")}, "options of kind; got 'c'"),
        ({"n": (1, 3), "x": optimize.given((0.0, 1.0), n=1)}, "given by a choice"),
    ],
)
def test_conditions_that_cannot_be_are_refused(bounds: Any, words: str) -> None:
    with pytest.raises(credo.CredoError, match=words) as caught:
        bandits.Space.read(bounds)
    assert caught.value.field == "bounds"
    with pytest.raises(credo.CredoError, match="given must name one choice"):
        optimize.given((0.0, 1.0), kind="a", other="b")


@pytest.mark.thorough
def test_a_search_finds_the_best_branch_and_its_file_goes_on(tmp_path: Path) -> None:
    def loss(point: Any) -> float:
        if point["kind"] == "tree":
            return float(1.0 + abs(point["depth"] - 4))
        bad = (np.log10(point["rate"]) + 2.0) ** 2
        return float(bad + (0.5 if point["kind"] == "linear" else 0.2 * (point["unit"] == "tanh")))

    search = bandits.minimize(loss, BOUNDS, evaluations=20, seed=1)
    assert search.best[1] < 0.6
    again = bandits.Optimizer.load(search.save(tmp_path / "search.credo"))
    assert again.history == search.history and again.search.space == search.search.space
    assert again.ask() == search.ask()
