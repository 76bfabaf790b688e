"""Iterates of the inner loop of BLR: beliefs on the way from a prior to a posterior, relative to that prior.

With prior precision L0, an iterate holds a precision L and a *dual* vector d = L (mu - mu0). A step of size a
first blends it with the prior, L <- (1 - a) L + a L0 and d <- (1 - a) d, then adds a B' B for rows B (k, P).
Each family holds L as cheaply as it can:

- `BlendedIterate` (diagonal, low rank) mixes precisions directly: cost P, or P (2R + k)^2;
- `StackedIterate` (full) keeps L = L0 + C' C by its rows C and their products with S0, so that no P x P
  matrix is ever factorised: cost k P^2 and k^2 P a step;
- `WhitenedIterate` (full, where the steps bring more rows than there are parameters) keeps the P x P matrix
  N in L = W0^-T (I + N) W0^-1: cost P^3 <= (number of rows) P^2.

A shortcut are posteriors in the space of compact rows: N(mu0 + S0 J' u, inv(inv(S0) + J' N J)), few rows J.
An inner loop that measures again and again near one prior meets few directions: the rows J of all its
iterations. Everything it needs is in their products K = J S0 J' (n, n), with which (Woodbury)

    inv(inv(S0) + J' N J) J' z = S0 J' u,     u = inv(I + N K) z,

so that no matrix with P rows is touched until the end.

On request, BLR takes natural-gradient steps in the moments (mu, S) instead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import singledispatch
from typing import ClassVar

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl

from credo.core.errors import CredoError
from credo.core.records import record, replace
from credo.core.trees import as_like
from credo.core.types import Array, DTypeLike
from credo.covariances import (
    Covariance,
    DiagonalCovariance,
    FullCovariance,
    LowRankCovariance,
    Readable,
    Updatable,
    inverse_of,
)
from credo.learners.rules.base import Retraction, grown_root, retract
from credo.learners.rules.plain_gradient import diagonal_bend, with_diagonal
from credo.linalg.jacobians import DenseRows, Rows, as_rows
from credo.linalg.matrices import cholesky, scale_rows, solve, solve_lower, symmetric
from credo.linalg.normals import narrow

__all__ = [
    "FEW",
    "BlendedIterate",
    "Iterate",
    "RowSpace",
    "StackedCovariance",
    "StackedIterate",
    "WhitenedIterate",
    "blend_precisions",
    "start_iterate",
    "start_row_space",
    "temper",
]


class Iterate(ABC):
    """A belief between a prior N(mu0, inv(L0)) and a posterior; `whole` where the mean is S d."""

    whole: ClassVar[bool] = False

    @property
    @abstractmethod
    def cov(self) -> Readable:
        """The covariance of the iterate."""

    @abstractmethod
    def blend(self, share: Array) -> Readable:
        """The covariance of precision (1 - a) L + a L0."""

    @abstractmethod
    def dual(self, shift: Array, tracked: Array) -> Array:
        """The dual vector d = L (mu - mu0) (P,), given the shift mu - mu0 and the d that the rule tracks."""

    @abstractmethod
    def advance(self, blend: Readable, share: Array, factor: Rows, diagonal: Array | None) -> Iterate:
        """Add B' B + diag(d) to the precision of `blend`, which is the result of `blend(share)`."""

    @abstractmethod
    def finish(self) -> Covariance:
        """The covariance of the iterate, in its family's own form."""


@singledispatch
def start_iterate(prior: Covariance, rows: int) -> Iterate:
    """An iterate that starts at a prior, for an inner loop that brings at most `rows` rows of precision.

    A family of your own registers its iterate: `start_iterate.register(MyCovariance, function)`.

    Raises:
        CredoError: the family has no iterate.
    """
    raise CredoError(
        f"the rule 'blr' has no iterate for a {type(prior).__name__}: register one with "
        "credo.learners.rules.start_iterate.register."
    )


@start_iterate.register(DiagonalCovariance)
@start_iterate.register(LowRankCovariance)
def _(prior: DiagonalCovariance | LowRankCovariance, rows: int) -> BlendedIterate:
    """By mixing the precisions. Cost: P a step, or P (2R + k)^2 for low rank."""
    return BlendedIterate(prior, prior)


@singledispatch
def blend_precisions(current: Covariance, prior: Covariance, share: Array) -> Covariance:
    """The covariance of precision (1 - a) inv(S) + a inv(T), for a covariance T = `prior` of the same family.

    Raises:
        CredoError: the family cannot mix two precisions.
    """
    raise CredoError(
        f"the rule 'blr' cannot blend a {type(current).__name__} with its prior: register how with "
        "credo.learners.rules.blend_precisions.register."
    )


