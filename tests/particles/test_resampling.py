"""Resampling gives every particle its expected number of offspring."""

from __future__ import annotations

from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credo.particles import effective_size, optimal_resample, resample
from credo.particles.resampling import Resampling

DRAWS, COUNT = 4000, 6
WEIGHTS = jnp.array(
    [
        [0.31, 0.02, 0.07, 0.25, 0.3, 0.05],
        [0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
        [1 / 6, 1 / 6, 1 / 6, 1 / 6, 1 / 6, 1 / 6],
        [0.5, 0.5, 0.0, 0.0, 0.0, 0.0],
        [1e-300, 0.4, 0.2, 0.2, 0.2, 0.0],
    ]
)
KEYS = jax.random.split(jax.random.key(0), DRAWS)


@pytest.mark.parametrize("method", get_args(Resampling))
def test_offspring_are_unbiased(method: Resampling) -> None:
    def counts(key: jax.Array, log_weights: jax.Array) -> jax.Array:
        return jnp.bincount(resample(key, log_weights, COUNT, method), length=6)

    offspring = jax.jit(jax.vmap(lambda w: jax.vmap(lambda key: counts(key, w))(KEYS)))(jnp.log(WEIGHTS))
    _agree(np.asarray(offspring, float), COUNT * np.asarray(WEIGHTS))
    assert np.all(offspring.sum(axis=-1) == COUNT)
    if method != "multinomial":  # no more than one away from the expectation; stratified: less than two
        most = 2 if method == "stratified" else 1
        assert np.all(np.abs(np.asarray(offspring) - COUNT * np.asarray(WEIGHTS)[:, None]) < most + 1e-9)


def test_optimal_resampling_keeps_each_particle_at_most_once_and_is_unbiased() -> None:
    def one(key: jax.Array, log_weights: jax.Array) -> tuple[jax.Array, jax.Array]:
        indices, logs = optimal_resample(key, log_weights, 3)
        return jnp.zeros(6).at[indices].add(jnp.exp(logs)), jnp.sum(jnp.bincount(indices, length=6) > 1)

    weights, repeats = jax.jit(jax.vmap(lambda w: jax.vmap(lambda key: one(key, w))(KEYS)))(jnp.log(WEIGHTS))
    _agree(np.asarray(weights), np.asarray(WEIGHTS))
    assert not np.any(repeats)


def test_the_effective_size_counts_particles() -> None:
    np.testing.assert_allclose(jax.vmap(effective_size)(jnp.log(WEIGHTS[1:4])), [1.0, 6.0, 2.0], rtol=1e-12)


def _agree(draws: np.ndarray, expected: np.ndarray) -> None:
    """The means over draws (K, DRAWS, N) are the expectations (K, N), within 5 standard errors."""
    error = draws.std(axis=1) / np.sqrt(DRAWS)
    assert np.all(np.abs(draws.mean(axis=1) - expected) < 5 * error + 1e-9)
