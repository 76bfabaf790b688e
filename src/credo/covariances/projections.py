"""How a low-rank precision forgets: diag(y) + B' B with n rows B becomes diag(y') + W' W with R rows.

All three keep the diagonal of the precision (the first two exactly), work on the small Gram matrix of the
rows, and divide by nothing that can vanish.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import jax.numpy as jnp

from credo.core.types import Array
from credo.linalg.jacobians.dense import leading
from credo.linalg.matrices import cholesky, column_sums, inverse_gram, scale_rows, solve_lower

__all__ = ["PROJECTIONS", "Projection", "project"]

Projection: TypeAlias = Literal["svd", "whitened", "factor-analysis"]
"""The ways to reduce the rows of a precision."""

PROJECTIONS: tuple[Projection, ...] = get_args(Projection)

_ROUNDS = 3


def project(base: Array, rows: Array, rank: int, projection: Projection) -> tuple[Array, Array]:
    """The new diagonal y' (P,) and rows W (R, P) for diag(y) + B' B, with B (n, P).

    "svd" keeps the leading singular directions of B (Chang et al. 2023, LOFI); "whitened" those of B y^-1/2,
    in which most is learned relative to the diagonal. "factor-analysis" minimises the Kullback-Leibler
    divergence by three expectation-maximisation steps from the first (Lambert, Bonnabel & Bach 2023, LRVGA).
    Cost: P n^2, and for each of these steps P R (n + R) more.
    """
    new_base, factor = leading(base, rows, rank, projection == "whitened")
    if projection == "factor-analysis":
        for _ in range(_ROUNDS):
            new_base, factor = _analyse(base, rows, new_base, factor)
    return new_base, factor


def _analyse(base: Array, rows: Array, new_base: Array, factor: Array) -> tuple[Array, Array]:
    """One expectation-maximisation step of factor analysis of T = diag(y) + B' B.

    With M = I + W y'^-1 W' and b = inv(M) W y'^-1: W <- inv(inv(M) + b T b') b T and y' <- diag(T) - the
    column sums of W * (b T) (Rubin & Thayer 1982), but never below y: a diagonal that vanishes where W takes
    all of T (a Heywood case) would leave directions without precision, and streams diverge. The second moment
    inv(M) + b T b' is near I where the kept precision is near T, so its Cholesky factor is well conditioned.
    """
    spread = scale_rows(factor, 1.0 / new_base)
    inner = inverse_gram(spread @ factor.T)
    weights = inner @ spread
    image = scale_rows(weights, base) + (weights @ rows.T) @ rows
    chol = cholesky(inner + image @ weights.T)
    new_factor = solve_lower(chol, solve_lower(chol, image), transpose=True)
    total = base + column_sums(rows**2)
    rest = total - column_sums(new_factor * image)
    return jnp.maximum(rest, base), new_factor