@blend_precisions.register
def _(current: DiagonalCovariance, prior: Covariance, share: Array) -> DiagonalCovariance:
    """Exact. Cost: P."""
    assert isinstance(prior, DiagonalCovariance)
    return DiagonalCovariance(1.0 / ((1.0 - share) / current.var + share / prior.var), current.keep)


@blend_precisions.register
def _(current: LowRankCovariance, prior: Covariance, share: Array) -> LowRankCovariance:
    """Exact, with the rows of both: sqrt(1 - a) W and sqrt(a) V; the next `condition` projects."""
    assert isinstance(prior, LowRankCovariance)
    share = as_like(share, current.base)
    rows = [jnp.sqrt(1.0 - share) * current.factor, jnp.sqrt(share) * prior.factor]
    base = (1.0 - share) * current.base + share * prior.base
    return LowRankCovariance(base, jnp.concatenate(rows, axis=0), current.family)


@record
class BlendedIterate(Iterate):
    """An iterate whose family can mix two precisions, with its `prior` and its kept `current` covariance."""

    prior: Covariance
    current: Covariance

    @property
    def cov(self) -> Covariance:
        """The covariance as kept."""
        return self.current

    def blend(self, share: Array) -> Covariance:
        """Precision (1 - a) L + a L0. Cost: P (R)."""
        return blend_precisions(self.current, self.prior, share)

    def dual(self, shift: Array, tracked: Array) -> Array:
        """The product L m with the kept precision L, which differs from the precision that made m."""
        return inverse_of(self.current)(shift)

    def advance(self, blend: Readable, share: Array, factor: Rows, diagonal: Array | None) -> BlendedIterate:
        """Condition the blended covariance, and keep what the family keeps."""
        assert isinstance(blend, Updatable)
        base = blend if diagonal is None else blend.add_precision(diagonal)
        return BlendedIterate(self.prior, base.condition(factor))

    def finish(self) -> Covariance:
        """The covariance as kept."""
        return self.current


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
        along = jnp.zeros((prior.rank, count), like.dtype)
        inner = jnp.zeros((count, count), like.dtype)
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
        """The family's approximation of inv(inv(S0) + J' L' L J) for L (m, n)."""
        return self.prior.condition(self.rows.mix_rows(roots))


@singledispatch
def start_row_space(prior: Covariance, like: Rows, groups: int) -> RowSpace | None:
    """A space for some groups of rows like the given ones, or None if it would bring no gain."""
    return None


@start_row_space.register
def _(prior: LowRankCovariance, like: Rows, groups: int) -> RowSpace | None:
    """A space where products of rows with rows are cheap, and otherwise None."""
    if like.compact:
        return RowSpace.start(prior, like, groups)
    return None


@singledispatch
def temper(
    cov: Covariance,
    factor: Rows,
    diagonal: Array | None,
    prior: Covariance,
    rate: Array,
    retraction: Retraction,
) -> Covariance:
    """A natural-gradient step in the moments: S + a S N S with N = L - L0 - B' B - diag(d).

    Arguments:
        cov: S.
        factor: B (k, P).
        diagonal: d (P,), or None for 0.
        prior: the covariance inv(L0).
        rate: a.
        retraction: how S stays positive definite.

    Raises:
        CredoError: the family takes no such step.
    """
    raise CredoError(
        "parameters='moment' needs a Full or Diagonal family, whose moments can be stepped in; got a "
        f"{type(cov).__name__}."
    )


@temper.register
def _(
    cov: DiagonalCovariance,
    factor: Rows,
    diagonal: Array | None,
    prior: Covariance,
    rate: Array,
    retraction: Retraction,
) -> DiagonalCovariance:
    """v + a v^2 n. Cost: k P."""
    bend = diagonal_bend(cov, factor, diagonal, prior)
    return DiagonalCovariance(cov.var * retract(rate * cov.var * bend, retraction), cov.keep)


@temper.register
def _(
    cov: FullCovariance,
    factor: Rows,
    diagonal: Array | None,
    prior: Covariance,
    rate: Array,
    retraction: Retraction,
) -> FullCovariance:
    """Cost: P^3."""
    assert isinstance(prior, FullCovariance)
    rows = with_diagonal(factor, diagonal)
    return cov.with_root(temper_root(cov.as_root(), rows, prior.as_root(), rate, retraction))


def temper_root(root: Array, factor: Array, prior_root: Array, rate: Array, retraction: Retraction) -> Array:
    """The root of S + a S (L - L0 - B' B) S. Cost: P^3."""
    white = factor @ root
    ratio = solve(prior_root, root)
    eye = jnp.eye(root.shape[0], dtype=root.dtype)
    return grown_root(root, rate * (eye - ratio.T @ ratio - white.T @ white), retraction)


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
