"""Outer rows: every operation against the array they stand for, and learners that use them against those that
do not.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.covariances.reference import close
from tests.tiers import few

import credo
from credo.core.trees import ravel
from credo.covariances import Diagonal, LowRank, LowRankCovariance
from credo.learners.rules import blend_precisions
from credo.linalg.jacobians import DenseRows, OuterRows, Rows, as_rows
from credo.models import model as models

RNG = np.random.default_rng(5)
LAYERS = ((3, 4), (5, 2))
P = sum(n * m for n, m in LAYERS)
NET = credo.MLP(3, (4,), "tanh")
PARAMS = jax.tree.map(lambda v: v.astype(jnp.float64), NET.init(0, (2,)))
XS = jnp.asarray(RNG.normal(size=(12, 2)))
YS = jnp.asarray(RNG.integers(0, 3, 12))


def outer(groups: int, each: int, left: int | None) -> OuterRows:
    def some(*shape: int) -> jax.Array:
        return jnp.asarray(RNG.normal(size=shape))

    mixing = None if left is None else some(left, groups * each)
    inputs, deltas = zip(*[(some(groups, n), some(groups, each, m)) for n, m in LAYERS], strict=True)
    return OuterRows(inputs, deltas, mixing)


def by_hand(rows: OuterRows) -> np.ndarray:
    groups, each, _ = rows.deltas[0].shape
    made = [
        np.concatenate(
            [np.outer(h[g], d[g, c]).ravel() for h, d in zip(rows.inputs, rows.deltas, strict=True)]
        )
        for g in range(groups)
        for c in range(each)
    ]
    return np.stack(made) if rows.left is None else np.asarray(rows.left) @ np.stack(made)


@pytest.mark.table
@pytest.mark.parametrize(("groups", "each", "left"), [(1, 3, None), (2, 2, None), (1, 3, 2), (2, 2, 5)])
def test_outer_rows_are_the_array_they_stand_for(groups: int, each: int, left: int | None) -> None:
    rows, other = outer(groups, each, left), outer(3, 1, 2)
    made, hand = by_hand(rows), by_hand(other)
    count = made.shape[0]
    weight, vector, matrix = RNG.uniform(size=P), RNG.normal(size=P), RNG.normal(size=(2, P))
    few, many = RNG.normal(size=(1, count)), RNG.normal(size=(7, count))
    inner = many.T @ many

    @jax.jit
    def answers(rows: OuterRows, other: OuterRows) -> tuple[Any, ...]:
        products = (rows.mix_rows(jnp.asarray(few)), rows.scale_rows(jnp.asarray(few)[0]))
        return (
            (rows.dense(), rows.pull(jnp.asarray(few)), rows.pull(jnp.asarray(many))),
            (
                rows.pull(jnp.asarray(few)[0]),
                rows.push(jnp.asarray(vector)),
                rows.push(jnp.asarray(matrix).T),
            ),
            (rows.cross(jnp.asarray(matrix)), rows.gram(), rows.gram(jnp.asarray(weight))),
            (rows.gram(jnp.asarray(weight), other), rows.squares(), rows.squares(jnp.asarray(inner))),
            as_rows(rows.dense()).squares(jnp.asarray(inner)),
            tuple(product.dense() for product in products),
            rows.where(jnp.arange(count) > 0).dense(),
        )

    want = (
        (made, few @ made, many @ made),
        (few[0] @ made, made @ vector, made @ matrix.T),
        (matrix @ made.T, made @ made.T, (made * weight) @ made.T),
        ((made * weight) @ hand.T, (made**2).sum(0), np.diag(made.T @ inner @ made)),
        np.diag(made.T @ inner @ made),
        (few @ made, few.T * made),
        np.where(np.arange(count)[:, None] > 0, made, 0.0),
    )
    assert rows.shape == made.shape
    jax.tree.map(close, answers(rows, other), want)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("projection", "left"),
    [
        ("svd", 2),
        pytest.param("svd", 6, marks=pytest.mark.thorough),
        pytest.param("whitened", 6, marks=pytest.mark.thorough),
        pytest.param("factor-analysis", 2, marks=pytest.mark.thorough),
    ],
)
def test_covariances_answer_alike_to_outer_rows_and_arrays(projection: Any, left: int) -> None:
    base, factor = RNG.uniform(0.5, 2.0, P), RNG.normal(size=(2, P))
    low = LowRankCovariance(jnp.asarray(base), jnp.asarray(factor), LowRank(2, projection=projection))
    held = [low, blend_precisions(low, low, jnp.asarray(0.3)), Diagonal().init(jnp.asarray(base))]
    rows, pull = outer(2, 2, left), jnp.asarray(RNG.normal(size=left))

    @jax.jit
    def answers(rows: jax.Array | Rows) -> list[Any]:
        made = []
        for cov in [*held, Diagonal("covariance").init(jnp.asarray(base))]:
            cross, inner = cov.couple(rows)
            made.append((cross.pull(pull), cross.dense(), inner, cov.condition(rows).dense()))
        return made

    jax.tree.map(close, answers(rows), answers(rows.dense()))


@pytest.mark.slow
def test_pushed_variances_of_well_known_directions_stay_positive_in_single_precision() -> None:
    rows = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), outer(1, 2, None))
    cov = LowRankCovariance(jnp.ones(P, jnp.float32), 1e3 * rows.dense(), LowRank(2))
    inner = np.asarray(cov.push(rows))
    exact = np.asarray(cov.push(rows.dense()))
    assert np.linalg.eigvalsh(inner.astype(float)).min() > 0
    size = float(np.trace(np.asarray(rows.gram())))
    assert np.abs(inner - exact).max() < 40 * np.finfo(np.float32).eps * size


@pytest.mark.slow
def test_networks_of_dense_layers_linearise_in_outer_products(monkeypatch: pytest.MonkeyPatch) -> None:
    vector, unravel = ravel(PARAMS)
    single = credo.Model(NET, credo.Categorical(3))
    linear = credo.Model(credo.Linear(3), credo.Categorical(3))
    cases = [(single, XS[0]), (credo.joint(single), XS)]
    plain = [model.jacobian(vector, unravel, x) for model, x in cases]
    assert all(isinstance(model.linearize(vector, unravel, x)[1], DenseRows) for model, x in cases)
    monkeypatch.setattr(models, "LARGE", 1)
    for (model, x), (eta, rows) in zip(cases, plain, strict=True):
        made = model.linearize(vector, unravel, x)
        assert isinstance(made[1], OuterRows)
        jax.tree.map(close, (made[0], made[1].dense()), (eta, rows))
        jax.tree.map(close, model.jacobian(vector, unravel, x), (eta, rows))
    flat, layout = ravel(jax.tree.map(lambda v: v.astype(jnp.float64), credo.Linear(3).init(0, (2,))))
    close(linear.linearize(flat, layout, XS[0])[1].dense(), linear.jacobian(flat, layout, XS[0])[1])


FAMILIES = [Diagonal(), LowRank(2)]


@pytest.mark.slow
@pytest.mark.parametrize("family", few(FAMILIES, FAMILIES[1]), ids=["diagonal", "low-rank"])
def test_learners_learn_the_same_from_outer_rows(family: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = credo.Model(NET, credo.Categorical(3))
    weights = jnp.asarray([1.0, 0.5, 0.0])

    def learned() -> list[Any]:
        jax.clear_caches()
        made = []
        learner = credo.bong(model, family)
        belief, trace = credo.run(learner, learner.init(PARAMS, var=0.3), XS, YS)
        made.append((belief.mean, belief.var, trace.log_evidence))
        learner = credo.bong(credo.joint(model), family)
        belief, _ = learner.step(learner.init(PARAMS, var=0.3), XS[:3], YS[:3], weight=weights)
        return [*made, (belief.mean, belief.var)]

    plain = learned()
    monkeypatch.setattr(models, "LARGE", 1)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10), learned(), plain)
    jax.clear_caches()


@pytest.mark.thorough
def test_the_inner_loop_in_the_space_of_its_rows_is_the_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """With rank P nothing is forgotten, so a low-rank belief learns what a full one does."""
    monkeypatch.setattr(models, "LARGE", 1)
    jax.clear_caches()
    model = credo.Model(NET, credo.Categorical(3))

    def after(rate: jax.Array, family: Any) -> tuple[Any, ...]:
        learner = credo.blr(model, family, learning_rate=rate, iterations=3)
        belief, _ = learner.step(learner.init(PARAMS, var=0.3), XS[0], YS[0])
        belief, info = learner.step(belief, XS[1], YS[1])
        return belief.mean, belief.var, info.log_evidence

    size = ravel(PARAMS)[1].size
    got, want = after(jnp.asarray(0.4), LowRank(size)), after(jnp.asarray(0.4), credo.Full())
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9), got, want)
    slope = jax.jacfwd(lambda rate: jnp.sum(after(rate, LowRank(2))[0] ** 2))(jnp.asarray(0.4))
    up, down = (jnp.sum(after(jnp.asarray(0.4 + e), LowRank(2))[0] ** 2) for e in (1e-5, -1e-5))
    np.testing.assert_allclose(slope, (up - down) / 2e-5, rtol=1e-6)
    jax.clear_caches()
