"""Draws of a standard normal distribution whose moments are exact."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from credo.flows.densities import standard


@pytest.mark.slow
def test_draws_have_the_moments_under_their_weights_and_are_uncorrelated_with_others() -> None:
    count, size = 30, 3
    weights = jax.random.dirichlet(jax.random.key(0), jnp.full(count, 2.0)).at[4].set(0.0)
    weights = weights / weights.sum()
    beside = jax.random.normal(jax.random.key(1), (count, 2))
    draws = standard(jax.random.key(2), count, size, jnp.float64, jnp.log(weights), beside)
    spare = 1 - jnp.sum(weights**2)
    assert jnp.allclose(weights @ draws, 0.0, atol=1e-10)
    assert jnp.allclose(draws.T @ (weights[:, None] * draws) / spare, jnp.eye(size), atol=1e-10)
    assert jnp.allclose(beside.T @ (weights[:, None] * draws), 0.0, atol=1e-10)
    plain = jax.random.normal(jax.random.key(2), (count, size))
    assert jnp.array_equal(draws[4], plain[4])  # without a weight there is nothing to match
    even = standard(jax.random.key(2), count, size, jnp.float64)
    assert jnp.allclose(jnp.cov(even.T), jnp.eye(size), atol=1e-10)


def test_draws_that_cannot_have_these_moments_stay_as_they_are() -> None:
    plain = jax.random.normal(jax.random.key(2), (6, 3))
    alone = jnp.where(jnp.arange(6) == 2, 0.0, -jnp.inf)
    assert jnp.array_equal(standard(jax.random.key(2), 6, 3, jnp.float64, alone), plain)
    few = jax.random.normal(jax.random.key(2), (4, 3))
    assert jnp.array_equal(standard(jax.random.key(2), 4, 3, jnp.float64), few)
