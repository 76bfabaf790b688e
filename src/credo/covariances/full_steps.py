"""What both forms of a full covariance need for an update."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl

from credo.core.types import Array
from credo.linalg.matrices import cholesky

__all__ = ["narrowed", "vouched"]


def vouched(shift: Array, left: Array, right: Array) -> Array:
    """The move of the mean (P,), or NaN if the product left' right of rows (k, P) may not be finite.

    The rows of an update are products with the whole covariance, so they show whatever is not finite in it.
    """
    bound = left.shape[0] * jnp.max(jnp.abs(left)) * jnp.max(jnp.abs(right))
    return jnp.where(jnp.isfinite(jax.lax.stop_gradient(bound)), shift, jnp.nan)


def narrowed(root: Array, white: Array) -> Array:
    """A root of inv(inv(W W') + B' B), given B W: W L'^-1 with L L' = I + W' B' B W. Cost: P^3."""
    chol = cholesky(jnp.eye(root.shape[0], dtype=root.dtype) + white.T @ white)
    return jsl.solve_triangular(chol, root.T, lower=True).T
