"""Densities of a set of particles against SciPy's, and of sets that have no density."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import gaussian_kde, multivariate_normal

from credo.particles import bandwidths, log_gaussian, log_kde, smooth
from credo.particles.density import moments, sound_root

RNG = np.random.default_rng(0)
SET = RNG.normal(size=(30, 3)) @ RNG.normal(size=(3, 3)) + 4.0
SHARES = RNG.dirichlet(np.ones(30))
POINTS = RNG.normal(size=(5, 3)) + 4.0
VALUES, LOGS = jnp.asarray(SET), jnp.log(jnp.asarray(SHARES))


def test_the_kernel_estimate_and_its_bandwidths_are_the_books() -> None:
    reference: Any = gaussian_kde(SET.T, weights=SHARES, bw_method="silverman")
    width = bandwidths(VALUES, LOGS)
    cov: Any = np.cov(SET.T, aweights=SHARES)
    np.testing.assert_allclose(width, reference.factor * np.sqrt(np.diag(cov)), rtol=1e-12)
    round_kernel: Any = np.diag(np.asarray(width) ** 2)
    each = [multivariate_normal(row, round_kernel).pdf(POINTS) for row in SET]
    found = log_kde(jnp.asarray(POINTS), VALUES, LOGS, width)
    np.testing.assert_allclose(found, np.log(SHARES @ np.array(each)), rtol=1e-11)
    normal = multivariate_normal(np.average(SET, axis=0, weights=SHARES), cov)
    np.testing.assert_allclose(
        log_gaussian(jnp.asarray(POINTS), VALUES, LOGS), normal.logpdf(POINTS), rtol=1e-11
    )


def test_a_smooth_set_keeps_mean_and_covariance() -> None:
    kernels = smooth(VALUES, LOGS)
    mean, cov = moments(VALUES, LOGS)
    # its moments in closed form: those of the centres, plus the kernels' covariance
    centres, spread = moments(kernels.color(kernels.centres), LOGS)
    np.testing.assert_allclose(centres, mean, rtol=1e-11)
    whole = spread + kernels.bandwidth**2 * kernels.root @ kernels.root.T
    np.testing.assert_allclose(whole, cov, rtol=1e-9)
    np.testing.assert_allclose(
        kernels.log_prob(VALUES),
        kernels.log_density(kernels.whiten(VALUES)) - jnp.linalg.slogdet(kernels.root)[1],
        rtol=1e-12,
    )


@pytest.mark.table
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_sets_without_a_density_have_a_finite_one(dtype: Any) -> None:
    equal, line = np.full((4, 2), 3.3), np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 1.0]])
    sets = jnp.asarray(np.stack([equal, line]), dtype)
    one = jnp.where(jnp.arange(4) == 0, 0.0, -jnp.inf).astype(dtype)
    weights = jnp.stack([jnp.full(4, -np.log(4), dtype), one])

    def look(values: jax.Array, logs: jax.Array) -> Any:
        width = bandwidths(values, logs)
        slopes = jax.grad(lambda z: jnp.sum(log_gaussian(z, values, logs)))(values)
        return jnp.log(width), log_kde(values[:1], values, logs, width), slopes

    found = jax.jit(jax.vmap(jax.vmap(look, (None, 0)), (0, None)))(sets, weights)
    assert all(leaf.dtype == dtype and bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(found))


def test_a_root_has_the_grain_of_its_coordinates_where_they_have_no_spread() -> None:
    """And is that of the covariance up to a few roundings, whatever its rank."""
    grain = jnp.array([0.1, 0.2, 0.3])
    root = np.asarray(sound_root(jnp.diag(jnp.array([0.0, 4.0, 0.01])), grain))
    np.testing.assert_allclose(root @ root.T, np.diag([0.01, 4.0, 0.09]), rtol=1e-13, atol=1e-15)
    line = np.outer([1.0, 2.0, -3.0], [1.0, 2.0, -3.0])
    root = np.asarray(sound_root(jnp.asarray(line), grain))
    assert np.all(np.diag(root) > 0)
    np.testing.assert_allclose(root @ root.T, line, rtol=1e-10)
