"""Iterates of the inner loop of BLR: beliefs on the way from a prior to a posterior, relative to that prior.

With prior precision L0, an iterate holds a precision L and a *dual* vector d = L (mu - mu0). A step of size a
first blends it with the prior, L <- (1 - a) L + a L0 and d <- (1 - a) d, then adds a B' B for rows B (k, P).
Each family holds L as cheaply as it can:

- `BlendedIterate` (diagonal, low rank) mixes precisions directly: cost P, or P (2R + k)^2;
- `StackedIterate` (full) keeps L = L0 + C' C by its rows C and what they give with S0, so that no P x P
  matrix is ever factorised: cost k P^2 and k^2 P a step;
- `WhitenedIterate` (full, where the steps bring more rows than there are parameters) keeps the P x P matrix
  N in L = W0^-T (I + N) W0^-1: cost P^3 <= (number of rows) P^2.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.core.records import record
from credo.covariances.base import Covariance, Iterate
from credo.linalg.matrices import eigh, scale_rows, solve_lower, symmetric

__all__ = ["BlendedIterate", "StackedCovariance", "StackedIterate", "narrow"]


def narrow(draws: jax.Array, rows: jax.Array, cross: jax.Array, inner: jax.Array) -> jax.Array:
    """Draws x (..., P) of N(0, S0) as draws of N(0, inv(inv(S0) + C' C)): x - K' f(G) C x with K = C S0,
    G = C S0 C' and f(g) = 1 / (s (1 + s)), s = sqrt(1 + g), on the eigenvalues of G.

    A function of C' C alone (the symmetric root, where S0 is the identity), so the same x gives the same draw
    however the rows C (n, P) are arranged: draws change from one iteration or hyper-parameter to the next
    only as much as the covariance does. Cost n^3, and n P a draw.
    """
    values, vectors = eigh(symmetric(inner))
    root = jnp.sqrt(1.0 + jnp.maximum(values, 0.0))
    heights = (draws @ rows.T).reshape(-1, values.shape[0]) @ vectors
    heights = scale_rows(heights, 1.0 / (root * (1.0 + root)))
    return draws - ((heights @ vectors.T) @ cross).reshape(draws.shape)


@record
class BlendedIterate(Iterate):
    """An iterate whose family can mix two precisions: `prior` and the `current` covariance, as kept."""

    prior: Covariance
    current: Covariance

    def blend(self, share: jax.Array) -> Covariance:
        """Precision (1 - a) L + a L0; cost P (R)."""
        return self.current.blend(self.prior, share)

    def dual(self, shift: jax.Array, tracked: jax.Array) -> jax.Array:
        """L m with the precision L that was kept, which is not the one that made m."""
        return self.current.precise(shift)

    def advance(
        self, blended: Covariance, share: jax.Array, factor: jax.Array, diagonal: jax.Array | None
    ) -> BlendedIterate:
        """Condition the blended covariance, and keep what the family keeps."""
        base = blended if diagonal is None else blended.add_precision(diagonal)
        return BlendedIterate(self.prior, base.condition(factor))

    @property
    def cov(self) -> Covariance:
        """The covariance as kept."""
        return self.current


@record
class StackedCovariance(Covariance):
    """S = inv(inv(S0) + C' C), held as S0 with the rows C (n, P); nothing is forgotten.

    By the Woodbury identity with K = C S0 and G = C S0 C', so products cost n P and n^2 beyond those of S0.

    Attributes:
        base: S0.
        rows: C (n, P); rows of zeros add nothing.
        cross: K (n, P).
        inner: G (n, n).
    """

    base: Covariance
    rows: jax.Array
    cross: jax.Array
    inner: jax.Array

    @property
    def size(self) -> int:
        """The number P of parameters."""
        return self.base.size

    def _chol(self) -> jax.Array:
        return jnp.linalg.cholesky(jnp.eye(self.inner.shape[0], dtype=self.inner.dtype) + self.inner)

    def couple(self, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
        """J S = J S0 - (J K') inv(I + G) K, and its product with J'; cost k P (n + P)."""
        pushed, inner = self.base.couple(rows)
        half = solve_lower(self._chol(), self.cross @ rows.T)
        weights = solve_lower(self._chol(), half, transpose=True)
        return pushed - weights.T @ self.cross, inner - half.T @ half

    def color(self, deviates: jax.Array) -> jax.Array:
        """From draws of N(0, S0), by `narrow`; cost n^3, and n P a draw."""
        return narrow(self.base.color(deviates), self.rows, self.cross, self.inner)

    def condition(self, factor: jax.Array) -> Covariance:
        """The family's own covariance, with these rows and C taken in."""
        return self.base.condition(jnp.concatenate([self.rows, factor], axis=0))

    def diag(self) -> jax.Array:
        """The variances; cost n P beyond those of S0."""
        return self.base.diag() - jnp.sum(solve_lower(self._chol(), self.cross) ** 2, axis=0)

    def dense(self) -> jax.Array:
        """The matrix (P, P)."""
        return self.couple(jnp.eye(self.size, dtype=self.rows.dtype))[0]


@record
class StackedIterate(Iterate):
    """L = L0 + C' C in at most n rows; `used` of them are filled so far, the others are zero."""

    stacked: StackedCovariance
    used: jax.Array

    @classmethod
    def start(cls, prior: Covariance, rows: int, dtype: jnp.dtype) -> StackedIterate:
        """The prior itself, with room for `rows` rows."""
        empty = jnp.zeros((rows, prior.size), dtype)
        stacked = StackedCovariance(prior, empty, empty, jnp.zeros((rows, rows), dtype))
        return cls(stacked, jnp.zeros((), jnp.int32))

    def blend(self, share: jax.Array) -> StackedCovariance:
        """L0 + (1 - a) C' C: the rows shrink by sqrt(1 - a)."""
        shrink = jnp.sqrt(1.0 - share)
        given = self.stacked
        return StackedCovariance(
            given.base, shrink * given.rows, shrink * given.cross, (1.0 - share) * given.inner
        )

    def dual(self, shift: jax.Array, tracked: jax.Array) -> jax.Array:
        """As tracked: nothing was forgotten, so it is exact and costs nothing."""
        return tracked

    def advance(
        self, blended: Covariance, share: jax.Array, factor: jax.Array, diagonal: jax.Array | None
    ) -> StackedIterate:
        """Write the new rows after the others, and complete K and G; cost k P^2 and n k P."""
        assert isinstance(blended, StackedCovariance)
        if diagonal is not None:
            factor = jnp.concatenate([factor, jnp.diag(jnp.sqrt(diagonal))], axis=0)
        cross, inner = blended.base.couple(factor)
        mutual = blended.rows @ cross.T
        at, zero = self.used, jnp.zeros((), jnp.int32)

        def write(into: jax.Array, block: jax.Array, row: jax.Array, column: jax.Array) -> jax.Array:
            return jax.lax.dynamic_update_slice(into, block, (row, column))

        gram = write(write(blended.inner, mutual, zero, at), mutual.T, at, zero)
        stacked = StackedCovariance(
            blended.base,
            write(blended.rows, factor, at, zero),
            write(blended.cross, cross, at, zero),
            write(gram, inner, at, at),
        )
        return StackedIterate(stacked, at + factor.shape[0])

    @property
    def cov(self) -> Covariance:
        """The covariance, in rows."""
        return self.stacked

    def keep(self) -> Covariance:
        """The covariance in its family's own form; cost n P^2."""
        return self.stacked.base.condition(self.stacked.rows)
