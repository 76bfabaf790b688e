"""The kernel Bayes rule and the kernel Monte Carlo filter against Kalman, and their parts by hand."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.errors import CredoError
from credo.particles import (
    KernelBayes,
    KernelFilter,
    bandwidths,
    gaussian_gram,
    herd,
    kernel_bayes_weights,
)
from credo.particles.kernel_bayes import _herded

MODEL = credo.Model(lambda z, x: z, credo.Normal(1.0))
DYNAMICS = credo.Decay(0.9, 0.3)


def test_the_weights_are_those_of_the_published_formula_in_one_scale() -> None:
    """w = L G_y inv((L G_y)^2 + delta I) L k_y, with mu = n inv(G_x + n eps I) m and n^2 delta there."""
    count = 30
    xs = jax.random.normal(jax.random.key(0), (count, 2))
    ys = xs + jax.random.normal(jax.random.key(1), (count, 2))
    gram_x, gram_y = gaussian_gram(xs, xs, 1.2), gaussian_gram(ys, ys, 1.5)
    prior, column = gram_x.mean(1), gaussian_gram(ys, jnp.ones((1, 2)), 1.5)[:, 0]
    weights = kernel_bayes_weights(gram_x, gram_y, prior, column, prior_ridge=0.01, ridge=1e-4)
    mu = count * np.linalg.solve(gram_x + count * 0.01 * np.eye(count), prior)
    scaled = np.diag(mu) @ np.asarray(gram_y)
    published = scaled @ np.linalg.solve(
        scaled @ scaled + count**2 * 1e-4 * np.eye(count), mu * np.asarray(column)
    )
    np.testing.assert_allclose(weights, published / published.sum(), rtol=1e-9, atol=1e-11)
    # of another power of the likelihood, which is w / mu where that is positive
    squared = kernel_bayes_weights(gram_x, gram_y, prior, column, prior_ridge=0.01, ridge=1e-4, power=2.0)
    likelihood = np.where((published > 0) & (mu > 0), published / mu, 0.0)
    assert np.any(likelihood == 0)
    np.testing.assert_allclose(squared, mu * likelihood**2 / (mu @ likelihood**2), rtol=1e-8, atol=1e-11)


def test_herding_divides_by_the_number_of_points_and_so_keeps_the_kernel_mean() -> None:
    """Its error falls as 1 / p; without the division the points are spread as the candidates are."""
    points = jax.random.normal(jax.random.key(2), (60, 1))
    weights = jax.nn.softmax(2.0 * points[:, 0])
    gram = gaussian_gram(points, points, 0.7)
    chosen = herd(gram @ weights, gram, 200)
    error = jnp.bincount(chosen, length=60) / 200 - weights
    # 200 independent draws are off by sqrt((1 - m'Gm) / 200) = 0.06 in the norm of the kernel's space
    assert float(jnp.sqrt(error @ gram @ error)) < 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    "learner", [KernelBayes(MODEL, 128, DYNAMICS), KernelFilter(MODEL, 128, DYNAMICS, pairs=128)]
)
def test_the_kernel_filters_follow_kalman(learner: KernelBayes | KernelFilter) -> None:
    """Means within 0.5 posterior standard deviations of the exact ones (root mean square over 20 steps).

    The regression on 128 pairs has an error of 0.1 to 0.3 in each step, which the dynamics forget, and more
    where an observation has few pairs near it, as the last one here. Without updates the error is the spread
    of the exact means, 1.5.
    """
    rng, state, rows = np.random.default_rng(3), 0.5, []
    for _ in range(20):
        state = 0.9 * state + np.sqrt(0.3) * rng.normal()
        rows.append([state + rng.normal()])
    ys = jnp.asarray(rows)

    def track(follower: credo.Learner[Any], start: object) -> tuple[jax.Array, jax.Array]:
        def body(belief: object, y: jax.Array) -> tuple[object, tuple[jax.Array, jax.Array]]:
            belief, _ = follower.step(belief, None, y)
            return belief, (belief.mean[0], belief.sd[0])  # type: ignore[attr-defined]

        return jax.lax.scan(body, start, ys)[1]

    exact = credo.extended_kalman(MODEL, dynamics=DYNAMICS)
    means, sds = track(exact, exact.init(jnp.zeros(1)))
    found, spreads = track(learner, learner.init(jnp.zeros(1), key=1))
    assert float(jnp.sqrt(jnp.mean(((found - means) / sds) ** 2))) < 0.5
    assert float(jnp.sqrt(jnp.mean((means / sds) ** 2))) > 1.0
    assert 0.8 < float(jnp.mean(spreads / sds)) < 1.25


@pytest.mark.slow
def test_equal_particles_and_uneven_weights_are_refused_and_examples_must_fit() -> None:
    learner = KernelBayes(MODEL, 8)
    equal = learner.init(jnp.zeros(1), values=jnp.ones((8, 1)))
    after, info = learner.step(equal, None, jnp.ones(1))
    assert not bool(info.ok) and bool(jnp.all(after.values == 1.0))
    with pytest.raises(CredoError, match="examples must be"):
        KernelFilter(MODEL, 8, examples=(jnp.ones((5, 2)), jnp.ones(5))).init(jnp.zeros(1))
    measured = KernelFilter(
        MODEL, 8, examples=(jnp.linspace(-1, 1, 9)[:, None], jnp.linspace(-1, 1, 9)[:, None])
    )
    belief, info = measured.step(measured.init(jnp.zeros(1)), None, jnp.full(1, 0.5))
    assert bool(info.ok) and float(belief.mean[0]) > 0.1


def test_a_row_of_weight_zero_says_nothing_whatever_it_holds() -> None:
    learner = KernelBayes(credo.joint(credo.Model(lambda z, x: x * z, credo.Normal(1.0))), 16)
    start = learner.init(jnp.zeros(1), key=2)
    x, weight = jnp.ones((3, 1)), jnp.array([1.0, 0.0, 1.0])

    def after(y: float) -> Any:
        return learner.update(start, x, jnp.array([[0.5], [y], [1.0]]), weight=weight)

    (one, info), (other, same) = after(0.0), after(40.0)
    assert info.ok and one == other and not jnp.array_equal(one.values, start.values)
    assert info.log_evidence == same.log_evidence


def test_herded_points_are_particles_or_copies_with_a_share_of_the_bandwidth_of_noise() -> None:
    values = jax.random.normal(jax.random.key(4), (40, 2)) * jnp.array([[1.0, 3.0]])
    weights, key = jnp.full(40, 1 / 40), jax.random.key(6)
    points = _herded(values, weights, key, count=60, scale=1.0, jitter=0.5)
    # of the root mean square, while the bandwidths are those of the sample standard deviation
    wide = 0.5 * bandwidths(values) * np.sqrt(39 / 40)
    copies = values + wide[None, :] * jax.random.normal(key, values.shape, values.dtype)
    candidates = np.concatenate([values, copies])
    gaps = np.abs(np.asarray(points)[:, None, :] - candidates[None]).max(axis=2)
    assert gaps.min(axis=1).max() < 1e-10
    assert 0 < np.sum(gaps.argmin(axis=1) >= 40) < 60
