"""Posteriors in the space of outer rows: N(mu0 + S0 J' u, inv(inv(S0) + J' N J)) with n rows J, few beside P.

An inner loop that measures again and again near one prior meets few directions: the rows J of all its
iterations. Everything it needs is in their products K = J S0 J' (n, n), with which (Woodbury)

    inv(inv(S0) + J' N J) J' z = S0 J' u,     u = inv(I + N K) z,

so that no matrix with P rows is touched until the end.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.core.records import record, replace
from credo.covariances.low_rank import LowRankCovariance
from credo.linalg.matrices import scale_rows, solve_lower, symmetric
from credo.linalg.outer import OuterRows

__all__ = ["FEW", "RowSpace"]

FEW = 256
"""How many rows an inner loop may bring for its small systems to stay cheap."""


@record
class RowSpace:
    """Rows J (n, P) around a prior covariance S0 = inv(diag(y) + W' W); groups not yet filled are zero.

    Attributes:
        prior: S0.
        spread: W / y (R, P).
        solved: inv(I + W y^-1 W') (R, R).
        rows: J, as I groups of k rows.
        along: W y^-1 J' (R, n).
        inner: K = J S0 J' (n, n).
    """

    prior: LowRankCovariance
    spread: jax.Array
    solved: jax.Array
    rows: OuterRows
    along: jax.Array
    inner: jax.Array

    @classmethod
    def start(cls, prior: LowRankCovariance, like: OuterRows, groups: int) -> RowSpace:
        """No rows yet, with room for some groups of rows like the given ones; cost P R^2."""
        spread = scale_rows(prior.factor, 1.0 / prior.base)
        eye = jnp.eye(prior.rank, dtype=like.dtype)
        chol = jnp.linalg.cholesky(eye + symmetric(spread @ prior.factor.T))
        solved = solve_lower(chol, solve_lower(chol, eye), transpose=True)
        count = groups * like.count
        empty = jax.tree.map(
            lambda leaf: jnp.zeros((groups * leaf.shape[0], *leaf.shape[1:]), leaf.dtype), like
        )
        along, inner = jnp.zeros((prior.rank, count), like.dtype), jnp.zeros((count, count), like.dtype)
        return cls(prior, spread, solved, empty, along, inner)

    def add(self, rows: OuterRows, at: jax.Array) -> RowSpace:
        """Write k rows as the group number `at`; cost P R."""
        first, zero = jnp.asarray(at, jnp.int32), jnp.zeros((), jnp.int32)
        start = first * rows.count

        def write(into: jax.Array, leaf: jax.Array) -> jax.Array:
            where = (first * leaf.shape[0], *[zero] * (leaf.ndim - 1))
            return jax.lax.dynamic_update_slice(into, leaf, where)

        held = jax.tree.map(write, self.rows, rows)
        mutual = rows.cross(self.spread)
        along = jax.lax.dynamic_update_slice(self.along, mutual, (zero, start))
        block = rows.gram(1.0 / self.prior.base, held) - mutual.T @ self.solved @ along
        inner = jax.lax.dynamic_update_slice(self.inner, block, (start, zero))
        inner = jax.lax.dynamic_update_slice(inner, block.T, (zero, start))
        return replace(self, rows=held, along=along, inner=inner)

    def shift(self, coefficients: jax.Array) -> jax.Array:
        """S0 J' u (P,) for u (n,); cost P (R + number of groups)."""
        pull = self.solved @ (self.along @ coefficients)
        return (coefficients @ self.rows - pull @ self.prior.factor) / self.prior.base

    def condition(self, left: jax.Array) -> LowRankCovariance:
        """What the family keeps of inv(inv(S0) + J' L' L J) for L (m, n)."""
        return self.prior.condition(left @ self.rows)
