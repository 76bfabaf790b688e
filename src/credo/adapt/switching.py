"""How the right one of several learners changes: by one rate, a matrix, or several rates that are weighed."""

from __future__ import annotations

import jax.numpy as jnp

from credo.core.errors import CredoError
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike

__all__ = ["log_transition", "share"]


def log_transition(switching: ArrayLike, like: Array) -> Array:
    """log M (K, K), M[j, k] that k takes over from j; one probability is shared equally by the others."""
    size = like.shape[-1]
    rate = as_like(switching, like)
    if rate.ndim == 2:
        if rate.shape != (size, size):
            raise CredoError(f"switching must be a number or ({size}, {size}); got shape {rate.shape}.")
        return jnp.log(rate)
    eye = jnp.eye(size, dtype=like.dtype)
    if size == 1:
        return jnp.log(eye)
    return jnp.log((1.0 - rate) * eye + rate * (1.0 - eye) / (size - 1))


def share(rates: Array, log_joint: Array) -> Array:
    """The joint log weights (R, K) of R rates and K learners after one step of each rate's fixed share.

    w_rk <- (1 - s_r) w_rk + s_r (sum_j w_rj - w_rk) / (K - 1), of which every rate keeps its sum. A rate of 0
    leaves its own bit by bit.
    """
    size = log_joint.shape[1]
    if size == 1:
        return log_joint
    enter = rates[:, None] / (size - 1)
    top = jnp.max(log_joint, axis=1, keepdims=True)
    top = jnp.where(top > -jnp.inf, top, 0.0)
    weights = jnp.exp(log_joint - top)
    moved = (1.0 - size * enter) * weights + enter * jnp.sum(weights, axis=1, keepdims=True)
    return jnp.where(enter > 0, top + jnp.log(jnp.maximum(moved, 0.0)), log_joint)
