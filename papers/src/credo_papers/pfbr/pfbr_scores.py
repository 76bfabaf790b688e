"""Beliefs as weighted sets, and their scores against a posterior that is known."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from credo.beliefs import Ensemble, Gaussian, Particles
from credo.core.types import Array
from credo_papers.engine.any_learner import AnyBelief
from credo_papers.engine.discrepancies import gaussian_squared_mmd, sliced_wasserstein, squared_mmd
from credo_papers.engine.particle_scores import (
    covariance_error,
    gaussian_cross_entropy,
    integral_errors,
    kde_cross_entropy,
    mean_error,
)

__all__ = ["DRAWS", "WeightedSet", "normal_draws", "score_draws", "score_normal", "weighted_set"]

DRAWS = 5000
"""Draws from the posterior for a cross-entropy, as published."""

FEW = 500
"""Draws for the distances whose cost grows with the square of their number."""


class WeightedSet(NamedTuple):
    """A set of particles.

    Attributes:
        values: (N, d).
        log_weights: (N,), which sum to one.
    """

    values: Array
    log_weights: Array


def weighted_set(belief: AnyBelief, count: int, key: Array) -> WeightedSet:
    """Return a belief as a weighted set: its own particles, or draws from it if it has a density.

    Arguments:
        belief: of any learner.
        count: how many draws, where the belief is normal.
        key: the key of the draws.
    """
    if isinstance(belief, Particles):
        return WeightedSet(belief.values, belief.log_weights)
    if isinstance(belief, Ensemble):
        values = belief.members
    else:
        assert isinstance(belief, Gaussian)
        draws: Array = belief.cov.sample(key, (count,))
        values = belief.mean[None, :] + draws
    return WeightedSet(values, jnp.full(values.shape[0], -jnp.log(float(values.shape[0])), values.dtype))


def normal_draws(mean: Array, cov: Array, key: Array, count: int = DRAWS) -> tuple[Array, Array]:
    """Return draws (count, d) from N(mean, cov), and by how much their mean -log p exceeds the entropy."""
    root: Array = jnp.linalg.cholesky(cov)
    white = jax.random.normal(key, (count, mean.shape[0]), mean.dtype)
    return mean[None, :] + white @ root.T, 0.5 * (jnp.mean(jnp.sum(white**2, axis=1)) - mean.shape[0])


def score_normal(
    mean: Array, cov: Array, particles: WeightedSet, key: Array, draws: int = DRAWS, few: bool = False
) -> dict[str, Array]:
    """Return the scores of a set against the posterior N(mean, cov), by name.

    Arguments:
        mean: (d,).
        cov: (d, d).
        particles: the set.
        key: the key of the draws from the posterior.
        draws: how many.
        few: whether both cross-entropies and the MMD are enough.
    """
    values, excess = normal_draws(mean, cov, key, draws)
    # what the draws are off by in their own distribution is taken away: the same expectation, with less noise
    scores = {
        "KDE": kde_cross_entropy(values, *particles) - excess,
        "Gaussian": gaussian_cross_entropy(mean, cov, *particles),
        "MMD2": gaussian_squared_mmd(mean, cov, *particles),
    }
    if few:
        return scores
    # the published test functions are not at hand: these are standard normal, and the same for all methods
    size = mean.shape[0]
    dtype = mean.dtype
    first, second = jax.random.split(jax.random.key(0))
    left, right = jax.random.normal(first, (2, size, size), dtype)
    offset, shift = jax.random.normal(second, (2, size), dtype)
    errors = integral_errors(mean, cov, *particles, first=(left, offset), second=(right, shift))
    return scores | {
        "mean": mean_error(mean, *particles),
        "covariance": covariance_error(cov, *particles),
        "x'AAx": errors.quadratic,
        "product": errors.product,
        "W2": sliced_wasserstein(values[:FEW], *particles, directions=8, key=second),
    }


def score_draws(draws: Array, particles: WeightedSet) -> dict[str, Array]:
    """Return the scores of a set against a posterior that is known by many draws, by name.

    Arguments:
        draws: (S, d).
        particles: the set.
    """
    mean = jnp.mean(draws, axis=0)
    cov = jnp.cov(draws.T)
    few = draws[:FEW]
    return {
        "KDE": kde_cross_entropy(draws, *particles),
        "half KDE": kde_cross_entropy(draws, *particles, width=0.5),
        "Gaussian": gaussian_cross_entropy(mean, cov, *particles),
        "MMD2": squared_mmd(few, *particles),
        "mean": mean_error(mean, *particles),
        "covariance": covariance_error(cov, *particles),
        "W2": sliced_wasserstein(few, *particles, directions=8, key=0),
    }
