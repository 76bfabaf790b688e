"""Forecasts that leave a small probability to outliers, of which nothing is known but that they are far."""

from __future__ import annotations

import math

import jax.numpy as jnp

from credo.core.records import record
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, PyTree
from credo.likelihoods.predictive import Predictive

__all__ = ["WIDTH", "Contaminated", "outlier_log_density", "with_outliers"]

WIDTH = 10.0
"""The half-width of the distribution of outliers, in standard deviations of the target."""


def outlier_log_density(y: PyTree) -> Array:
    """The log density of an outlier: a Cauchy density around 0 of half-width 10, for standardised numbers."""
    return -jnp.log1p((jnp.asarray(y) / WIDTH) ** 2) - math.log(math.pi * WIDTH)


def with_outliers(own: Array, other: Array, share: Array) -> Array:
    """The log density of a mixture, log((1 - share) exp(own) + share exp(other)); NaN where `own` is."""
    # where a forecast knows no density of a number, a mixture with it has none
    return jnp.where(jnp.isnan(own), own, jnp.logaddexp(jnp.log1p(-share) + own, jnp.log(share) + other))


@record
class Contaminated(Predictive):
    """A forecast in which a share of the observations are outliers (Huber 1964, eq. 1.1).

        p(y) = (1 - share) p_0(y) + share Cauchy(y | 0, 10)

    The outliers have no mean and no variance, so that mean, variance, quantiles and draws are those of p_0:
    of an observation that is no outlier. Only densities know of them.

    Arguments:
        predictive: the distribution p_0 of one number, in units in which numbers have a standard deviation
            near 1.
        share: the probability of an outlier.

    Example:
        >>> import credo
        >>> law = Contaminated(credo.Normal(1.0).plugin(jnp.zeros(1)), jnp.asarray(1e-3))
        >>> [round(float(law.log_prob(y)), 2) for y in (0.0, 1000.0)]
        [-0.92, -19.57]
    """

    predictive: Predictive
    share: Array

    @property
    def discrete(self) -> bool:
        return self.predictive.discrete

    @property
    def mean(self) -> Array:
        """The mean of an observation that is no outlier."""
        return self.predictive.mean

    @property
    def var(self) -> Array:
        """The variance of an observation that is no outlier."""
        return self.predictive.var

    @property
    def sd(self) -> Array:
        """The standard deviation of an observation that is no outlier."""
        return self.predictive.sd

    def log_prob(self, y: PyTree) -> Array:
        """log p(y), outliers included."""
        own = self.predictive.log_prob(y)
        return with_outliers(own, as_like(outlier_log_density(y), own), self.share)

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Draws that are no outliers."""
        return self.predictive.sample(key, shape)

    def cdf(self, y: PyTree) -> Array:
        """P(Y <= y) of an observation that is no outlier."""
        return self.predictive.cdf(y)

    def quantile(self, p: ArrayLike) -> Array:
        """The quantile of an observation that is no outlier."""
        return self.predictive.quantile(p)

    def heavier(self, df: Array) -> Contaminated:
        """The forecast whose p_0 has heavier tails."""
        return Contaminated(self.predictive.heavier(df), self.share)
