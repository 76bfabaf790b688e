"""The density of a normal distribution whose covariance is of any family."""

from __future__ import annotations

import math

import jax.numpy as jnp

from credo.core.types import Array
from credo.covariances.diagonal import DiagonalCovariance
from credo.covariances.roles import Readable
from credo.linalg.matrices import cholesky, solve_lower

__all__ = ["log_normal"]


def log_normal(gap: Array, cov: Readable) -> Array:
    """log N(gap | 0, cov) for a gap (P,). Cost: P where the covariance is diagonal, P^3 otherwise."""
    constant = gap.shape[0] * math.log(2 * math.pi)
    if isinstance(cov, DiagonalCovariance):
        var = cov.diag()
        return -0.5 * (jnp.sum(gap**2 / var + jnp.log(var)) + constant)
    chol = cholesky(cov.dense())
    white = solve_lower(chol, gap)
    return -0.5 * (white @ white + constant) - jnp.sum(jnp.log(jnp.diagonal(chol)))
