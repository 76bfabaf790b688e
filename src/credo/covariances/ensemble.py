"""The covariance of an ensemble: S = D' D / (M - 1) for the deviations D of M members from their mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import jax
import jax.numpy as jnp

from credo.core.records import record
from credo.core.trees import as_like
from credo.core.types import Array
from credo.covariances.roles import Covariance, Readable
from credo.linalg.jacobians import DenseRows, Rows, as_rows
from credo.linalg.matrices import column_sums, eigh, psd_root, safe_sqrt, scale_rows

__all__ = ["EnsembleCovariance", "centred"]


def centred(draws: Array) -> Array:
    """The rows (M, k) minus their mean."""
    return draws - (column_sums(draws) / draws.shape[0])[None, :]


@record
class EnsembleCovariance(Covariance):
    """The covariance S = D' D / (M - 1) of M members: positive semi-definite, and singular where M <= P.

    Multiplying and conditioning transform the deviations and draw nothing. Dynamics that add noise draw it
    and subtract its mean, so that S is right in expectation and the mean of the members is exact.

    Attributes:
        deviations: D (M, P), whose columns sum to 0.
        key: the key data for draws of noise.

    Example:
        >>> deviations = jnp.asarray([[1.0, 0.0], [-1.0, 0.0]])
        >>> EnsembleCovariance(deviations, jax.random.key_data(jax.random.key(0))).diag()
        Array([2., 0.], dtype=float32)
    """

    deviations: Array
    key: Array

    forgets: ClassVar[bool] = False

    @property
    def size(self) -> int:
        return self.deviations.shape[-1]

    @property
    def unit(self) -> Array:
        """D / sqrt(M - 1) (M, P), the rows of a root of S."""
        return self.deviations / jnp.sqrt(self.deviations.shape[0] - 1).astype(self.deviations.dtype)

    def couple(self, rows: Array | Rows) -> tuple[DenseRows, Array]:
        """rows S and rows S rows'. Cost: k M P."""
        scores = as_rows(rows).push(self.unit.T)
        return DenseRows(scores @ self.unit), scores @ scores.T

    def contract(self, scores: Array) -> EnsembleCovariance:
        """The symmetric square-root transform D <- (I + Z' Z)^-1/2 D for Z (k, M).

        Z is the factor B of an observation in the space of the members: B D' / sqrt(M - 1), or the deviations
        of their predictions.

        With Z Z' = V g V' and s = sqrt(1 + g) it is D - Z' V diag(1 / (s (1 + s))) V' Z D. The columns of the
        new deviations sum to 0 again. Cost: k M P, or M^2 P where k > M. Source: Hunt, Kostelich & Szunyogh
        2007 (ETKF).
        """
        if scores.shape[0] > scores.shape[1]:
            values, vectors = eigh(scores.T @ scores)
            shrink = jax.lax.rsqrt(1.0 + jnp.maximum(values, 0.0))
            return EnsembleCovariance((vectors * shrink[None, :]) @ (vectors.T @ self.deviations), self.key)
        values, vectors = eigh(scores @ scores.T)
        root = jnp.sqrt(1.0 + jnp.maximum(values, 0.0))
        axes = vectors.T @ scores
        weights = axes / (root * (1.0 + root))[:, None]
        return EnsembleCovariance(self.deviations - axes.T @ (weights @ self.deviations), self.key)

    def condition(self, factor: Array | Rows) -> EnsembleCovariance:
        """Exact: inv(inv(S) + B' B) in the span of the members."""
        return self.contract(as_rows(factor).push(self.unit.T))

    def add_precision(self, precision: Array) -> EnsembleCovariance:
        """Exact in the span of the members. Cost: M^2 P."""
        return self.contract(scale_rows(self.unit, safe_sqrt(precision)).T)

    def _with_noise(self, deviations: Array, draw: Callable[[Array], Array]) -> EnsembleCovariance:
        first, second = jax.random.split(jax.random.wrap_key_data(self.key))
        return EnsembleCovariance(deviations + centred(draw(first)), jax.random.key_data(second))

    def affine(self, scale: Array, noise: Array) -> EnsembleCovariance:
        """The covariance diag(a) S diag(a) + diag(d) in expectation: every member moves and draws noise."""
        deviations = scale_rows(self.deviations, as_like(scale, self.deviations))
        height = safe_sqrt(as_like(noise, deviations))

        def draw(key: Array) -> Array:
            return scale_rows(jax.random.normal(key, deviations.shape, deviations.dtype), height)

        return self._with_noise(deviations, draw)

    def mix(self, scale: Array, other: Readable, share: Array) -> EnsembleCovariance:
        """a^2 S + b T in expectation, by draws from N(0, T)."""
        count = (self.deviations.shape[0],)
        return self._with_noise(
            scale * self.deviations, lambda key: safe_sqrt(share) * other.sample(key, count)
        )

    def scale(self, factor: Array) -> EnsembleCovariance:
        """Exact. Cost: M P."""
        return EnsembleCovariance(self.deviations * jnp.sqrt(as_like(factor, self.deviations)), self.key)

    def rescale(self, scale: Array) -> EnsembleCovariance:
        """Exact: every deviation is multiplied, and nothing is drawn. Cost: M P."""
        return EnsembleCovariance(scale_rows(self.deviations, scale), self.key)

    def linear(self, transition: Array, noise: Array) -> EnsembleCovariance:
        """F S F' + Q in expectation. Cost: M P^2, and P^3 for a root of Q."""
        deviations = self.deviations @ transition.T

        def draw(key: Array) -> Array:
            return jax.random.normal(key, deviations.shape, deviations.dtype) @ psd_root(noise).T

        return self._with_noise(deviations, draw)

    @property
    def deviates(self) -> int:
        """One number for each member."""
        return self.deviations.shape[0]

    def color(self, deviates: Array) -> Array:
        """Draws e D / sqrt(M - 1) in the span of the members, for e (..., M)."""
        return deviates @ self.unit

    def logdet(self) -> Array:
        """Minus infinity where M <= P, and otherwise from the P x P matrix."""
        if self.deviations.shape[0] <= self.size:
            return jnp.asarray(-jnp.inf, self.deviations.dtype)
        return super().logdet()

    def diag(self) -> Array:
        """The members' variances. Cost: M P."""
        return column_sums(self.unit**2)

    def dense(self) -> Array:
        """The matrix (P, P). Cost: M P^2."""
        return self.unit.T @ self.unit
