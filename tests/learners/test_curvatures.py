"""Monte Carlo curvatures against dense expectations, within Monte Carlo error."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.trees import ravel
from credo.covariances import Covariance
from credo.learners import Local, Site

P = 4
X, LABEL = jnp.array([0.7, -1.2, 0.4, 0.9]), jnp.asarray(1.0)
MEAN = jnp.array([0.3, -0.2, 0.5, 0.1])
VAR = jnp.array([0.5, 1.0, 0.2, 0.8])
MODEL = credo.Model(lambda w, x: jnp.tanh(w[:2] @ x[:2]) * (1.0 + w[2:] @ x[2:]), credo.Bernoulli())


def measured(curvature: Any, cov: Covariance, seed: int = 0, iteration: int = 0) -> Local:
    _, unravel = ravel(MEAN)
    site = Site(MODEL, MODEL.likelihood, unravel, X, LABEL, jnp.asarray(1.0), jax.random.key(seed))
    result: Local = jax.jit(lambda: curvature.local(site, MEAN, cov, iteration))()
    return result


def spread(seed: int, count: int) -> jax.Array:
    """Draws (count, P) from the belief."""
    deviations = jax.random.normal(jax.random.key(seed), (count, P))
    return MEAN[None, :] + jnp.sqrt(VAR)[None, :] * deviations


def log_likelihood(w: jax.Array) -> jax.Array:
    result: jax.Array = MODEL.likelihood.log_prob(MODEL.apply(w, X).reshape(1), LABEL)
    return result


@pytest.fixture(scope="module")
def dense() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Means and deviations over draws of the gradient, the Hessian and the outer products."""
    draws = spread(9, 40_000)
    gradients = jax.vmap(jax.grad(log_likelihood))(draws)
    hessians = jax.vmap(jax.hessian(log_likelihood))(draws)
    outer = gradients[:, :, None] * gradients[:, None, :]
    parts = {"gradient": gradients, "hessian": hessians, "outer": outer}
    return {name: (np.asarray(part.mean(0)), np.asarray(part.std(0))) for name, part in parts.items()}


def close(ours: Any, expected: tuple[np.ndarray, np.ndarray], draws: int, factor: float = 5.0) -> None:
    mean, sd = expected
    error = factor * sd * np.sqrt(1 / draws + 1 / 40_000)
    assert np.all(np.abs(np.asarray(ours) - mean) < error), (np.asarray(ours), mean, error)


@pytest.mark.slow
def test_mc_ef_is_the_mean_of_outer_products(dense: Any) -> None:
    local = measured(credo.MonteCarloEmpiricalFisher(20_000), credo.Diagonal().init(VAR))
    close(local.gradient, dense["gradient"], 20_000)
    close(local.precision(), dense["outer"], 20_000)
    alone = np.outer(local.gradient, local.gradient)
    assert np.abs(local.precision() - alone).max() > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["hutchinson", "price"])
def test_the_diagonal_of_the_hessian(estimator: Any, dense: Any) -> None:
    curvature = credo.MonteCarloHessian(20_000, common=True, estimator=estimator)
    cov = credo.Diagonal().init(VAR)
    first, local = (measured(curvature, cov, iteration=iteration) for iteration in (0, 1))
    close(local.gradient, dense["gradient"], 20_000)
    share = np.asarray(first.gradient) / np.asarray(local.gradient)  # no step overshoots what is measured
    assert 0.5 < share[0] < 1 and np.ptp(share) < 1e-9
    mean, sd = dense["hessian"]
    diagonal = np.diagonal(mean)
    # the probes add the off-diagonal entries' squares, Price's weights the gradient's: 10 is ample for both
    error = (
        10 * (np.sqrt((sd**2 + mean**2).sum(axis=1)) + dense["gradient"][1] / np.sqrt(VAR)) / np.sqrt(20_000)
    )
    assert local.diagonal is not None
    assert np.all(np.abs(np.asarray(local.diagonal) - np.maximum(-diagonal, 0)) < error)
    np.testing.assert_array_equal(local.factor.dense(), 0)


def test_the_full_hessian_is_cut_to_its_negative_part(dense: Any) -> None:
    local = measured(credo.MonteCarloHessian(2_000), credo.Full().init(VAR))
    values, vectors = np.linalg.eigh(-dense["hessian"][0])
    cut = (vectors * np.maximum(values, 0)) @ vectors.T
    made = np.asarray(local.precision())
    assert np.linalg.eigvalsh(made).min() > -1e-12
    assert np.abs(made - cut).max() < 10 * dense["hessian"][1].max() / np.sqrt(2_000)
    close(local.gradient, dense["gradient"], 2_000)


