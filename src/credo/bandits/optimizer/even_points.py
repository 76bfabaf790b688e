"""Points that fill a box evenly, one after another."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.types import Array

__all__ = ["even_points"]


def even_points(key: Array, first: Array | int, count: int, dimension: int) -> Array:
    """Points (count, d) of a low-discrepancy sequence in the unit cube, shifted at random.

    Point i, which counts from `first`, is shift + (i + 1) (1 / g, 1 / g^2, ...) modulo 1, where g^(d + 1) = g
    + 1: the additive sequence of Roberts (2018), which is that of the golden ratio for d = 1. Each point
    alone is uniform.
    """
    root = 2.0
    for _ in range(40):  # a contraction, so that this is exact
        root = (1.0 + root) ** (1.0 / (dimension + 1))
    steps = root ** -np.arange(1.0, dimension + 1.0)
    kind = jnp.result_type(float)
    shift = jax.random.uniform(key, (dimension,), kind)
    numbers = (jnp.arange(1, count + 1, dtype=jnp.int32) + jnp.asarray(first, jnp.int32)).astype(kind)
    return jnp.mod(shift[None, :] + numbers[:, None] * jnp.asarray(steps, kind)[None, :], 1.0)
