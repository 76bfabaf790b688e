"""The protocol of rows, and of their products with a covariance; and rows that are kept as an array."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, Self

import jax
import jax.numpy as jnp

from credo.core.records import record
from credo.core.types import Array, DTypeLike
from credo.linalg.matrices import (
    cholesky,
    column_sums,
    identity,
    kalman_weights,
    leading_axes,
    ridge_root,
    scale_rows,
    solve_lower,
    symmetric,
)

__all__ = ["Assimilated", "Crossed", "DenseRows", "Rows", "as_rows", "leading"]


@record
class Assimilated:
    """An update of a diagonal plus low-rank precision: the mean's move (P,), and J S J' (k, k) before it.

    `base` and `factor` are y (P,) and W (R, P) after it.
    """

    shift: Array
    inner: Array
    base: Array
    factor: Array


class Crossed(ABC):
    """The product K = J S (k, P) of rows with a covariance, whose rows are only ever combined."""

    @abstractmethod
    def pull(self, coefficients: Array) -> Array:
        """The combination c K (P,) for coefficients c (k,), or (q, P) for (q, k)."""

    @abstractmethod
    def dense(self) -> Array:
        """K itself, as an array (k, P)."""


class Rows(Crossed):
    """Rows J (k, P) of a Jacobian, as a record, so that they can be stacked and sliced as trees."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(k, P)."""

    @property
    @abstractmethod
    def dtype(self) -> DTypeLike:
        """The dtype of the rows."""

    @property
    @abstractmethod
    def compact(self) -> bool:
        """Whether products of rows cost far less than rows, so that loops should work in their space."""

    @abstractmethod
    def push(self, vector: Array) -> Array:
        """J w (k,) for w (P,), or (k, n) for (P, n)."""

    @abstractmethod
    def mix_rows(self, matrix: Array) -> Rows:
        """The rows M J for M (m, k)."""

    @abstractmethod
    def scale_rows(self, column: Array) -> Rows:
        """The rows diag(c) J for c (k,)."""

    @abstractmethod
    def where(self, keep: Array) -> Rows:
        """The rows with those whose `keep` (k,) is False set to zero."""

    @abstractmethod
    def cross(self, matrix: Array) -> Array:
        """M J' (q, k) for M (q, P)."""

    @abstractmethod
    def gram(self, weight: Array | None = None, other: Rows | None = None) -> Array:
        """J diag(w) H' (k, l) for a weight w (P,), by default 1, and rows H of this kind, by default J."""

    @abstractmethod
    def squares(self, inner: Array | None = None) -> Array:
        """The diagonal (P,) of J' N J for N (k, k); by default of J' J: the column sums of squares."""

    @abstractmethod
    def explained(self, var: Array) -> Array:
        """The diagonal (P,) of diag(v) J' inv(I + J diag(v) J') J: the share of each variance v (P,) that an
        observation of J with unit noise takes away.
        """

    @abstractmethod
    def couple_diagonal(self, var: Array) -> tuple[Crossed, Array]:
        """J S and J S J' for S = diag(v), with v (P,)."""

    @abstractmethod
    def couple_ridge(self, base: Array, factor: Array) -> tuple[Crossed, Array]:
        """J S and J S J' for S = inv(diag(y) + W' W), with y (P,) and W (R, P)."""

    @abstractmethod
    def leading(self, base: Array, factor: Array, rank: int, whitened: bool) -> tuple[Array, Array]:
        """diag(y) + W' W + J' J as y' (P,) and R leading rows W' (R, P), with its diagonal kept exactly.

        The leading rows are those of [W; J], or of [W; J] y^-1/2 where `whitened`.
        """

    @abstractmethod
    def assimilate(
        self, base: Array, factor: Array, residual: Array, root: Array, rank: int, whitened: bool
    ) -> Assimilated:
        """Kalman's update of S = inv(diag(y) + W' W) with gradient J' e and Hessian -J' A A' J.

        The mean moves by S J' inv(I + A A' J S J') e, and the precision becomes what `leading` keeps of
        diag(y) + W' W + J' A A' J; the root A is (k, m), or (k,) if it is diagonal. The move is NaN where
        the precision is not finite.
        """

    def assimilate_diagonal(self, var: Array, residual: Array, root: Array) -> tuple[Array, Array, Array]:
        """Kalman's update of S = diag(v) with gradient J' e and Hessian -J' A A' J.

        It gives how far the mean moves (P,), J S J' (k, k) before the update, and v (P,) after it, whose
        inverse has grown by the diagonal of J' A A' J.
        """
        cross, inner = self.couple_diagonal(var)
        shift = cross.pull(kalman_weights(root, residual, inner))
        return shift, inner, var / (1.0 + var * self.attenuate(root).squares())

    def attenuate(self, root: Array) -> Rows:
        """The rows A' J (m, P) for A (k, m), or for the diagonal (k,) of a diagonal A."""
        if root.ndim == 1:
            return self.scale_rows(root)
        return self.mix_rows(root.T)

    def empty(self, groups: int) -> Self:
        """Rows of zeros, with room for the given number of groups of rows like these."""
        zeros: Self = jax.tree.map(
            lambda leaf: jnp.zeros((groups * leaf.shape[0], *leaf.shape[1:]), leaf.dtype), self
        )
        return zeros

    def write_group(self, rows: Rows, at: Array | int) -> Self:
        """These rows with group number `at` replaced by `rows`."""
        first = jnp.asarray(at, jnp.int32)
        zero = jnp.zeros((), jnp.int32)

        def write(into: Array, leaf: Array) -> Array:
            where = (first * leaf.shape[0], *[zero] * (leaf.ndim - 1))
            return jax.lax.dynamic_update_slice(into, leaf, where)

        result: Self = jax.tree.map(write, self, rows)
        return result


