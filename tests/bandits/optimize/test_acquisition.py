"""What a point promises, against quadrature, Monte Carlo and the largest of many lines."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from credo.bandits.optimize.promises import (
    log_expected_improvement,
    log_knowledge_gradient,
    log_mean_excess,
)

NORMAL: Any = stats.norm


@jax.jit
def _gradient(means: Any, slopes: Any) -> Any:
    """The value of the knowledge gradient, and its slope by the slopes of the means."""
    return jax.value_and_grad(lambda b: jnp.exp(log_knowledge_gradient(means, b)))(slopes)


def _tail(z: float, power: int) -> float:
    """E[max(z + Z, 0)^power] / phi(z): the integral of u^power exp(u z - u^2 / 2) over u > 0."""
    scale = max(1.0, abs(z))

    def piece(v: float) -> float:
        u = v / scale
        return float(u**power * np.exp(u * z - 0.5 * u * u) / scale)

    ends = [0.0, 1.0, 5.0, 15.0, 50.0]
    parts = [integrate.quad(piece, a, b, epsabs=0.0, epsrel=1e-13)[0] for a, b in itertools.pairwise(ends)]
    return float(sum(parts))


def _excess(z: float) -> float:
    """log E[max(z + Z, 0)]."""
    return float(-0.5 * z * z - 0.5 * np.log(2 * np.pi) + np.log(_tail(z, 1)))


@pytest.mark.table
@pytest.mark.parametrize("z", [3.0, 0.0, -0.99, -1.01, -5.0, -19.0, -21.0, -40.0, -300.0, -1e5])
def test_the_logarithm_of_the_mean_excess_has_its_digits_far_in_the_tail(z: float) -> None:
    value, slope = jax.value_and_grad(log_mean_excess)(jnp.asarray(z))
    expected = _excess(z)
    assert abs(float(value) - expected) < 1e-10 * max(1.0, abs(expected))
    # h' / h, where h' = Phi; near |z| + 2 / |z| in the tail
    assert (
        abs(float(slope) * _tail(z, 1) / _tail(z, 0) - 1.0) < 1e-8 + 1e-15 * z * z
    )  # a difference of z^2 / 2
    single = float(log_mean_excess(jnp.asarray(z, jnp.float32)))
    assert abs(single - expected) < 3e-4 * max(1.0, abs(expected) * 1e-2)


@pytest.mark.parametrize(("mean", "sd", "best"), [(0.3, 1.7, 0.5), (-0.6, 0.4, 0.1), (5.0, 0.3, 1.0)])
def test_expected_improvement_is_its_integral(mean: float, sd: float, best: float) -> None:
    value = float(jnp.exp(log_expected_improvement(jnp.asarray(mean), jnp.asarray(sd), best)))
    distribution = NORMAL(mean, sd)
    exact, _ = integrate.quad(
        lambda f: (f - best) * distribution.pdf(f),
        best,
        max(best, mean) + 12 * sd,
        epsabs=1e-14,
        epsrel=1e-13,
    )
    assert abs(value - exact) < 1e-10
    draws = np.maximum(mean + sd * np.random.default_rng(0).standard_normal(400_000) - best, 0.0)
    assert abs(value - draws.mean()) < 5.0 * draws.std() / np.sqrt(draws.size)  # 5 standard errors


def _gain(means: np.ndarray, slopes: np.ndarray) -> float:
    """E[max(a + b Z)] - max a, by quadrature between all places where two lines cross."""
    gaps, rises = means[None, :] - means[:, None], slopes[:, None] - slopes[None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        cuts = (gaps / rises)[rises != 0]
    cuts = np.unique(np.concatenate([[-40.0], np.clip(cuts, -40.0, 40.0), [40.0]]))
    nodes, weights = np.polynomial.legendre.leggauss(40)
    total = 0.0
    for low, high in itertools.pairwise(cuts):
        for left, right in zip(*[np.linspace(low, high, 9)[i : i + 8] for i in (0, 1)], strict=True):
            z = 0.5 * (left + right) + 0.5 * (right - left) * nodes
            top = (means[:, None] + slopes[:, None] * z[None, :]).max(axis=0) - means.max()
            total += 0.5 * (right - left) * float(weights @ (top * NORMAL.pdf(z)))
    return total


@pytest.mark.table
@pytest.mark.parametrize("seed", range(6))
def test_the_knowledge_gradient_is_the_mean_of_the_largest_line(seed: int) -> None:
    rng = np.random.default_rng(seed)
    means, slopes = rng.normal(size=12), rng.normal(size=12)
    if seed % 2:  # equal lines, parallel ones, and three that cross at one place
        means[3], slopes[3] = means[2], slopes[2]
        slopes[5] = slopes[4]
        means[6:9], slopes[6:9] = 2.0, [-1.0, 0.0, 1.0]
    value = float(jnp.exp(log_knowledge_gradient(jnp.asarray(means), jnp.asarray(slopes))))
    assert abs(value - _gain(means, slopes)) < 1e-10
    draws = np.random.default_rng(9).standard_normal(100_000)
    tops = (means[:, None] + slopes[:, None] * draws[None, :]).max(axis=0) - means.max()
    assert abs(value - tops.mean()) < 5.0 * tops.std() / np.sqrt(draws.size)


@pytest.mark.slow
def test_an_observation_that_moves_no_mean_adds_nothing() -> None:
    means = jnp.asarray([0.0, 1.0, 0.5])
    assert float(log_knowledge_gradient(means, jnp.full(3, 0.7))) == -np.inf
    grad = jax.jit(jax.grad(log_knowledge_gradient, argnums=1))
    assert not np.any(np.isnan(grad(means, jnp.full(3, 0.7))))
    # 1e-30 away from nothing: the logarithm still has its digits
    value = float(log_knowledge_gradient(jnp.asarray([0.0, 12.0]), jnp.asarray([1.0, 0.0])))
    assert abs(value - _excess(-12.0)) < 1e-9


@given(st.integers(0, 2**32 - 1))
def test_the_slope_of_the_knowledge_gradient_is_that_of_its_value(seed: int) -> None:
    rng = np.random.default_rng(seed)
    means, slopes, move = rng.normal(size=(3, 7))
    slope = float(np.asarray(_gradient(means, slopes)[1]) @ move)
    step = 1e-6
    ends = [float(_gradient(means, slopes + sign * step * move)[0]) for sign in (1.0, -1.0)]
    # central differences: errors of step^2 and of rounding / step
    assert abs(slope - (ends[0] - ends[1]) / (2 * step)) < 1e-7
