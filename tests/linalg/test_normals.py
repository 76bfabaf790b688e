"""Draws of standard normal numbers: each by itself exact, together as asked."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from credo.linalg.normals import _primes, standard_normals

KEYS = jax.random.split(jax.random.key(0), 400)


def many(count: int, size: int, antithetic: bool, quasi: bool) -> np.ndarray:
    """Draws for every key, (keys, count, size)."""
    draw = lambda key: standard_normals(key, count, size, jnp.float64, antithetic=antithetic, quasi=quasi)  # noqa: E731
    return np.asarray(jax.jit(jax.vmap(draw))(KEYS))


@pytest.mark.parametrize(("antithetic", "quasi"), list(itertools.product([False, True], repeat=2)))
def test_every_number_by_itself_is_standard_normal_over_keys(antithetic: bool, quasi: bool) -> None:
    drawn = many(6, 3, antithetic, quasi)
    for row, column in itertools.product(range(6), range(3)):
        assert scipy.stats.kstest(drawn[:, row, column], "norm").pvalue > 1e-4
    pairs = np.corrcoef(drawn[:, 0].T)[np.triu_indices(3, 1)]
    assert np.abs(pairs).max() < 4 / np.sqrt(len(KEYS))
    if antithetic:
        np.testing.assert_array_equal(drawn[:, 3:], -drawn[:, :3])


def test_evenly_spread_draws_average_smooth_functions_with_less_noise() -> None:
    """Means of 64 draws of cos(e_1) + tanh(e_1 + e_2 + e_3), whose expectation is exp(-1/2)."""
    sds = {}
    for quasi in (False, True):
        e = many(64, 3, False, quasi)
        means = (np.cos(e[..., 0]) + np.tanh(e.sum(axis=-1))).mean(axis=1)
        sds[quasi] = means.std(ddof=1)
        assert abs(means.mean() - np.exp(-0.5)) < 4 * sds[quasi] / np.sqrt(len(KEYS))
    assert sds[True] < 0.6 * sds[False]


def test_single_precision_draws_are_finite_and_large_vectors_are_of_primes() -> None:
    drawn = standard_normals(jax.random.key(1), 50, 20_000, jnp.float32, quasi=True)
    assert drawn.dtype == jnp.float32 and bool(jnp.all(jnp.isfinite(drawn)))
    assert abs(float(drawn.mean())) < 4e-3 and abs(float(drawn.std()) - 1) < 4e-3
    assert _primes(1).tolist() == [2]
    for count in (2, 5, 6, 7, 30, 1000):
        found = _primes(count)
        assert len(found) == count and all(np.all(p % np.arange(2, int(p**0.5) + 1)) for p in found)
    assert _primes(20_000)[-1] == 224_737
