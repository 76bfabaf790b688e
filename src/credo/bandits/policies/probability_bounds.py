"""The nearest probabilities between bounds."""

from __future__ import annotations

import jax.numpy as jnp

from credo.core.types import Array

__all__ = ["nearest_between"]


def nearest_between(wanted: Array, low: Array, high: Array) -> Array:
    """The probabilities (K,) nearest to those wanted (least squares) that lie between bounds and sum to 1.

    They are clip(wanted + tau, low, high) with one water level tau, where sum(low) <= 1 <= sum(high). The sum
    is piecewise linear in tau with 2 K known corners, so tau is exact: between the corners around 1, by
    interpolation. Clipping and dividing by the sum would break the bounds again.
    """

    corners = jnp.sort(jnp.concatenate([low - wanted, high - wanted]))
    sums = jnp.sum(jnp.clip(wanted[None] + corners[:, None], low[None], high[None]), axis=-1)
    below = jnp.sum(sums < 1.0) - 1
    start = jnp.clip(below, 0, corners.shape[0] - 2)
    rise = sums[start + 1] - sums[start]
    share = jnp.where(rise > 0, (1.0 - sums[start]) / jnp.where(rise > 0, rise, 1.0), 0.0)
    level = corners[start] + jnp.clip(share, 0.0, 1.0) * (corners[start + 1] - corners[start])
    return jnp.clip(wanted + level, low, high)
