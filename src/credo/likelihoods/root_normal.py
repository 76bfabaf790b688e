"""Normal observations whose noise is given by a root, and may be singular."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from credo.beliefs.conjugate import InverseGamma
from credo.core.errors import CredoError
from credo.core.records import record
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, PyTree
from credo.likelihoods.base import LikelihoodBase
from credo.likelihoods.elliptical import NormalPredictive, drop_last, vector
from credo.likelihoods.predictive import Predictive
from credo.linalg.matrices import precision, solve_lower, spread_root, triangularize

__all__ = ["RootNormal", "RootNormalPredictive", "informative", "resolution"]


def resolution(root: Array) -> float:
    """The share of a row of a matrix (n, m) that reflections may leave where exact ones leave 0."""
    return float(0.5 * math.sqrt(sum(root.shape)) * precision(root.dtype).eps)


def informative(root: Array, loc: Array, seen: Array) -> tuple[Array, Array]:
    """A root (C, K + C) of the covariance of outputs, and those seen (C,) that the others do not determine.

    Each output has independent noise of the size of its rounding, and of that of its mean (C,), so that no
    triangle of the root has a 0. An output is determined if, given those before it, a quarter of its standard
    deviation or more is that noise. Rows of outputs that say nothing are those of the identity.
    """
    level = resolution(root) * (jnp.sqrt(jnp.sum(root**2, axis=1)) + jnp.abs(loc))
    heard = seen & (level > 0)
    white = solve_lower(triangularize(_padded(root, level, heard)), jnp.diag(level))
    free = heard & (jnp.sum(white**2, axis=1) < 1.0 / 16.0)
    return _padded(root, level, free), free


def _padded(root: Array, level: Array, seen: Array) -> Array:
    noise = jnp.diag(jnp.where(seen, level, 1.0))
    return jnp.concatenate([jnp.where(seen[:, None], root, 0.0), noise], axis=1)


@record
class RootNormalPredictive(NormalPredictive):
    """The predictive y ~ N(loc, cov), whose covariance may be singular.

    Its density is taken from a triangle that reflections make of the root. No square is taken, so that a
    standard deviation of 1e-5 beside one of 1 keeps its digits in single precision.

    Attributes:
        loc: the mean (C,).
        cov: the covariance (C, C), positive semi-definite.
        root: a root (C, K) of it.

    Example:
        >>> law = RootNormalPredictive(jnp.zeros(2), jnp.ones((2, 2)), jnp.ones((2, 1)))
        >>> round(float(law.log_prob(jnp.ones(2))), 3)  # the density of one of two that are the same
        -1.419
    """

    root: Array

    def log_prob(self, y: PyTree, observed: ArrayLike = True) -> Array:
        """log N(y | loc, cov) of the outputs that those before them do not determine.

        Arguments:
            y: the observation (C,). Outputs that are NaN are left out, unless all of them are.
            observed: which outputs count, booleans (C,).
        """
        value = vector(y, self.loc)
        missing = jnp.isnan(value)
        seen = jnp.broadcast_to(jnp.asarray(observed), self.loc.shape) & (~missing | jnp.all(missing))
        padded, free = informative(self.root, self.loc, seen)
        chol = triangularize(padded)
        white = solve_lower(chol, jnp.where(free, value - self.loc, 0.0))
        logs = jnp.where(free, jnp.log(jnp.abs(jnp.diagonal(chol))), 0.0)
        size = jnp.sum(free.astype(chol.dtype))
        return -0.5 * (white @ white + size * math.log(2.0 * math.pi)) - jnp.sum(logs)

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        noise = jax.random.normal(key, (*shape, self.root.shape[1]), self.loc.dtype)
        draws = noise @ self.root.T
        return drop_last(draws + jnp.broadcast_to(self.loc, draws.shape))


@record
class RootNormal(LikelihoodBase):
    """Observations y ~ N(eta, R) with R = N N', which may be singular.

    It is the likelihood of `credo.kalman` if R is singular, or so small that single precision loses it.

    Arguments:
        root: N (C, K).

    Raises:
        CredoError: (later) the model has another number of outputs.

    Example:
        >>> float(RootNormal(jnp.zeros((1, 1))).plugin(jnp.ones(1)).var)
        0.0
    """

    quadratic = True
    root: ArrayLike

    def check(self, size: int) -> None:
        """Refuse a model with another number of outputs.

        Raises:
            CredoError: the model has another number of outputs.
        """
        if jnp.shape(self.root)[0] != size:
            raise CredoError(f"root must have {size} rows to fit; got shape {jnp.shape(self.root)}.")

    def log_prob(self, eta: Array, y: PyTree) -> Array:
        """log N(y | eta, R)."""
        return self.with_spread(eta, jnp.zeros((eta.shape[0], 1), eta.dtype)).log_prob(y)

    def seen(self, y: PyTree) -> Array | None:
        """A mask of those of several outputs that are not NaN (C,); None for one output."""
        array = jnp.asarray(y)
        if array.size == 1:
            return None
        return ~jnp.isnan(array.reshape(-1))

    def mean(self, eta: Array) -> Array:
        """eta."""
        return eta

    def variance(self, eta: Array) -> Array:
        """The noise variance of each output."""
        return jnp.sum(as_like(self.root, eta) ** 2, axis=1)

    def sample(self, eta: Array, key: Array) -> Array:
        return self.with_spread(eta, jnp.zeros((eta.shape[0], 1), eta.dtype)).sample(key)

    def with_spread(self, eta: Array, spread: Array) -> RootNormalPredictive:
        """The predictive for eta ~ N(eta, Z Z'), given by the root Z (C, K)."""
        root = jnp.concatenate([as_like(self.root, eta), spread], axis=1)
        return RootNormalPredictive(eta, root @ root.T, root)

    def linearized(self, eta: Array, cov: Array, noise: InverseGamma | None = None) -> Predictive:
        """The predictive N(eta, cov + R)."""
        return self.with_spread(eta, spread_root(cov))
