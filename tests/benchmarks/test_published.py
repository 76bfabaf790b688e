"""The transcribed updates that speed is compared with do the same mathematics as credo's."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import credo
from credo.covariances.low_rank import LowRankCovariance

SOURCE = Path(__file__).parents[2] / "benchmarks" / "published.py"
RNG = np.random.default_rng(8)


def load() -> Any:
    spec = importlib.util.spec_from_file_location("published", SOURCE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


published = load()


def dot(theta: jax.Array, x: jax.Array) -> jax.Array:
    return x @ theta


@pytest.mark.slow
def test_full_transcriptions_learn_what_credo_learns() -> None:
    x, y = jnp.asarray(RNG.normal(size=(6, 3))), jnp.asarray(RNG.integers(0, 2, 6))
    problem, start = published.bernoulli(dot, 0.0), published.Full(jnp.zeros(3), 0.5 * jnp.eye(3))
    model, family = credo.Model(dot, credo.Bernoulli()), credo.Full()
    pairs = [
        (published.full_bong_lin_hess(problem), credo.bong(model, family)),
        (
            published.full_blr_lin_hess(problem, 0.3, 4),
            credo.blr(model, family, learning_rate=0.3, iterations=4),
        ),
    ]
    for update, learner in pairs:
        end = published.scan(update)(jax.random.key(0), start, x, y[:, None].astype(float))
        belief, _ = credo.run(learner, learner.init(jnp.zeros(3), var=0.5), x, y)
        np.testing.assert_allclose(end.mean, belief.mean, atol=1e-9)
        np.testing.assert_allclose(end.cov, belief.cov.dense(), atol=1e-9)


@pytest.mark.slow
def test_draws_of_the_transcription_have_the_moments_that_credo_conditions_on() -> None:
    """With its own draws redone, BONG with MC-EF adds the mean of the outer products of the gradients."""
    x, y = jnp.asarray(RNG.normal(size=3)), jnp.ones(1)
    problem, start = published.bernoulli(dot, 0.0), published.Full(jnp.zeros(3), 0.5 * jnp.eye(3))
    end = published.full_bong_mc_ef(problem, 20)(jax.random.key(1), start, x, y)
    draws = jax.random.multivariate_normal(jax.random.key(1), start.mean, start.cov, (20,))
    gradients = (1 - jax.nn.sigmoid(draws @ x))[:, None] * x[None, :]
    kept = credo.Full().from_dense(start.cov).condition(gradients / np.sqrt(20))
    np.testing.assert_allclose(end.cov, kept.dense(), atol=1e-9)
    np.testing.assert_allclose(end.mean, kept.mv(gradients.mean(axis=0)), atol=1e-9)


@pytest.mark.thorough
def test_low_rank_transcriptions_learn_what_credo_learns() -> None:
    net = credo.MLP(3, (4,), "tanh")
    params = jax.tree.map(lambda v: v.astype(jnp.float64), net.init(0, (2,)))
    theta, unravel = ravel_pytree(params)
    x, y = jnp.asarray(RNG.normal(size=(4, 2))), jnp.asarray(RNG.integers(0, 3, 4))
    problem = published.categorical(lambda v, row: net(unravel(v), row), 1e-9)
    start = published.DLR(theta, jnp.full((theta.size, 1), 4.0), jnp.zeros((theta.size, 2)))
    model, family = credo.Model(net, credo.Categorical(3)), credo.LowRank(2)
    bong = credo.bong(model, family)
    for project in (published.project_gram, published.project_svd):
        update = published.dlr_bong_lin_hess(problem, project)
        with jax.numpy_rank_promotion("allow"):
            end = published.scan(update)(jax.random.key(0), start, x, jax.nn.one_hot(y, 3, dtype=float))
        belief, _ = credo.run(bong, bong.init(params, var=0.25), x, y)
        np.testing.assert_allclose(end.mean, belief.mean, atol=1e-6)
        assert isinstance(belief.cov, LowRankCovariance)
        np.testing.assert_allclose(end.diag[:, 0], cast(Any, belief.cov).base, atol=1e-6)
    # In the first iteration of the first step nothing has been forgotten yet, so the two gains agree.
    update = published.dlr_blr_lin_hess(problem, 0.3, 1)
    with jax.numpy_rank_promotion("allow"):
        end = published.scan(update)(jax.random.key(0), start, x[:1], jax.nn.one_hot(y[:1], 3, dtype=float))
    once = credo.blr(model, family, learning_rate=0.3, iterations=1)
    belief, _ = once.step(once.init(params, var=0.25), x[0], y[0])
    np.testing.assert_allclose(end.mean, belief.mean, atol=1e-6)
    np.testing.assert_allclose(end.diag[:, 0], cast(Any, belief.cov).base, atol=1e-6)
