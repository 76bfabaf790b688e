"""Forecasts by two distributions of unlike kinds, one of which is right."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from credo.core.records import record
from credo.core.types import Array, ArrayLike, PyTree
from credo.core.verbs import verb
from credo.likelihoods.predictive import Predictive
from credo.likelihoods.quantiles import search_quantile

__all__ = ["Either"]


@record
class Either(Predictive):
    """The mixture of two distributions, p(y) = w_0 p_0(y) + w_1 p_1(y).

    It is what `WeightedPredictive` is for a stack of distributions, without a stack: what one of the
    distributions computes is computed once in a program, whoever else asks for it.

    Arguments:
        first, second: two distributions of the same kind of y.
        log_weights: log w (2,), where the weights sum to one; -inf leaves a distribution out, whatever it
            predicts.

    Example:
        >>> import credo
        >>> laws = [credo.Normal(1.0).plugin(jnp.full(1, mean)) for mean in (-1.0, 1.0)]
        >>> law = Either(*laws, jnp.log(jnp.array([0.5, 0.5])))
        >>> float(law.mean), float(law.var), float(law.cdf(0.0))
        (0.0, 2.0, 0.5)
    """

    first: Predictive
    second: Predictive
    log_weights: Array

    @property
    def discrete(self) -> bool:
        return self.first.discrete and self.second.discrete

    def _average(self, function: Callable[[Predictive], Array]) -> Array:
        weights = jnp.exp(self.log_weights)
        first: Array = jnp.where(weights[0] > 0, weights[0] * function(self.first), 0.0)
        second: Array = jnp.where(weights[1] > 0, weights[1] * function(self.second), 0.0)
        return first + second

    @property
    def mean(self) -> Array:
        return self._average(lambda law: law.mean)

    @property
    def var(self) -> Array:
        """The variance, by the law of total variance."""
        centre = self.mean
        return self._average(lambda law: law.var + (law.mean - centre) ** 2)

    @property
    def probs(self) -> Array:
        """The class probabilities, averaged."""
        return self._average(lambda law: law.probs)

    def log_prob(self, y: PyTree) -> Array:
        """log(w_0 p_0(y) + w_1 p_1(y))."""
        logs = self.log_weights
        first: Array = jnp.where(logs[0] > -jnp.inf, logs[0] + self.first.log_prob(y), -jnp.inf)
        second: Array = jnp.where(logs[1] > -jnp.inf, logs[1] + self.second.log_prob(y), -jnp.inf)
        return jnp.logaddexp(first, second)

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Draws: first a distribution is drawn, then a value from that distribution."""
        chosen, one, two = jax.random.split(key, 3)
        which = jax.random.bernoulli(chosen, jnp.exp(self.log_weights[1]), shape)
        draws = self.first.sample(one, shape), self.second.sample(two, shape)
        return jnp.where(which.reshape(which.shape + (1,) * (draws[0].ndim - which.ndim)), draws[1], draws[0])

    def cdf(self, y: PyTree) -> Array:
        """P(Y <= y), averaged."""
        return self._average(lambda law: law.cdf(y))

    def heavier(self, df: Array) -> Either:
        """The mixture of both distributions with heavier tails."""
        return Either(self.first.heavier(df), self.second.heavier(df), self.log_weights)

    def sharper(self, factor: Array) -> Either:
        """The mixture of both distributions, sharper."""
        return Either(self.first.sharper(factor), self.second.sharper(factor), self.log_weights)

    @verb
    def quantile(self, p: ArrayLike) -> Array:
        """The quantile, by bisection on the distribution function, for one output."""
        centre = self.mean
        spread = self.sd
        return search_quantile(self.cdf, p, centre, spread, jnp.abs(centre), self.discrete)
