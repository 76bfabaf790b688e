"""The factor on the left of outer rows: none, an array, or centred at a mean of the rows."""

from __future__ import annotations

from typing import TypeAlias

import jax.numpy as jnp

from credo.core.records import record, replace
from credo.core.types import Array
from credo.linalg.matrices import scale_rows

__all__ = ["Centred", "Left", "centre", "enter", "leave", "left_scale", "left_where"]


@record
class Centred:
    """The matrix L = diag(d) - u v' (k, k), whose products with n columns cost k n instead of k^2 n."""

    diagonal: Array
    column: Array
    weights: Array


Left: TypeAlias = Array | Centred | None
"""A factor L (k, n) on the left of n products; None for the identity."""


def centre(weights: Array) -> Centred:
    """I - 1 v', which takes from every row the mean of the rows under the weights v (k,)."""
    ones = jnp.ones_like(weights)
    return Centred(ones, ones, weights)


def leave(products: Array, left: Left) -> Array:
    """What holds of the products (..., n) as what holds of the rows (..., k): X L'."""
    if left is None:
        return products
    if isinstance(left, Centred):
        return scale_rows(products, left.diagonal) - scale_rows(
            jnp.broadcast_to((products @ left.weights)[..., None], products.shape), left.column
        )
    return products @ left.T


def enter(coefficients: Array, left: Left) -> Array:
    """Coefficients of the rows (..., k) as coefficients of the products (..., n): C L."""
    if left is None:
        return coefficients
    if isinstance(left, Centred):
        return scale_rows(coefficients, left.diagonal) - scale_rows(
            jnp.broadcast_to((coefficients @ left.column)[..., None], coefficients.shape), left.weights
        )
    return coefficients @ left


def left_scale(left: Left, column: Array) -> Left:
    """diag(c) L."""
    if left is None:
        return jnp.diag(column)
    if isinstance(left, Centred):
        return replace(left, diagonal=column * left.diagonal, column=column * left.column)
    return column[:, None] * left


def left_where(left: Array | Centred, keep: Array) -> Left:
    """L with the rows whose `keep` (k,) is False set to zero."""
    if isinstance(left, Centred):
        diagonal, column = (jnp.where(keep, part, 0.0) for part in (left.diagonal, left.column))
        return replace(left, diagonal=diagonal, column=column)
    return jnp.where(keep[:, None], left, 0.0)
