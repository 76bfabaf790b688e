"""Gradients of the log evidence, and choosing hyper-parameters by it."""

from __future__ import annotations

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.streams.setups import data

import credo
from credo.core.errors import CredoError

XS, YS = data("normal", steps=25)
FAMILIES = {
    "root": credo.Full(),
    "dense": credo.Full("dense"),
    "diagonal": credo.Diagonal(),
    "fd": credo.Diagonal("covariance"),
    "low-rank": credo.LowRank(2),
}
NET = credo.MLP(1, (3,), "tanh")


def evidence(family: Any, q: Any, noise: Any, net: bool) -> jax.Array:
    model = credo.Model(NET if net else (lambda w, x: x @ w), credo.Normal(noise))
    learner = credo.bong(model, family, dynamics=credo.RandomWalk(q))
    params = jax.tree.map(lambda v: v.astype(jnp.float64), NET.init(0, (3,))) if net else jnp.zeros(3)
    return credo.run(learner, learner.init(params, var=0.5), XS, YS)[1].log_evidence.sum()


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("net", [True, False], ids=["network", "linear"])
@pytest.mark.parametrize("name", list(FAMILIES))
def test_the_gradient_of_the_log_evidence_is_the_finite_difference(name: str, net: bool) -> None:
    def total(logs: jax.Array) -> jax.Array:
        return evidence(FAMILIES[name], jnp.exp(logs[0]), jnp.exp(logs[1]), net)

    at, h = jnp.log(jnp.asarray([1e-2, 0.2])), 1e-5
    value = jax.jit(total)
    shifts = h * jnp.eye(2)
    slopes = [(value(at + s) - value(at - s)) / (2 * h) for s in shifts]
    np.testing.assert_allclose(jax.jit(jax.grad(total))(at), slopes, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_a_whole_learner_can_be_differentiated() -> None:
    learner = credo.extended_kalman(
        credo.Model(lambda w, x: x @ w, credo.Normal(0.2)), dynamics=credo.RandomWalk(1e-2)
    )
    belief = learner.init(jnp.zeros(3))
    slope = jax.grad(lambda one: credo.run(one, belief, XS, YS)[1].log_evidence.sum())(learner)
    assert type(slope) is type(learner)
    direct = jax.grad(lambda v: evidence_linear(v, belief))(0.2)
    np.testing.assert_allclose(cast(Any, slope.model.likelihood).var, direct, rtol=1e-9)


def evidence_linear(noise: Any, belief: Any) -> jax.Array:
    learner = credo.extended_kalman(
        credo.Model(lambda w, x: x @ w, credo.Normal(noise)), dynamics=credo.RandomWalk(1e-2)
    )
    return credo.run(learner, belief, XS, YS)[1].log_evidence.sum()


def build(q: Any, noise: Any) -> tuple[Any, Any]:
    learner = credo.extended_kalman(
        credo.Model(lambda w, x: x @ w, credo.Normal(noise)), dynamics=credo.RandomWalk(q)
    )
    return learner, learner.init(jnp.zeros(3))


@pytest.mark.slow
def test_a_grid_equals_its_individual_runs() -> None:
    found = credo.select(build, {"q": [1e-3, 1e-1], "noise": [0.1, 0.5, 1.0]}, XS, YS)
    assert len(found.table) == 6
    for row in found.table:
        learner, belief = build(row["q"], row["noise"])
        alone = credo.run(learner, belief, XS, YS)[1].log_evidence.sum()
        np.testing.assert_allclose(row["log_evidence"], alone, rtol=1e-10)
    best = max(found.table, key=lambda row: row["log_evidence"])
    assert (
        found.best == {"q": best["q"], "noise": best["noise"]} and found.log_evidence == best["log_evidence"]
    )
    assert found.learner.dynamics.var == best["q"] and found.belief == build(**found.best)[1]


@pytest.mark.slow
def test_climbing_the_gradient_increases_the_evidence() -> None:
    found = credo.select(build, {"q": 1e-4, "noise": 5.0}, XS, YS, method="gradient", steps=60, rate=0.2)
    first = found.table[0]
    assert (first["q"], first["noise"]) == pytest.approx((1e-4, 5.0))
    assert found.log_evidence > first["log_evidence"] + 5.0
    assert found.log_evidence == max(row["log_evidence"] for row in found.table)
    grid = credo.select(build, {"q": [1e-4, 1e-2, 1e-1], "noise": [0.2, 0.5, 1.0]}, XS, YS)
    assert found.log_evidence > grid.log_evidence - 0.5


def test_settings_without_a_finite_evidence_lose() -> None:
    def sometimes(q: Any) -> tuple[Any, Any]:
        learner, belief = build(q, 0.2)
        return learner, credo.replace(belief, mean=jnp.where(q > 0.5, jnp.nan, belief.mean))

    found = credo.select(sometimes, {"q": [1e-3, 0.9]}, XS, YS)
    assert found.best == {"q": 1e-3} and found.table[1]["log_evidence"] == -np.inf
    with pytest.raises(CredoError, match="no setting of q gives a finite log evidence"):
        credo.select(sometimes, {"q": [0.7, 0.9]}, XS, YS)


@pytest.mark.parametrize(
    ("choices", "method", "message"),
    [
        ({"q": [1e-3]}, "grids", r"method must be one of grid, gradient; got 'grids' .did you mean 'grid'"),
        ({}, "grid", "choices must name at least one hyper-parameter"),
        ({"q": 1e-3, "noise": [1.0]}, "grid", r"choices\['q'\] must be a list of values"),
        ({"q": [], "noise": [1.0]}, "grid", r"choices\['q'\] must be a list of values"),
        ({"q": -1.0, "noise": 1.0}, "gradient", r"choices\['q'\] must be one positive number"),
        ({"q": [1.0], "noise": 1.0}, "gradient", r"choices\['q'\] must be one positive number"),
    ],
)
def test_impossible_selections_are_refused(choices: Any, method: Any, message: str) -> None:
    with pytest.raises(CredoError, match=message):
        credo.select(build, choices, XS, YS, method=method)


@pytest.mark.slow
def test_settings_in_other_processes_have_the_numbers_of_one_and_one_that_fails_is_named() -> None:
    def check(noise: Any) -> Any:
        if noise > 5:
            raise RuntimeError("too noisy")
        return noise

    def learner_of(noise: Any, q: Any) -> Any:
        model = credo.Model(lambda w, x: x @ w, credo.Normal(noise))
        learner = credo.extended_kalman(model, dynamics=credo.RandomWalk(q))
        return learner, learner.init(jnp.zeros(3))

    def build(noise: Any, q: Any) -> Any:
        return learner_of(jax.pure_callback(check, jax.ShapeDtypeStruct((), float), noise), q)

    good = {"noise": [0.1, 0.5], "q": [1e-3, 1e-2]}
    alone = credo.select(build, good | {"noise": [9.0, 0.1, 0.5]}, XS, YS, jobs=2)
    assert len(alone.failed) == 2
    assert alone.failed[0].startswith("noise=9, q=0.001: ") and "too noisy" in alone.failed[0]
    assert [row["log_evidence"] for row in alone.table[:2]] == [-np.inf] * 2
    together = credo.select(build, good, XS, YS, jobs=1)
    assert alone.table[2:] == together.table and alone.best == together.best and not together.failed
    side_by_side = credo.select(learner_of, good, XS, YS)
    totals = [[row["log_evidence"] for row in one.table] for one in (together, side_by_side)]
    np.testing.assert_allclose(totals[0], totals[1], rtol=1e-12)
    with pytest.raises(CredoError, match="jobs needs method='grid'"):
        credo.select(build, {"noise": 0.1, "q": 1e-3}, XS, YS, method="gradient", jobs=2)
