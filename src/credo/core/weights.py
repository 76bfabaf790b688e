"""Log weights of candidates, one of which is right at a time."""

from __future__ import annotations

import jax.numpy as jnp

from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike

__all__ = ["fixed_share"]


def fixed_share(log_weights: Array, rate: ArrayLike) -> Array:
    """The log weights (K,) after a step in which another candidate takes over with a probability `rate`.

        w_k <- (1 - rate) w_k + rate (1 - w_k) / (K - 1)

    for weights that sum to one (Herbster & Warmuth 1998). A rate of 0 leaves them bit by bit.
    """
    size = log_weights.shape[0]
    if size == 1:
        return log_weights
    share = as_like(rate, log_weights)
    enter = share / (size - 1)
    moved = jnp.log((1.0 - size * enter) * jnp.exp(log_weights) + enter)
    return jnp.where(share > 0, moved, log_weights)
