"""What a belief leaves unexplained of an observation, and noise given by the root of its precision.

With A A' = inv(R), everything is measured in units of the noise:

    g = A' (y - yhat),    V = A' H P H' A,    D = g' g + tr V = E[(y - H theta)' inv(R) (y - H theta)].
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax.numpy as jnp

from credo.core.records import record
from credo.core.types import Array, ArrayLike, PyTree
from credo.likelihoods import NormalPredictive, Predictive
from credo.likelihoods.base import LikelihoodBase
from credo.linalg.matrices import log_det, solve

__all__ = ["Residual", "WhiteNormal", "log_peak", "white_log_prob"]


@dataclass(frozen=True)
class Residual:
    """What a belief leaves unexplained of an observation, in units of the noise.

    `error` is y - yhat (C,) in the units of y, `gap` is g = A' (y - yhat) (C,) with A A' = inv(R), and
    `spread` is V = A' H P H' A (C, C): the belief's own uncertainty. `root` is A.
    """

    error: Array
    gap: Array
    spread: Array
    root: Array

    @property
    def size(self) -> int:
        """The number C of outputs."""
        return self.gap.shape[0]

    @property
    def distance(self) -> Array:
        """g' g = (y - yhat)' inv(R) (y - yhat), the squared Mahalanobis distance by the noise alone."""
        return self.gap @ self.gap

    @property
    def expected(self) -> Array:
        """D = g' g + tr V, the expected squared residual under the belief."""
        return self.distance + jnp.trace(self.spread)

    def predicted(self, level: ArrayLike = 1.0) -> Array:
        """The share level g' inv(V + level I) g of the squared residual, explained by noise level R."""
        total = self.spread + level * jnp.eye(self.size, dtype=self.gap.dtype)
        share: Array = (self.gap @ solve(total, self.gap)) * level
        return share

    def log_prob(self, weight: Array) -> Array:
        """log N(y | yhat, H P H' + R / weight), for a weight above 0."""
        eye = jnp.eye(self.size, dtype=self.gap.dtype)
        return white_log_prob(self.gap, self.spread, jnp.sqrt(weight) * eye) + self.log_scale

    @property
    def log_scale(self) -> Array:
        """log |det A|, which turns a log density in units of the noise into one in the units of y."""
        return log_det(self.root)


@record
class WhiteNormal(LikelihoodBase):
    """y ~ N(eta, inv(A A')), given by the root A (C, C) of its precision, which may be near singular."""

    root: Array

    def log_prob(self, eta: Array, y: PyTree) -> Array:
        """log N(y | eta, inv(A A'))."""
        return self.linearized(eta, jnp.zeros_like(self.root)).log_prob(y)

    def score(self, eta: Array, y: PyTree) -> Array:
        """A A' (y - eta)."""
        return self.root @ (self.root.T @ (jnp.asarray(y, eta.dtype).reshape(-1) - eta))

    def fisher_root(self, eta: Array, y: PyTree) -> Array:
        """A."""
        return self.root

    def linearized(self, eta: Array, cov: Array, noise: PyTree = None) -> Predictive:
        """N(eta, cov + inv(A A')), by its density only."""
        return _WhitePredictive(eta, cov, self.root)


@record
class _WhitePredictive(Predictive):
    """The density of N(loc, cov + inv(A A'))."""

    loc: Array
    cov: Array
    root: Array

    def log_prob(self, y: PyTree) -> Array:
        """The log density, without an inverse of A."""
        return white_log_prob(jnp.asarray(y, self.loc.dtype).reshape(-1) - self.loc, self.cov, self.root)


def white_log_prob(gap: Array, spread: Array, root: Array) -> Array:
    """log N(gap | 0, spread + inv(B B')) for the root B (C, C) of a precision, without an inverse of B."""
    inner = root.T @ spread @ root + jnp.eye(gap.shape[0], dtype=gap.dtype)
    return NormalPredictive(jnp.zeros_like(gap), inner).log_prob(root.T @ gap) + log_det(root)


def log_peak(size: int) -> float:
    """log N(0 | 0, I) in C dimensions."""
    return -0.5 * size * math.log(2 * math.pi)
