"""Metrics of weighted sets agree with closed forms, with scikit-learn and with repeated particles."""

from __future__ import annotations

from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credo.core.types import Array
from credo_papers.engine.discrepancies import (
    KernelName,
    gaussian_squared_mmd,
    kernel_matrix,
    sliced_wasserstein,
    squared_mmd,
)
from credo_papers.engine.particle_scores import (
    covariance_error,
    gaussian_cross_entropy,
    gaussian_entropy,
    integral_errors,
    kde_cross_entropy,
    mean_error,
)

MEAN, COV = jnp.array([1.0, -2.0]), jnp.array([[2.0, 0.6], [0.6, 1.0]])


def draws(count: int, seed: int) -> Array:
    normal = jax.random.normal(jax.random.key(seed), (count, 2))
    root: Array = jnp.linalg.cholesky(COV)
    return MEAN[None, :] + normal @ root.T


def repeated() -> tuple[Array, Array, Array]:
    """A weighted set, and the equally weighted set in which particles are repeated."""
    values, counts = draws(6, 3), np.array([1, 2, 3, 1, 2, 1])
    return values, jnp.log(jnp.asarray(counts / counts.sum())), jnp.repeat(values, counts, axis=0)


def test_the_gaussian_cross_entropy_is_the_entropy_plus_the_divergence() -> None:
    # a set whose moments are exactly MEAN and COV
    corners = jnp.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]) * np.sqrt(3 / 4)
    exact = MEAN[None, :] + corners @ jnp.linalg.cholesky(COV).T
    assert gaussian_cross_entropy(MEAN, COV, exact) == pytest.approx(float(gaussian_entropy(COV)), abs=1e-9)
    gap = jnp.array([0.3, -0.1])
    more = float(0.5 * gap @ jnp.linalg.solve(COV, gap))
    moved = gaussian_cross_entropy(MEAN + gap, COV, exact) - gaussian_entropy(COV)
    assert float(moved) == pytest.approx(more, abs=1e-9)
    assert float(mean_error(MEAN, exact)) < 1e-12 and float(covariance_error(COV, exact)) < 1e-9


@pytest.mark.slow
def test_the_kde_cross_entropy_comes_close_to_the_entropy_and_weights_are_repetitions() -> None:
    score = kde_cross_entropy(draws(4000, 0), draws(2000, 1))
    # two standard errors of 4000 draws, and the known excess of 2000 particles (.016)
    assert float(score - gaussian_entropy(COV)) == pytest.approx(0.016, abs=2 / np.sqrt(4000))


@pytest.mark.table
@pytest.mark.parametrize("kernel", get_args(KernelName))
def test_kernels_are_those_of_scikit_learn_and_mmd_takes_weights(kernel: KernelName) -> None:
    pairwise = pytest.importorskip("sklearn.metrics.pairwise")
    x, y = draws(5, 4), draws(7, 5)
    theirs = pairwise.pairwise_kernels(np.asarray(x), np.asarray(y), metric=kernel)
    np.testing.assert_allclose(kernel_matrix(kernel, x, y), theirs, rtol=1e-10)
    equal = jnp.full(7, -np.log(7.0))
    np.testing.assert_allclose(squared_mmd(x, y, None, kernel), squared_mmd(x, y, equal, kernel), atol=1e-12)
    full = np.asarray(kernel_matrix(kernel, x, x)).sum() - np.diagonal(kernel_matrix(kernel, x, x)).sum()
    other = np.asarray(kernel_matrix(kernel, y, y)).sum() - np.diagonal(kernel_matrix(kernel, y, y)).sum()
    textbook = full / 20 - 2 * theirs.mean() + other / 42
    np.testing.assert_allclose(squared_mmd(x, y, None, kernel), textbook, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_mmd_against_a_normal_distribution_needs_no_draws() -> None:
    values, log_weights, _ = repeated()
    exact = gaussian_squared_mmd(MEAN, COV, values, log_weights)
    sampled = squared_mmd(draws(1000, 6), values, log_weights)
    # k is within [0, 1], so the error of the mean over 1000 draws has an sd below 2 * .5 / sqrt(1000)
    assert float(exact) == pytest.approx(float(sampled), abs=0.06)


def test_integrals_have_their_closed_forms() -> None:
    rng = np.random.default_rng(0)
    a, b = ((jnp.asarray(rng.normal(size=(2, 2))), jnp.asarray(rng.normal(size=2))) for _ in range(2))
    values, log_weights, several = repeated()
    share = jnp.exp(log_weights)
    mean = share @ values
    cov = (values - mean[None, :]).T @ ((values - mean[None, :]) * share[:, None])
    # a set is its own distribution, so that all errors vanish
    for error in integral_errors(mean, cov, values, log_weights, first=a, second=b):
        assert float(error) < 1e-9
    weighted = integral_errors(MEAN, COV, values, log_weights, first=a, second=b)
    np.testing.assert_allclose(integral_errors(MEAN, COV, several, first=a, second=b), weighted, rtol=1e-9)


@pytest.mark.slow
def test_sliced_wasserstein_is_exact_in_one_dimension_and_takes_weights() -> None:
    line = jnp.array([[0.0], [1.0], [5.0]])
    assert float(sliced_wasserstein(line, line + 2.0, directions=3)) == pytest.approx(2.0, abs=1e-9)
    # half of the mass at 0 moves to 1: W2^2 = 1/2
    half = sliced_wasserstein(jnp.zeros((1, 1)), jnp.array([[0.0], [1.0]]), directions=2)
    assert float(half) == pytest.approx(np.sqrt(0.5), abs=1e-9)
    values, log_weights, several = repeated()
    target = draws(50, 7)
    weighted = sliced_wasserstein(target, values, log_weights, directions=8)
    assert float(weighted) == pytest.approx(
        float(sliced_wasserstein(target, several, directions=8)), abs=1e-9
    )
