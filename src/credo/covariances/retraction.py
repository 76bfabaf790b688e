"""How a step in a precision or covariance stays positive definite.

A step changes a positive matrix M to M^1/2 (I + X) M^1/2. Where X has an eigenvalue below -1 the result is no
covariance; the safe retraction replaces 1 + x by 1 + x + x^2 / 2 for x < 0, which is never below 1/2 and
agrees with the step to first order. On whole matrices the same is M + D + D inv(M) D / 2 (Lin, Schmidt & Khan
2020, arXiv 2002.10060, for the natural gradient).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.linalg.matrices import eigh, symmetric

__all__ = ["RETRACTIONS", "retract", "retract_matrix"]

RETRACTIONS = ("safe", "exact")


def retract(change: jax.Array, retraction: str) -> jax.Array:
    """The factor in place of 1 + x, elementwise; NaN where an exact step leaves the positive numbers."""
    if retraction == "exact":
        return jnp.where(change > -1.0, 1.0 + change, jnp.nan)
    return 1.0 + change + jnp.where(change < 0, 0.5 * change**2, 0.0)


def retract_matrix(change: jax.Array, retraction: str) -> tuple[jax.Array, jax.Array]:
    """The eigenvalues (n,), retracted, and eigenvectors (n, n) of I + X for a symmetric X (n, n)."""
    values, vectors = eigh(symmetric(change))
    return retract(values, retraction), vectors