@record
class DenseRows(Rows):
    """Rows J (k, P), kept as an array."""

    array: Array

    @property
    def shape(self) -> tuple[int, int]:
        """(k, P)."""
        return (self.array.shape[0], self.array.shape[1])

    @property
    def dtype(self) -> DTypeLike:
        """The dtype of the array."""
        return self.array.dtype

    @property
    def compact(self) -> bool:
        """False: a product of two rows reads both in full."""
        return False

    def dense(self) -> Array:
        """The array."""
        return self.array

    def pull(self, coefficients: Array) -> Array:
        """c J. Cost: k P."""
        return coefficients @ self.array

    def push(self, vector: Array) -> Array:
        """J w. Cost: k P."""
        return self.array @ vector

    def mix_rows(self, matrix: Array) -> DenseRows:
        """M J. Cost: m k P."""
        return DenseRows(matrix @ self.array)

    def scale_rows(self, column: Array) -> DenseRows:
        """diag(c) J. Cost: k P."""
        return DenseRows(column[:, None] * self.array)

    def where(self, keep: Array) -> DenseRows:
        """The rows with those whose `keep` (k,) is False set to zero."""
        return DenseRows(jnp.where(keep[:, None], self.array, 0.0))

    def cross(self, matrix: Array) -> Array:
        """M J'. Cost: q k P."""
        return matrix @ self.array.T

    def gram(self, weight: Array | None = None, other: Rows | None = None) -> Array:
        """J diag(w) H'. Cost: k l P."""
        second = self if other is None else other
        rows = self.array if weight is None else scale_rows(self.array, weight)
        return rows @ second.dense().T

    def squares(self, inner: Array | None = None) -> Array:
        """The column sums of squares. Cost: k P, or k^2 P with N."""
        return column_sums(self.array**2 if inner is None else self.array * (inner @ self.array))

    def explained(self, var: Array) -> Array:
        """By the Cholesky factor of I + J diag(v) J'. Cost: k^2 P."""
        eye = identity(self.array.shape[0], var.dtype)
        chol = cholesky(eye + scale_rows(self.array, var) @ self.array.T)
        return column_sums(solve_lower(chol, scale_rows(self.array, jnp.sqrt(var))) ** 2)

    def couple_diagonal(self, var: Array) -> tuple[DenseRows, Array]:
        """J * v, and (J * sd)(J * sd)'. Cost: k^2 P."""
        sd = jnp.sqrt(var)
        white = scale_rows(self.array, sd)
        return DenseRows(scale_rows(white, sd)), white @ white.T

    def couple_ridge(self, base: Array, factor: Array) -> tuple[DenseRows, Array]:
        """By the Woodbury identity, arranged as a ridge regression. Cost: P (R + k)^2."""
        stack = jnp.concatenate([factor, self.array], axis=0)
        scale, found = _regressed(base, stack, factor.shape[0])
        rest = found.rest - found.missed @ found.directions
        return DenseRows(scale_rows(rest, scale)), found.inner

    def leading(self, base: Array, factor: Array, rank: int, whitened: bool) -> tuple[Array, Array]:
        """By the Gram matrix of the stacked rows. Cost: P (R + k)^2."""
        return leading(base, jnp.concatenate([factor, self.array], axis=0), rank, whitened)

    def assimilate(
        self, base: Array, factor: Array, residual: Array, root: Array, rank: int, whitened: bool
    ) -> Assimilated:
        """`couple_ridge` and `leading` from products that they share. Cost: P (R + k)^2.

        A program that also forecasts the row takes `couple_ridge` from here, since both begin alike. The rows
        A' J are not formed: M = diag(I, A') stands beside the Gram matrix of [W; J], and beside what turns
        these rows.
        """
        many = factor.shape[0]
        stack = jnp.concatenate([factor, self.array], axis=0)
        scale, found = _regressed(base, stack, many)
        inner = found.inner
        weights = kalman_weights(root, residual, inner)
        shift = (weights @ found.rest - (weights @ found.missed) @ found.directions) * scale
        rows = scale_rows(stack, scale) if whitened else stack

        beside = _beside(root, many)
        gram = symmetric(beside @ (rows @ rows.T) @ beside.T)
        level = jnp.ones((), base.dtype) if whitened else jnp.mean(base)
        turn = leading_axes(gram, level) @ beside
        new = turn @ stack
        # The squares of what is written are at most this trace, times y where whitened, and y grows by them.
        total = jnp.sum(base)
        trace = jnp.trace(gram)
        most = total * (1.0 + trace) if whitened else total + trace
        shift = jnp.where(jnp.isfinite(jnp.sum(turn) + most), shift, jnp.nan)
        return Assimilated(shift, inner, base + column_sums(new[rank:] ** 2), new[:rank])


