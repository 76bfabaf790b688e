"""What covariances ask of `OuterRows`, by Woodbury's identities in the space of the rows.

With rows J, the weighted Gram matrices J diag(w) J' and the products W diag(w) J' are cheap. Where
`DenseRows` subtracts rows from each other before they are squared, here their Gram matrices are: the rounding
error of J S J' is then that of J diag(1/y) J', which is relative to the variance without the kept directions;
a multiple of it is added so that the result stays positive semi-definite.
"""

from __future__ import annotations

import jax.numpy as jnp

from credo.core.records import record
from credo.core.types import Array
from credo.linalg.jacobians.protocol import Crossed, Rows
from credo.linalg.matrices import column_sums, eigh, precision, safe_sqrt, scale_rows, solve_lower, symmetric

__all__ = ["OuterCross", "couple_ridge", "leading"]


@record
class OuterCross(Crossed):
    """J S (k, P) for outer rows J, as (J - c W) diag(v).

    Attributes:
        rows: J.
        var: v (P,).
        along: c (k, R), or None where S is diagonal.
        factor: W (R, P), or None.
    """

    rows: Crossed
    var: Array
    along: Array | None = None
    factor: Array | None = None

    def pull(self, coefficients: Array) -> Array:
        """c J S for c (k,) or (q, k)."""
        many = coefficients.reshape(-1, coefficients.shape[-1])
        combined = self.rows.pull(many)
        if self.along is not None and self.factor is not None:
            combined = combined - (many @ self.along) @ self.factor
        return scale_rows(combined, self.var).reshape(*coefficients.shape[:-1], combined.shape[-1])

    def dense(self) -> Array:
        """J S as an array; for inspection and tests."""
        rows = self.rows.dense()
        if self.along is not None and self.factor is not None:
            rows = rows - self.along @ self.factor
        return scale_rows(rows, self.var)


def couple_ridge(base: Array, factor: Array, rows: Rows) -> tuple[Array, Array, Array]:
    """v, c and J S J' for S = inv(diag(y) + W' W), with J S = (J - c W) diag(v). Cost: P R^2."""
    var = 1.0 / base
    spread = scale_rows(factor, var)
    own, mutual, mine = spread @ factor.T, rows.cross(spread), symmetric(rows.gram(var))
    chol = jnp.linalg.cholesky(jnp.eye(own.shape[0], dtype=own.dtype) + own)
    along = solve_lower(chol, solve_lower(chol, mutual), transpose=True).T
    overlap = along @ mutual
    rest = mine - overlap - overlap.T + along @ symmetric(own) @ along.T
    slack = 4.0 * precision(mine.dtype).eps * jnp.diag(jnp.diagonal(mine))
    return var, along, symmetric(rest) + along @ along.T + slack


def leading(base: Array, factor: Array, rows: Rows, rank: int, whitened: bool) -> tuple[Array, Array]:
    """The diagonal and the R rows that are kept of diag(y) + W' W + B' B for outer rows B (k, P).

    The result is that of `credo.linalg.jacobians.dense.leading`, with an exact diagonal. Of the k dropped
    directions, only those that involve W are formed, at most R of them. The others are combinations of B
    alone, and what they add to the diagonal is read off the outer products. Cost: P R min(R, k).
    """
    many = factor.shape[0]
    weight = 1.0 / base if whitened else None
    metric_factor = scale_rows(factor, weight) if weight is not None else factor
    mutual = rows.cross(metric_factor)
    gram = jnp.block([[metric_factor @ factor.T, mutual], [mutual.T, rows.gram(weight)]])
    _, vectors = eigh(symmetric(gram))
    frame = vectors[:, ::-1].T
    if rows.shape[0] <= 2 * rank:
        axes = frame[:, :many] @ factor + rows.pull(frame[:, many:])
        return base + column_sums(axes[rank:] ** 2), axes[:rank]
    top = frame[:rank, :many] @ factor + rows.pull(frame[:rank, many:])
    on_factor, on_rows = frame[rank:, :many], frame[rank:, many:]
    basis = _range(on_factor)
    directions = (basis.T @ on_factor) @ factor + rows.pull(basis.T @ on_rows)
    others = on_rows - basis @ (basis.T @ on_rows)
    increase = column_sums(directions**2) + jnp.maximum(rows.squares(others.T @ others), 0.0)
    return base + increase, top


def _range(matrix: Array) -> Array:
    """An orthonormal basis (k, R) of the columns of a matrix (k, R); zero where they are dependent."""
    values, vectors = eigh(matrix.T @ matrix)
    small = values <= precision(values.dtype).eps * jnp.maximum(values[-1], 1.0)
    return (matrix @ vectors) * jnp.where(small, 0.0, 1.0 / safe_sqrt(jnp.where(small, 1.0, values)))[None, :]
