"""Square roots of covariances of outputs."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.core.types import Array
from credo.linalg.matrices import eigh, precision, psd_root, safe_sqrt, symmetric

__all__ = ["MANY_OUTPUTS", "spread_root", "symmetric_root"]

MANY_OUTPUTS = 32
"""The number of outputs from which a triangular root is taken instead of eigenvectors."""


def spread_root(cov: Array) -> Array:
    """A root A (C, C) of the covariance of C outputs, with A A' = M for the integral over them.

    Few outputs take the eigenvectors. Many take the Cholesky factor, at a tenth of the cost, where eps tr(M)
    is added to the diagonal, less than the rounding error of M; and the eigenvectors where that fails.
    """
    if cov.shape[0] < MANY_OUTPUTS:
        return psd_root(cov)
    level = precision(cov.dtype).eps * jnp.trace(cov)
    nudged = symmetric(cov) + level * jnp.eye(cov.shape[0], dtype=cov.dtype)
    chol = jnp.linalg.cholesky(nudged)
    good = jnp.all(jnp.isfinite(jnp.diagonal(chol)))
    root: Array = jax.lax.cond(good, lambda: chol, lambda: psd_root(cov))
    return root


def symmetric_root(cov: Array) -> Array:
    """The symmetric root of the positive semi-definite part of a matrix (C, C)."""
    if cov.shape[0] == 1:
        return safe_sqrt(cov)
    values, vectors = eigh(symmetric(cov))
    return (vectors * safe_sqrt(values)[None, :]) @ vectors.T