class _Regressed(NamedTuple):
    """The ridge regression of rows on others: what is left of them (k, P), the others (R, P), what of these
    the regression missed (k, R), and J S J' (k, k).
    """

    rest: Array
    directions: Array
    missed: Array
    inner: Array


def _regressed(base: Array, stack: Array, many: int) -> tuple[Array, _Regressed]:
    """y^-1/2 (P,), and the regression of J on W in the metric 1/y, for the rows [W; J] with R rows W.

    For a = J y^-1/2, B = W y^-1/2 and c = a B' inv(I + B B'): J S = (a - cB) y^-1/2 and
    J S J' = (a - cB)(a - cB)' + c c', since c is the ridge regression of a on B and that is its minimal loss.
    Errors in c enter only squared, and the result is positive semi-definite by construction. Since
    (a - cB) B' = c, what rounding leaves of it is known, and one step of iterative refinement d = `missed`
    takes it out of J S: where B is large, the difference would lose the digits that move the mean along B.
    """
    scale = jax.lax.rsqrt(base)
    white = scale_rows(stack, scale)
    directions = white[:many]
    met = directions @ white.T
    regress = _ridge(met[:, :many])
    along = regress(met[:, many:])
    rest = white[many:] - along @ directions
    left = rest @ jnp.concatenate([directions, rest], axis=0).T
    missed = regress(left[:, :many].T - along.T)
    inner = symmetric(left[:, many:]) + along @ along.T
    return scale, _Regressed(rest, directions, missed, inner)


def _beside(root: Array, many: int) -> Array:
    """diag(I, A') (R + m, R + k), which makes [W; A' J] of [W; J]."""
    eye = identity(many, root.dtype)
    attenuating = jnp.diag(root) if root.ndim == 1 else root.T
    right = jnp.zeros((many, attenuating.shape[1]), root.dtype)
    below = jnp.zeros((attenuating.shape[0], many), root.dtype)
    return jnp.block([[eye, right], [below, attenuating]])


def _ridge(gram: Array) -> Callable[[Array], Array]:
    """The ridge regression on rows with a Gram matrix G (R, R): T' inv(I + G) for products T (R, k)."""
    chol, unit = ridge_root(gram)

    def regress(targets: Array) -> Array:
        scaled = unit[:, None] * targets
        return (unit[:, None] * solve_lower(chol, solve_lower(chol, scaled), transpose=True)).T

    return regress


def leading(base: Array, rows: Array, rank: int, whitened: bool) -> tuple[Array, Array]:
    """diag(y) + B' B as y' (P,) and R leading rows (R, P), with its diagonal kept exactly. Cost: P n^2.

    The rows are rotated by the eigenvectors of their small Gram matrix, so no division takes place; where
    `whitened`, those of B y^-1/2 lead instead of those of B.
    """
    metric_rows = scale_rows(rows, jax.lax.rsqrt(base)) if whitened else rows
    level = jnp.ones((), base.dtype) if whitened else jnp.mean(base)
    axes = leading_axes(metric_rows @ metric_rows.T, level) @ rows
    return base + column_sums(axes[rank:] ** 2), axes[:rank]


def as_rows(rows: Array | Rows) -> Rows:
    """The rows themselves if they are `Rows`, and an array (k, P) as `DenseRows`."""
    if isinstance(rows, Rows):
        return rows
    return DenseRows(rows)