def test_subspace_iteration_finds_the_leading_directions() -> None:
    rng = np.random.default_rng(3)
    turn = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    values = np.concatenate([[8.0, 5.0, 3.0], 0.05 * rng.uniform(size=20), -0.05 * rng.uniform(size=7)])
    bowl = jnp.asarray((turn * values) @ turn.T)
    likelihood = credo.Likelihood(lambda eta, y: -0.5 * eta)
    model = credo.Model(lambda w, x: w @ bowl @ w, likelihood)
    _, unravel = ravel(jnp.zeros(30))
    site = Site(model, likelihood, unravel, X, LABEL, jnp.asarray(1.0), jax.random.key(0))
    curvature = credo.MonteCarloHessian(2, rank=3, rounds=3)
    cov = credo.LowRank(3).init(jnp.ones(30))
    found = jax.jit(lambda mean: curvature.local(site, mean, cov).precision())(jnp.zeros(30))
    top = (turn[:, :3] * values[:3]) @ turn[:, :3].T
    np.testing.assert_allclose(found, top, atol=1e-5)


def test_antithetic_draws_cancel_what_is_odd() -> None:
    """With a linear model and normal noise the gradient is affine in the draw: pairs give it exactly."""
    model = credo.Model(lambda w, x: x @ w, credo.Normal(0.5))
    _, unravel = ravel(MEAN)
    site = Site(model, model.likelihood, unravel, X, LABEL, jnp.asarray(1.0), jax.random.key(1))
    cov = credo.Diagonal().init(VAR)
    exact = X * (LABEL - X @ MEAN) / 0.5
    pairs = credo.MonteCarloEmpiricalFisher(4, antithetic=True).local(site, MEAN, cov)
    single = credo.MonteCarloEmpiricalFisher(4).local(site, MEAN, cov)
    np.testing.assert_allclose(pairs.gradient, exact, rtol=1e-12)
    assert np.abs(single.gradient - exact).max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    "curvature", [credo.MonteCarloEmpiricalFisher, credo.MonteCarloHessian], ids=["fisher", "hessian"]
)
def test_common_draws_are_common_to_the_iterations(curvature: Any) -> None:
    cov = credo.Diagonal().init(VAR)
    common = [measured(curvature(4, common=True), cov, iteration=i).rows.dense() for i in (0, 3)]
    fresh = [measured(curvature(4), cov, iteration=i).rows.dense() for i in (0, 3)]
    np.testing.assert_array_equal(common[0], common[1])
    assert np.abs(np.asarray(fresh[0]) - np.asarray(fresh[1])).max() > 1e-6


@pytest.mark.slow
def test_rows_of_a_batch_bring_their_own_gradients_and_weights() -> None:
    model = credo.joint(MODEL)
    _, unravel = ravel(MEAN)
    xs, ys = jnp.stack([X, -X, 2 * X]), jnp.array([1.0, 0.0, 1.0])
    cov, key = credo.Diagonal().init(VAR), jax.random.key(4)
    weights = jnp.array([1.0, 0.0, 0.5])
    joint = credo.MonteCarloEmpiricalFisher(6).local(
        Site(model, model.likelihood, unravel, xs, ys, weights, key), MEAN, cov
    )
    alone = [
        credo.MonteCarloEmpiricalFisher(6).local(
            Site(MODEL, MODEL.likelihood, unravel, xs[b], ys[b], weights[b], key), MEAN, cov
        )
        for b in (0, 2)
    ]
    np.testing.assert_allclose(joint.gradient, sum(one.gradient for one in alone), rtol=1e-12)
    added = sum(one.precision() for one in alone)
    np.testing.assert_allclose(joint.precision(), added, rtol=1e-12)


@pytest.mark.slow
def test_the_evidence_of_sampled_curvatures_is_that_of_the_mixture() -> None:
    learner = credo.bong(MODEL, credo.Diagonal(), credo.MonteCarloEmpiricalFisher(4000))
    belief = learner.init(MEAN, var=VAR)
    _, info = learner.update(belief, X, LABEL, key=0)
    draws = spread(5, 100_000)
    chances = jnp.exp(jax.vmap(log_likelihood)(draws))
    error = 5 * float(chances.std() / chances.mean()) / np.sqrt(4000)
    assert abs(float(info.log_evidence) - float(jnp.log(chances.mean()))) < error


def test_draws_need_a_key_and_pairs_an_even_number() -> None:
    learner = credo.bong(MODEL, credo.Diagonal(), "mc-ef")
    with pytest.raises(credo.CredoError, match=r"Monte Carlo curvature draws random numbers: pass key"):
        learner.update(learner.init(MEAN), X, LABEL)
    with pytest.raises(credo.CredoError, match="samples must be even for antithetic draws"):
        credo.MonteCarloHessian(3, antithetic=True)
