"""What covariances do with `OuterRows`, Jacobians kept as outer products: small spaces and O(P).

With rows J, the weighted Gram matrices J diag(w) J' and the products W diag(w) J' are cheap, so Woodbury's
identities are taken in the space of the rows. Where dense rows are subtracted from each other before they are
squared (`LowRankCovariance.couple`), here their Gram matrices are: the rounding error of J S J' is then that
of J diag(1/y) J', which is relative to the variance without the kept directions; a multiple of it is added so
that the result stays positive semi-definite.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.records import record
from credo.linalg.matrices import column_sums, eigh, safe_sqrt, scale_rows, solve_lower, symmetric
from credo.linalg.outer import OuterRows

__all__ = ["OuterCross", "couple_diagonal", "couple_low_rank", "inverse_gram", "project_low_rank", "squares"]


@record
class OuterCross:
    """J S (k, P) for outer rows J, as (J - c W) diag(v); it is only ever multiplied from the left.

    Attributes:
        rows: J.
        var: v (P,).
        along: c (k, R), or None where S is diagonal.
        factor: W (R, P), or None.
    """

    rows: OuterRows
    var: jax.Array
    along: jax.Array | None = None
    factor: jax.Array | None = None

    def __rmatmul__(self, coefficients: jax.Array) -> jax.Array:
        """c J S for c (k,) or (q, k)."""
        many = coefficients.reshape(-1, coefficients.shape[-1])
        made = self.rows.combine(many)
        if self.along is not None and self.factor is not None:
            made = made - (many @ self.along) @ self.factor
        return scale_rows(made, self.var).reshape(*coefficients.shape[:-1], made.shape[-1])


def squares(rows: Any) -> jax.Array:
    """The column sums of squares (P,) of rows (k, P), an array or outer rows."""
    return rows.squares() if isinstance(rows, OuterRows) else column_sums(rows**2)


def inverse_gram(gram: jax.Array) -> jax.Array:
    """inv(I + G) for a Gram matrix G (k, k)."""
    eye = jnp.eye(gram.shape[0], dtype=gram.dtype)
    chol = jnp.linalg.cholesky(eye + symmetric(gram))
    return solve_lower(chol, solve_lower(chol, eye), transpose=True)


def couple_diagonal(var: jax.Array, rows: OuterRows) -> tuple[OuterCross, jax.Array]:
    """J S and J S J' for S = diag(var); cost P."""
    return OuterCross(rows, var), symmetric(rows.gram(var))


def couple_low_rank(base: jax.Array, factor: jax.Array, rows: OuterRows) -> tuple[OuterCross, jax.Array]:
    """J S and J S J' for S = inv(diag(y) + W' W); cost P R^2."""
    var = 1.0 / base
    spread = scale_rows(factor, var)
    own, mutual, mine = spread @ factor.T, rows.cross(spread), symmetric(rows.gram(var))
    chol = jnp.linalg.cholesky(jnp.eye(own.shape[0], dtype=own.dtype) + own)
    along = solve_lower(chol, solve_lower(chol, mutual), transpose=True).T
    shared = along @ mutual
    rest = mine - shared - shared.T + along @ symmetric(own) @ along.T
    slack = 4.0 * jnp.finfo(mine.dtype).eps * jnp.diag(jnp.diagonal(mine))
    return OuterCross(rows, var, along, factor), symmetric(rest) + along @ along.T + slack


def project_low_rank(
    base: jax.Array, factor: jax.Array, rows: OuterRows, rank: int, whitened: bool
) -> tuple[jax.Array, jax.Array]:
    """The diagonal and the R rows that are kept of diag(y) + W' W + B' B for outer rows B (k, P).

    The same projection as `credo.covariances.projections.project`, whose diagonal is exact: of the k dropped
    directions those that involve W are formed, at most R of them; what the others, combinations of B alone,
    add to the diagonal is read off the outer products. Cost P R min(R, k).
    """
    many = factor.shape[0]
    weight = 1.0 / base if whitened else None
    held = scale_rows(factor, weight) if weight is not None else factor
    mutual = rows.cross(held)
    gram = jnp.block([[held @ factor.T, mutual], [mutual.T, rows.gram(weight)]])
    _, vectors = eigh(symmetric(gram))
    turned = vectors[:, ::-1].T
    if rows.shape[0] <= 2 * rank:
        rotated = turned[:, :many] @ factor + rows.combine(turned[:, many:])
        return base + column_sums(rotated[rank:] ** 2), rotated[:rank]
    kept = turned[:rank, :many] @ factor + rows.combine(turned[:rank, many:])
    on_factor, on_rows = turned[rank:, :many], turned[rank:, many:]
    basis = _range(on_factor)
    formed = (basis.T @ on_factor) @ factor + rows.combine(basis.T @ on_rows)
    others = on_rows - basis @ (basis.T @ on_rows)
    added = column_sums(formed**2) + jnp.maximum(rows.squares(others.T @ others), 0.0)
    return base + added, kept


def _range(matrix: jax.Array) -> jax.Array:
    """An orthonormal basis (k, R) of the columns of a matrix (k, R); zero where they are dependent."""
    values, vectors = eigh(matrix.T @ matrix)
    small = values <= jnp.finfo(values.dtype).eps * jnp.maximum(values[-1], 1.0)
    return (matrix @ vectors) * jnp.where(small, 0.0, 1.0 / safe_sqrt(jnp.where(small, 1.0, values)))[None, :]
