"""How a step in a precision or covariance stays positive definite.

A step changes a positive matrix M to M^1/2 (I + X) M^1/2. Where X has an eigenvalue below -1, the result is
no covariance. The safe retraction replaces 1 + x by 1 + x + x^2 / 2 for x < 0, which is never below 1/2 and
agrees with the step to first order. On whole matrices the same is M + D + D inv(M) D / 2 (Lin, Schmidt & Khan
2020, arXiv 2002.10060, for the natural gradient).
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import jax.numpy as jnp

from credo.core.types import Array
from credo.linalg.matrices import eigh, symmetric

__all__ = ["RETRACTIONS", "Retraction", "grown_root", "retract", "retract_matrix"]

Retraction: TypeAlias = Literal["safe", "exact"]
"""How a step stays positive definite."""

RETRACTIONS: tuple[Retraction, ...] = get_args(Retraction)
"""All retractions."""


def retract(change: Array, retraction: Retraction) -> Array:
    """The factor in place of 1 + x, elementwise; NaN where an exact step leaves the positive numbers."""
    if retraction == "exact":
        return jnp.where(change > -1.0, 1.0 + change, jnp.nan)
    return 1.0 + change + jnp.where(change < 0, 0.5 * change**2, 0.0)


def retract_matrix(change: Array, retraction: Retraction) -> tuple[Array, Array]:
    """The eigenvalues (n,), retracted, and eigenvectors (n, n) of I + X for a symmetric X (n, n)."""
    values, vectors = eigh(symmetric(change))
    return retract(values, retraction), vectors


def grown_root(root: Array, change: Array, retraction: Retraction) -> Array:
    """A root of W (I + X) W'."""
    values, turn = retract_matrix(change, retraction)
    return (root @ turn) * jnp.sqrt(values)[None, :]
