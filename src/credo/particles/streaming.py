"""The common parts of learners of a stream of known or unknown length."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.beliefs import Particles
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, PyTree
from credo.linalg.matrices import cholesky, solve_lower
from credo.models.model import Model
from credo.particles.base import ParticleLearner

__all__ = ["row_scale", "separated", "standardized", "whole_evidence"]


def row_scale(total: ArrayLike, model: Model, y: PyTree, like: Array) -> Array:
    """n / B: how many times the rows of y the whole stream of n rows has, as a scalar."""
    return as_like(total, like) / (model.likelihood.rows(y) if model.batched else 1)


def whole_evidence(learner: ParticleLearner, belief: Particles, x: PyTree, y: PyTree, weight: Array) -> Array:
    """log sum_i w_i p(y | z_i, x) of the rows that have any weight, a scalar."""
    whole = (weight > 0).astype(belief.values.dtype)
    logs = learner.log_likelihood(belief.values, belief.unravel, x, y, whole)
    return jnp.asarray(jax.nn.logsumexp(belief.log_weights + logs))


def standardized(draws: Array) -> Array:
    """Draws (N, P) of a standard normal, shifted and stretched to mean 0 and covariance I exactly.

    Moments that are estimated from such draws have no error of their own. Where N - 1 < P no stretch can give
    the covariance I, and the draws are only centred.
    """
    count, size = draws.shape
    gaps = draws - jnp.mean(draws, axis=0)[None, :]
    if count - 1 < size:
        return gaps
    root = cholesky(gaps.T @ gaps / (count - 1))
    return solve_lower(root, gaps.T).T


def separated(draws: Array, others: Array) -> Array:
    """Standardised draws (N, P) without any sample correlation with other columns (N, Q).

    Sums of the two then have the moments that theory says, without an error of the sample. Where N - 1 is
    below P + Q the draws are only standardised.
    """
    count, size = draws.shape
    if count - 1 < size + others.shape[1]:
        return standardized(draws)
    basis, _ = jnp.linalg.qr(jnp.concatenate([jnp.ones((count, 1), draws.dtype), others], axis=1))
    return standardized(draws - basis @ (basis.T @ draws))
