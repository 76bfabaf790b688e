"""Iterates of a full covariance: in the rows that the inner loop brings, or in one P x P matrix."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl

from credo.core.records import record
from credo.core.types import Array, DTypeLike
from credo.covariances import Covariance, FullCovariance, Readable
from credo.learners.rules.iterates import Iterate, start_iterate
from credo.linalg.jacobians import DenseRows, Rows, as_rows
from credo.linalg.matrices import cholesky, solve_lower, symmetric
from credo.linalg.normals import narrow

__all__ = ["StackedCovariance", "StackedIterate", "WhitenedIterate"]


@record
class StackedCovariance(Readable):
    """The covariance S = inv(inv(S0) + C' C), held as S0 with the rows C (n, P). Nothing is forgotten.

    Products use the Woodbury identity with `cross` K = C S0 (n, P) and `inner` G = C S0 C' (n, n), and cost
    n P and n^2 beyond those of S0. Rows of zeros add nothing.
    """

    base: Readable
    rows: Array
    cross: Array
    inner: Array

    @property
    def size(self) -> int:
        return self.base.size

    def _chol(self) -> Array:
        eye = jnp.eye(self.inner.shape[0], dtype=self.inner.dtype)
        return cholesky(eye + self.inner)

    def couple(self, rows: Array | Rows) -> tuple[DenseRows, Array]:
        """J S = J S0 - (J K') inv(I + G) K, and its product with J'. Cost: k P (n + P)."""
        jacobian = as_rows(rows)
        cross, inner = self.base.couple(jacobian)
        half = solve_lower(self._chol(), jacobian.cross(self.cross))
        weights = solve_lower(self._chol(), half, transpose=True)
        return DenseRows(cross.dense() - weights.T @ self.cross), inner - half.T @ half

    def color(self, deviates: Array) -> Array:
        """From draws of N(0, S0), by `narrow`. Cost: n^3, and n P a draw."""
        return narrow(self.base.color(deviates), self.rows, self.cross, self.inner)

    def logdet(self) -> Array:
        """log det S0 - log det(I + G). Cost: n^3 beyond that of S0."""
        return self.base.logdet() - 2.0 * jnp.sum(jnp.log(jnp.diagonal(self._chol())))

    def diag(self) -> Array:
        """The variances. Cost: n P beyond those of S0."""
        return self.base.diag() - jnp.sum(solve_lower(self._chol(), self.cross) ** 2, axis=0)


@record
class StackedIterate(Iterate):
    """The precision L = L0 + C' C in at most n rows, of which `used` are filled and the others are zero."""

    stacked: StackedCovariance
    used: Array

    @classmethod
    def start(cls, prior: FullCovariance, rows: int, dtype: DTypeLike) -> StackedIterate:
        """The prior itself, with room for `rows` rows."""
        empty = jnp.zeros((rows, prior.size), dtype)
        stacked = StackedCovariance(prior, empty, empty, jnp.zeros((rows, rows), dtype))
        return cls(stacked, jnp.zeros((), jnp.int32))

    def blend(self, share: Array) -> StackedCovariance:
        """L0 + (1 - a) C' C: the rows shrink by sqrt(1 - a)."""
        shrink = jnp.sqrt(1.0 - share)
        before = self.stacked
        return StackedCovariance(
            before.base, shrink * before.rows, shrink * before.cross, (1.0 - share) * before.inner
        )

    def dual(self, shift: Array, tracked: Array) -> Array:
        """The dual vector that the rule tracks, which is exact because nothing was forgotten."""
        return tracked

    def advance(self, blend: Readable, share: Array, factor: Rows, diagonal: Array | None) -> StackedIterate:
        """Write the new rows after the others, and complete K and G. Cost: k P^2 and n k P."""
        assert isinstance(blend, StackedCovariance)
        array = factor.dense()
        if diagonal is not None:
            array = jnp.concatenate([array, jnp.diag(jnp.sqrt(diagonal))], axis=0)
        coupled, inner = blend.base.couple(array)
        cross = coupled.dense()
        mutual = blend.rows @ cross.T
        at = self.used
        zero = jnp.zeros((), jnp.int32)

        def write(into: Array, block: Array, row: Array, column: Array) -> Array:
            return jax.lax.dynamic_update_slice(into, block, (row, column))

        gram = write(write(blend.inner, mutual, zero, at), mutual.T, at, zero)
        stacked = StackedCovariance(
            blend.base,
            write(blend.rows, array, at, zero),
            write(blend.cross, cross, at, zero),
            write(gram, inner, at, at),
        )
        return StackedIterate(stacked, at + array.shape[0])

    @property
    def cov(self) -> Readable:
        """The covariance, in rows."""
        return self.stacked

    def finish(self) -> Covariance:
        """The covariance in its family's own form. Cost: n P^2."""
        assert isinstance(self.stacked.base, FullCovariance)
        return self.stacked.base.condition(self.stacked.rows)


@record
class WhitenedIterate(Iterate):
    """L = W0^-T (I + N) W0^-1 for a prior S0 = W0 W0', by N (P, P). Cost: P^3 a step."""

    prior: Array
    matrix: Array
    current: FullCovariance

    whole: ClassVar[bool] = True

    @classmethod
    def start(cls, root: Array, current: FullCovariance) -> WhitenedIterate:
        """The prior itself."""
        return cls(root, jnp.zeros_like(root), current)

    def blend(self, share: Array) -> FullCovariance:
        """By the Cholesky factor of I + (1 - a) N."""
        return self._covariance((1.0 - share) * self.matrix)

    def _covariance(self, matrix: Array) -> FullCovariance:
        chol = cholesky(jnp.eye(matrix.shape[0], dtype=matrix.dtype) + matrix)
        return self.current.with_root(jsl.solve_triangular(chol, self.prior.T, lower=True).T)

    def dual(self, shift: Array, tracked: Array) -> Array:
        """The dual vector that the rule tracks, which is exact because nothing was forgotten."""
        return tracked

    def advance(self, blend: Readable, share: Array, factor: Rows, diagonal: Array | None) -> WhitenedIterate:
        """N <- (1 - a) N + W0' B' B W0."""
        white = factor.dense() @ self.prior
        matrix = (1.0 - share) * self.matrix + white.T @ white
        if diagonal is not None:
            matrix = matrix + symmetric(self.prior.T @ (diagonal[:, None] * self.prior))
        return WhitenedIterate(self.prior, matrix, self._covariance(matrix))

    @property
    def cov(self) -> FullCovariance:
        """The covariance, in its family's own form."""
        return self.current

    def finish(self) -> FullCovariance:
        return self.current


@start_iterate.register
def _(prior: FullCovariance, rows: int) -> StackedIterate | WhitenedIterate:
    """An iterate in rows if they are fewer than the parameters, and otherwise in one P x P matrix."""
    if rows < prior.size:
        return StackedIterate.start(prior, rows, prior.dtype)
    return WhitenedIterate.start(prior.as_root(), prior)
