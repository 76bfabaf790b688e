"""Posteriors in the space of compact rows: N(mu0 + S0 J' u, inv(inv(S0) + J' N J)) with few rows J.

An inner loop that measures again and again near one prior meets few directions: the rows J of all its
iterations. Everything it needs is in their products K = J S0 J' (n, n), with which (Woodbury)

    inv(inv(S0) + J' N J) J' z = S0 J' u,     u = inv(I + N K) z,

so that no matrix with P rows is touched until the end.
"""

from __future__ import annotations

from functools import singledispatch

import jax
import jax.numpy as jnp

from credo.core.records import record, replace
from credo.core.types import Array
from credo.covariances import Covariance, LowRankCovariance
from credo.linalg.jacobians import Rows
from credo.linalg.matrices import cholesky, scale_rows, solve_lower, symmetric

__all__ = ["FEW", "RowSpace", "start_row_space"]

FEW = 256
"""The number of rows up to which the small systems of an inner loop stay cheap."""


@record
class RowSpace:
    """Rows J (n, P) around a prior covariance S0 = inv(diag(y) + W' W). Groups not yet filled are zero.

    Attributes:
        spread: W / y (R, P).
        inverse: inv(I + W y^-1 W') (R, R).
        rows: J, as I groups of k rows.
        along: W y^-1 J' (R, n).
        inner: K = J S0 J' (n, n).
    """

    prior: LowRankCovariance
    spread: Array
    inverse: Array
    rows: Rows
    along: Array
    inner: Array

    @classmethod
    def start(cls, prior: LowRankCovariance, like: Rows, groups: int) -> RowSpace:
        """No rows yet, with room for some groups of rows like the given ones. Cost: P R^2."""
        spread = scale_rows(prior.factor, 1.0 / prior.base)
        eye = jnp.eye(prior.rank, dtype=like.dtype)
        chol = cholesky(eye + symmetric(spread @ prior.factor.T))
        inverse = solve_lower(chol, solve_lower(chol, eye), transpose=True)
        count = groups * like.shape[0]
        along, inner = jnp.zeros((prior.rank, count), like.dtype), jnp.zeros((count, count), like.dtype)
        return cls(prior, spread, inverse, like.empty(groups), along, inner)

    def add(self, rows: Rows, at: Array | int) -> RowSpace:
        """Write k rows as the group number `at`. Cost: P R."""
        zero = jnp.zeros((), jnp.int32)
        start = jnp.asarray(at, jnp.int32) * rows.shape[0]
        all_rows = self.rows.write_group(rows, at)
        mutual = rows.cross(self.spread)
        along = jax.lax.dynamic_update_slice(self.along, mutual, (zero, start))
        block = rows.gram(1.0 / self.prior.base, all_rows) - mutual.T @ self.inverse @ along
        inner = jax.lax.dynamic_update_slice(self.inner, block, (start, zero))
        inner = jax.lax.dynamic_update_slice(inner, block.T, (zero, start))
        return replace(self, rows=all_rows, along=along, inner=inner)

    def shift(self, coefficients: Array) -> Array:
        """S0 J' u (P,) for u (n,). Cost: P (R + number of groups)."""
        pull = self.inverse @ (self.along @ coefficients)
        return (self.rows.pull(coefficients) - pull @ self.prior.factor) / self.prior.base

    def condition(self, roots: Array) -> LowRankCovariance:
        """What the family keeps of inv(inv(S0) + J' L' L J) for L (m, n)."""
        return self.prior.condition(self.rows.mix_rows(roots))


@singledispatch
def start_row_space(prior: Covariance, like: Rows, groups: int) -> RowSpace | None:
    """A space for some groups of rows like the given ones, or None where it would bring no gain."""
    return None


@start_row_space.register
def _(prior: LowRankCovariance, like: Rows, groups: int) -> RowSpace | None:
    """A space where products of rows with rows are cheap, and otherwise None."""
    return RowSpace.start(prior, like, groups) if like.compact else None
