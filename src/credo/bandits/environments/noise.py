"""Gaussian noise that has the same bits in a loop, in a scan and in many runs at once."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike
from credo.linalg.matrices import rounded

__all__ = ["add_noise"]

BEYOND = 100.0
"""No normal draw is larger, which a compiler does not know."""


def add_noise(key: Array, values: Array, sd: ArrayLike) -> Array:
    """A draw from N(values, sd^2), of the shape of `values`.

    The product of `sd` and the draw is rounded before it is added, see `credo.linalg.matrices.rounded`.
    """
    normal = jax.random.normal(key, values.shape, values.dtype)
    never = (normal > jnp.asarray(BEYOND, normal.dtype)).astype(jnp.int32)
    return values + rounded(as_like(sd, values) * normal, -never)
