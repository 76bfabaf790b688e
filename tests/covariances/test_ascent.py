"""Plain gradient steps against automatic differentiation of the ELBO, in every family's own parameters."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.covariances import DiagonalCovariance, LowRankCovariance
from credo.covariances.low_rank import project
from credo.learners.rules import Ascent, ascend
from credo.learners.rules.base import retract
from credo.linalg.jacobians import as_rows

P, RATE = 5, 1e-3
RNG = np.random.default_rng(7)
X, Y, VAR = RNG.normal(size=(2, P)), RNG.normal(size=2), np.array([0.5, 0.8])
MEAN, MEAN0 = RNG.normal(size=P), RNG.normal(size=P)
ROWS = X / np.sqrt(VAR)[:, None]


def objective(mean: Any, cov: Any, prior: Any) -> jax.Array:
    """E log p(y) of a linear model with normal noise, less the divergence from N(MEAN0, prior) if given."""
    gap = Y - X @ mean
    fit = -0.5 * jnp.sum((gap**2 + jnp.diagonal(X @ cov @ X.T)) / VAR)
    if prior is None:
        return fit
    away, prec = mean - MEAN0, jnp.linalg.inv(prior)
    result: jax.Array = fit - 0.5 * (jnp.trace(prec @ cov) + away @ prec @ away - jnp.linalg.slogdet(cov)[1])
    return result


def slope(prior: Any) -> Any:
    """dE / d mean."""
    g = X.T @ ((Y - X @ MEAN) / VAR)
    return g if prior is None else g + prior.precise(jnp.asarray(MEAN0 - MEAN))


def spd(seed: int) -> np.ndarray:
    root = np.random.default_rng(seed).normal(size=(P, P))
    return root @ root.T / P + 0.5 * np.eye(P)


@pytest.mark.table
@pytest.mark.parametrize("elbo", [False, True], ids=["expectation", "elbo"])
@pytest.mark.parametrize("form", ["root", "dense"])
def test_full_in_natural_parameters(form: Any, elbo: bool) -> None:
    here = credo.Full(form).from_dense(jnp.asarray(spd(0)))
    prior = credo.Full(form).from_dense(jnp.asarray(spd(1))) if elbo else None
    dense = None if prior is None else prior.dense()

    def by_naturals(linear: Any, half: Any) -> jax.Array:
        cov = jnp.linalg.inv(-(half + half.T))
        return objective(cov @ linear, cov, dense)

    prec = np.linalg.inv(spd(0))
    linear, half = jnp.asarray(prec @ MEAN), jnp.asarray(-0.5 * prec)
    first, second = jax.grad(by_naturals, (0, 1))(linear, half)
    cov = jnp.linalg.inv(-2 * (half + RATE * second))
    expected = cov @ (linear + RATE * first)
    mean, made = ascend(
        here,
        jnp.asarray(MEAN),
        Ascent(slope(prior), as_rows(jnp.asarray(ROWS)), None, prior, jnp.asarray(RATE), "natural", "exact"),
    )
    np.testing.assert_allclose(made.dense(), cov, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(mean, expected, rtol=1e-10)


@pytest.mark.parametrize("elbo", [False, True], ids=["expectation", "elbo"])
def test_full_in_moments(elbo: bool) -> None:
    here = credo.Full().from_dense(jnp.asarray(spd(0)))
    prior = credo.Full().from_dense(jnp.asarray(spd(1))) if elbo else None
    dense = None if prior is None else prior.dense()
    first, second = jax.grad(objective, (0, 1))(jnp.asarray(MEAN), jnp.asarray(spd(0)), dense)
    mean, made = ascend(
        here,
        jnp.asarray(MEAN),
        Ascent(slope(prior), as_rows(jnp.asarray(ROWS)), None, prior, jnp.asarray(RATE), "moment", "exact"),
    )
    np.testing.assert_allclose(mean, MEAN + RATE * first, rtol=1e-10)
    np.testing.assert_allclose(made.dense(), spd(0) + RATE * second, rtol=1e-10)


@pytest.mark.parametrize("elbo", [False, True], ids=["expectation", "elbo"])
@pytest.mark.parametrize("parameters", ["natural", "moment"])
def test_diagonal(parameters: Any, elbo: bool) -> None:
    var, var0 = jnp.asarray(np.diag(spd(0))), jnp.asarray(np.diag(spd(1)))
    prior = DiagonalCovariance(var0) if elbo else None
    dense = jnp.diag(var0) if elbo else None

    def by_naturals(linear: Any, half: Any) -> jax.Array:
        return objective(linear / (-2 * half), jnp.diag(-0.5 / half), dense)

    mean, made = ascend(
        DiagonalCovariance(var),
        jnp.asarray(MEAN),
        Ascent(slope(prior), as_rows(jnp.asarray(ROWS)), None, prior, jnp.asarray(RATE), parameters, "exact"),
    )
    if parameters == "natural":
        linear, half = MEAN / var, -0.5 / var
        first, second = jax.grad(by_naturals, (0, 1))(linear, half)
        expected_var = -0.5 / (half + RATE * second)
        expected = expected_var * (linear + RATE * first)
    else:
        first, second = jax.grad(lambda m, v: objective(m, jnp.diag(v), dense), (0, 1))(
            jnp.asarray(MEAN), var
        )
        expected, expected_var = MEAN + RATE * first, var + RATE * second
    assert isinstance(made, DiagonalCovariance)
    np.testing.assert_allclose(made.var, expected_var, rtol=1e-10)
    np.testing.assert_allclose(mean, expected, rtol=1e-10)


@pytest.mark.parametrize("measured", [False, True], ids=["rows", "rows and a diagonal"])
@pytest.mark.parametrize("elbo", [False, True], ids=["expectation", "elbo"])
def test_low_rank_in_its_factors(elbo: bool, measured: bool) -> None:
    base, base0 = (jnp.asarray(np.random.default_rng(k).uniform(0.5, 2, P)) for k in (2, 3))
    rows, rows0 = (jnp.asarray(np.random.default_rng(k).normal(size=(2, P))) for k in (4, 5))
    extra = jnp.asarray(np.random.default_rng(6).uniform(0.1, 1, P)) if measured else None
    prior = LowRankCovariance(base0, rows0) if elbo else None
    dense = None if prior is None else prior.dense()

    def by_factors(mean: Any, base: Any, factor: Any) -> jax.Array:
        cov = jnp.linalg.inv(jnp.diag(base) + factor.T @ factor)
        bent = 0.0 if extra is None else -0.5 * jnp.sum(extra * jnp.diagonal(cov))
        return objective(mean, cov, dense) + bent

    gradients = jax.grad(by_factors, (0, 1, 2))(jnp.asarray(MEAN), base, rows)
    mean, made = ascend(
        LowRankCovariance(base, rows),
        jnp.asarray(MEAN),
        Ascent(slope(prior), as_rows(jnp.asarray(ROWS)), extra, prior, jnp.asarray(RATE), None, "exact"),
    )
    assert isinstance(made, LowRankCovariance)
    for ours, before, gradient in zip(
        (mean, made.base, made.factor), (MEAN, base, rows), gradients, strict=True
    ):
        np.testing.assert_allclose(ours, before + RATE * gradient, rtol=1e-10)
    assert float(jnp.abs(made.factor - rows).max()) > 1e-6


@pytest.mark.parametrize("rule", ["bog", "bbb"])
@pytest.mark.parametrize("random", [0.0, None], ids=["zero start", "default start"])
def test_the_low_rank_factor_moves_unless_it_starts_at_zero(rule: str, random: float | None) -> None:
    model = credo.Model(lambda w, x: x @ w, credo.Normal(0.5))
    learner = getattr(credo, rule)(model, credo.LowRank(2, random=random), learning_rate=0.01)
    belief = learner.init(jnp.zeros(P), var=0.7)
    after, info = learner.step(belief, jnp.asarray(X[0]), jnp.asarray(1.0))
    moved = float(jnp.abs(after.cov.factor - belief.cov.factor).max())
    assert bool(info.ok) and (moved == 0.0 if random == 0.0 else moved > 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "family", [credo.Full(), credo.Diagonal(), credo.LowRank(2)], ids=["full", "diagonal", "low-rank"]
)
def test_a_step_far_too_long_stays_a_covariance_or_is_refused(family: Any) -> None:
    model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
    for parameters in (None,) if isinstance(family, credo.LowRank) else ("natural", "moment"):
        safe = credo.bog(model, family, learning_rate=50.0, parameters=parameters)
        belief = safe.init(jnp.asarray(MEAN), var=0.7)
        after, info = safe.step(belief, jnp.asarray(X[0]), jnp.asarray(30.0))
        assert bool(info.ok) and np.linalg.eigvalsh(after.cov.dense()).min() > 0
        exact = credo.bog(model, family, learning_rate=50.0, parameters=parameters, retraction="exact")
        kept, info = exact.step(belief, jnp.asarray(X[0]), jnp.asarray(30.0))
        if not bool(info.ok):
            np.testing.assert_array_equal(kept.mean, belief.mean)
        elif not isinstance(family, credo.LowRank):
            assert np.linalg.eigvalsh(kept.cov.dense()).min() > 0


def test_the_retraction_is_exact_upwards_and_of_first_order_downwards() -> None:
    x = jnp.array([-40.0, -1e-4, 0.0, 2.0])
    safe = retract(x, "safe")
    assert float(safe.min()) >= 0.5
    np.testing.assert_allclose(safe[1:], 1 + x[1:], atol=1e-8)
    assert np.isnan(retract(x, "exact")[0]) and float(retract(x, "exact")[3]) == 3.0


@pytest.mark.parametrize("projection", ["svd", "whitened", "factor-analysis"])
def test_projections_keep_what_they_promise(projection: Any) -> None:
    base = jnp.asarray(RNG.uniform(0.2, 3.0, 12))
    rows = jnp.asarray(RNG.normal(size=(6, 12)))
    new_base, factor = project(base, rows, 2, projection)
    target = jnp.diag(base) + rows.T @ rows

    def divergence(diagonal: Any, kept: Any) -> float:
        """Twice the KL (up to a constant) of the precisions read as covariances."""
        model = jnp.diag(diagonal) + kept.T @ kept
        ratio = jnp.linalg.solve(model, target)
        return float(jnp.trace(ratio) - jnp.linalg.slogdet(ratio)[1])

    if projection == "factor-analysis":
        assert divergence(new_base, factor) < divergence(*project(base, rows, 2, "svd")) - 1e-3
    else:
        np.testing.assert_allclose(new_base + jnp.sum(factor**2, axis=0), jnp.diagonal(target), rtol=1e-12)


def test_a_spherical_base_is_one_number_and_keeps_the_trace() -> None:
    rows = jnp.asarray(RNG.normal(size=(4, 6)))
    cov = credo.LowRank(2, base="spherical").init(jnp.full(6, 0.5)).condition(rows)
    assert np.ptp(cov.base) == 0
    np.testing.assert_allclose(np.trace(cov.precision()), 6 / 0.5 + np.sum(np.square(rows)), rtol=1e-12)


def test_a_random_start_has_the_expected_precision_of_the_prior() -> None:
    var = jnp.linspace(0.5, 2.0, 4000)
    cov = credo.LowRank(10, random=0.3).init(var)
    share = jnp.sum(cov.factor**2, axis=0) * var
    np.testing.assert_allclose(cov.base * var, 0.7, rtol=1e-12)
    # each share is 0.3 times the mean of 10 squares of normals: sd 0.3 sqrt(2 / 10)
    assert abs(float(share.mean()) - 0.3) < 5 * 0.3 * np.sqrt(0.2 / 4000)
