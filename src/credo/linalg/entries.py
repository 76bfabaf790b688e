"""The diagonal and the triangle of square matrices; of small ones, by constants that a program has once.

In a scan, XLA moves every mask and every array of indices out of the loop on its own, and then no longer sees
that what two parts of a step compute from them is the same, such as a factor that a forecast and an update
both need.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.types import Array, DTypeLike

__all__ = ["SMALL", "diagonal", "framed", "identity", "lower", "raised"]

SMALL = 64
"""Up to here an identity matrix is a constant of the program, which holds all of its numbers."""


def identity(size: int, dtype: DTypeLike) -> Array:
    """The identity matrix (n, n), for small n as one constant for all of a program."""
    if size > SMALL:
        return jnp.eye(size, dtype=dtype)
    return jnp.asarray(_identity(size, np.dtype(dtype)))


@functools.lru_cache(maxsize=64)
def _identity(size: int, dtype: np.dtype) -> np.ndarray:
    eye = np.eye(size, dtype=dtype)
    eye.setflags(write=False)
    return eye


def lower(size: int) -> Array:
    """The places of the numbers of a lower triangular matrix (n, n), as one constant."""
    return jnp.asarray(_lower(size))


@functools.lru_cache(maxsize=64)
def _lower(size: int) -> np.ndarray:
    mask = np.tri(size, dtype=bool)
    mask.setflags(write=False)
    return mask


def diagonal(matrix: Array) -> Array:
    """The diagonal (n,) of a matrix (n, n), as a slice of its numbers.

    `jnp.diagonal` gathers them in a branch by platform, whose results XLA does not see to be equal in two
    parts of a step.
    """
    size = matrix.shape[0]
    own: Array = jax.lax.slice(matrix.reshape(-1), (0,), (size * size,), (size + 1,))
    return own


def framed(matrix: Array, scale: Array) -> Array:
    """diag(a) S diag(a) for a number a or an array (P,), symmetric to the last bit where S is."""
    if scale.ndim == 0:
        return matrix * scale**2
    return matrix * (scale[:, None] * scale[None, :])


def raised(matrix: Array, noise: Array) -> Array:
    """S + diag(d) for a number d or an array (P,). It touches P numbers of a matrix of which no other use is
    made; the sum with the matrix diag(d) would take a pass of its own. A small matrix is one kernel with what
    comes before and after.
    """
    size = matrix.shape[0]
    if size <= SMALL:
        small: Array = jnp.where(
            identity(size, np.dtype(bool)), matrix + jnp.broadcast_to(noise, (1, size)), matrix
        )
        return small
    places = jnp.arange(size)
    raised: Array = matrix.at[places, places].add(
        noise, indices_are_sorted=True, unique_indices=True, mode="promise_in_bounds"
    )
    return raised
