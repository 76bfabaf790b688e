"""Likelihoods averaged over values of eta, and the nodes for integrals over eta."""

from __future__ import annotations

import functools
import statistics
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import jax.scipy.special as jss
import numpy as np

from credo.core.records import record, replace
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, DTypeLike, PyTree
from credo.core.verbs import verb
from credo.likelihoods.elliptical import drop_one
from credo.likelihoods.predictive import Predictive
from credo.likelihoods.quantiles import search_quantile

__all__ = ["Classifier", "Conditional", "MixturePredictive", "hermite_nodes", "integration_nodes"]

_QUADRATURE = 32
_EVEN = 64
_REACH = 8.0
_POINTS = 256


@functools.lru_cache(maxsize=64)
def _nodes(size: int) -> tuple[np.ndarray, np.ndarray]:
    if size == 1:
        points = np.linspace(-_REACH, _REACH, _EVEN)
        logs = -0.5 * points**2
        return points[:, None], logs - np.log(np.exp(logs).sum())
    # A rank-1 lattice by the generalised golden ratio (Roberts 2018), shifted off the origin, made
    # antithetic, then whitened: nodes with exact zero odd moments and identity covariance.
    ratio = 2.0
    for _ in range(64):
        ratio = (1.0 + ratio) ** (1.0 / (size + 1))
    steps = ratio ** -np.arange(1, size + 1)
    half = (0.5 + np.outer(np.arange(1, _POINTS // 2 + 1), steps)) % 1.0
    normal = np.vectorize(statistics.NormalDist().inv_cdf)(half)
    points = np.concatenate([normal, -normal])
    if points.shape[0] >= 2 * size:
        points = points @ np.linalg.inv(np.linalg.cholesky(points.T @ points / points.shape[0])).T
    return points, np.full(points.shape[0], -np.log(points.shape[0]))


def hermite_nodes(dtype: DTypeLike, count: int = _QUADRATURE) -> tuple[Array, Array]:
    """The 32 Gauss-Hermite nodes (n,) of a standard normal, or another number, and log weights (n,)."""
    points, weights = np.polynomial.hermite_e.hermegauss(count)
    return jnp.asarray(points, dtype), jnp.asarray(np.log(weights / weights.sum()), dtype)


def integration_nodes(size: int, dtype: DTypeLike) -> tuple[Array, Array]:
    """Nodes (n, C) and log weights (n,) that integrate over a standard normal of C dimensions.

    One dimension takes 64 equally spaced nodes up to 8 standard deviations, which integrate functions that
    are smooth over a quarter of a standard deviation to the last digits. Several take 256 fixed, antithetic,
    whitened quasi-random points, for which mean and covariance are exact and higher moments approximate. All
    are deterministic, so the evidence and its gradient are reproducible.
    """
    points, log_weights = _nodes(size)
    return jnp.asarray(points, dtype), jnp.asarray(log_weights, dtype)


class Conditional(Protocol):
    """The part of a distribution p(y | eta) that a mixture needs. Every likelihood has it."""

    @property
    def discrete(self) -> bool:
        """Whether y takes whole-number values."""
        ...

    def log_prob(self, eta: Array, y: PyTree) -> Array:
        """log p(y | eta), a scalar."""
        ...

    def mean(self, eta: Array) -> Array:
        """E[y | eta], (C,)."""
        ...

    def variance(self, eta: Array) -> Array:
        """Var[y | eta], (C,)."""
        ...

    def sample(self, eta: Array, key: Array) -> Array:
        """One draw of y given eta."""
        ...

    def cdf(self, eta: Array, y: Array) -> Array:
        """P(Y <= y | eta)."""
        ...


@runtime_checkable
class Classifier(Protocol):
    """A likelihood of classes, which gives the probability of each class."""

    def probs(self, eta: Array) -> Array:
        """The class probabilities (C,)."""
        ...


@record
class MixturePredictive(Predictive):
    """A likelihood averaged over values of eta: p(y) = sum_k w_k p(y | eta_k).

    Attributes:
        likelihood: p(y | eta).
        etas: the values of eta (n, C).
        log_weights: log w (n,), which sum to one.

    Example:
        >>> import credo
        >>> MixturePredictive(credo.Bernoulli(), jnp.zeros((2, 1)), jnp.log(jnp.full(2, 0.5))).probs
        Array([0.5, 0.5], dtype=float32)
    """

    likelihood: Conditional
    etas: Array
    log_weights: Array

    @property
    def discrete(self) -> bool:
        return self.likelihood.discrete

    def _average(self, values: Array) -> Array:
        return jnp.tensordot(jnp.exp(self.log_weights), values, axes=1)

    @property
    def probs(self) -> Array:
        if not isinstance(self.likelihood, Classifier):
            return super().probs
        return self._average(jax.vmap(self.likelihood.probs)(self.etas))

    @property
    def mean(self) -> Array:
        """E[y] (for Categorical: the class probabilities, the mean of the one-hot label)."""
        return drop_one(self._average(jax.vmap(self.likelihood.mean)(self.etas)))

    @property
    def var(self) -> Array:
        """Var[y] by the law of total variance."""
        means = jax.vmap(self.likelihood.mean)(self.etas)
        centre = self._average(means)
        return drop_one(
            self._average(jax.vmap(self.likelihood.variance)(self.etas) + (means - centre[None, :]) ** 2)
        )

    def scaled(self, scale: ArrayLike) -> MixturePredictive:
        """The mixture whose values of eta have the same mean and `scale` times the covariance.

        Arguments:
            scale: at least 0. With 1 the values are the same, bit by bit.
        """
        share = jnp.sqrt(as_like(scale, self.etas))
        centre = self._average(self.etas)
        return replace(self, etas=share * self.etas + (1.0 - share) * centre[None, :])

    def log_prob(self, y: PyTree) -> Array:
        """log of the average of p(y | eta) (not the average of the logs)."""
        each = jax.vmap(lambda eta: self.likelihood.log_prob(eta, y))(self.etas)
        return jss.logsumexp(each + self.log_weights)

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Draws of y: first of eta, then of y given eta."""
        first, second = jax.random.split(key)
        count = int(np.prod(shape))
        which = jax.random.categorical(first, self.log_weights, shape=(count,))
        draws = jax.vmap(self.likelihood.sample)(self.etas[which], jax.random.split(second, count))
        return draws.reshape(tuple(shape) + draws.shape[1:])

    def cdf(self, y: PyTree) -> Array:
        """P(Y <= y), for one output."""
        value = jnp.asarray(y, self.etas.dtype)
        each = jax.vmap(lambda eta: self.likelihood.cdf(eta, value))(self.etas)
        return self._average(each)

    def sharper(self, factor: Array) -> Predictive:
        """The mixture over factor * eta, for classes."""
        if not isinstance(self.likelihood, Classifier):
            return super().sharper(factor)
        return replace(self, etas=as_like(factor, self.etas) * self.etas)

    @verb
    def quantile(self, p: ArrayLike) -> Array:
        """The quantile by bisection on the distribution function, among whole numbers if y is discrete."""
        largest = jnp.max(jnp.abs(self.etas))
        return search_quantile(self.cdf, p, self.mean, self.sd, largest, self.likelihood.discrete)
