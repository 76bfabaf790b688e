"""A mixture of whole predictive distributions."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.scipy.special as jss
import numpy as np

from credo.core.groups import Groups, choose, each, in_order
from credo.core.records import record
from credo.core.types import Array, ArrayLike, PyTree
from credo.core.verbs import verb
from credo.likelihoods.predictive import Predictive
from credo.likelihoods.quantiles import search_quantile

__all__ = ["WeightedPredictive"]


@record
class WeightedPredictive(Predictive):
    """A mixture of predictives, p(y) = sum_k w_k p_k(y), as several hypotheses or experts form it.

    Arguments:
        parts: a predictive whose arrays have a leading axis K; or `Groups` of such, where they are of several
            classes.
        log_weights: log w (K,), where the weights sum to one; -inf leaves a part out, whatever it predicts.

    Example:
        >>> from credo.likelihoods import NormalPredictive
        >>> parts = NormalPredictive(jnp.array([[-1.0], [1.0]]), jnp.ones((2, 1, 1)))
        >>> WeightedPredictive(parts, jnp.log(jnp.array([0.5, 0.5]))).var
        Array(2., dtype=float32)
    """

    parts: Predictive | Groups[Predictive]
    log_weights: Array

    @property
    def discrete(self) -> bool:
        parts = self.parts.parts if isinstance(self.parts, Groups) else (self.parts,)
        return all(part.discrete for part in parts)

    def _each(self, function: Callable[[Predictive], Array]) -> Array:
        answers: Array = in_order(each(function, self.parts))
        return answers

    def _average(self, values: Array) -> Array:
        weights = jnp.exp(self.log_weights).reshape((-1,) + (1,) * (values.ndim - 1))
        return jnp.sum(jnp.where(weights > 0, weights * values, 0.0), axis=0)

    @property
    def probs(self) -> Array:
        """The class probabilities, averaged."""
        return self._average(self._each(lambda part: part.probs))

    @property
    def mean(self) -> Array:
        return self._average(self._each(lambda part: part.mean))

    @property
    def var(self) -> Array:
        """Var[y] by the law of total variance."""
        means = self._each(lambda part: part.mean)
        gaps = means - self._average(means)[None]
        return self._average(self._each(lambda part: part.var) + gaps**2)

    def log_prob(self, y: PyTree) -> Array:
        """log sum_k w_k p_k(y)."""
        each = self._each(lambda part: part.log_prob(y))
        weights = self.log_weights.reshape((-1,) + (1,) * (each.ndim - 1))
        return jss.logsumexp(jnp.where(weights > -jnp.inf, each + weights, -jnp.inf), axis=0)

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Draws of y: first a part is drawn, then y from that part."""
        first, second = jax.random.split(key)
        count = int(np.prod(shape))
        which = jax.random.categorical(first, self.log_weights, shape=(count,))

        def draw(index: Array, one: Array) -> Array:
            value: Array = choose(self.parts, index, lambda part, key: part.sample(key), one)
            return value

        draws = jax.vmap(draw)(which, jax.random.split(second, count))
        return draws.reshape(tuple(shape) + draws.shape[1:])

    def cdf(self, y: PyTree) -> Array:
        """P(Y <= y), averaged."""
        return self._average(self._each(lambda part: part.cdf(y)))

    def heavier(self, df: Array) -> WeightedPredictive:
        """The mixture of the parts with heavier tails, whose mean and variance are those of this mixture."""
        return WeightedPredictive(each(lambda part: part.heavier(df), self.parts), self.log_weights)

    def sharper(self, factor: Array) -> WeightedPredictive:
        """The mixture of the sharper parts."""
        return WeightedPredictive(each(lambda part: part.sharper(factor), self.parts), self.log_weights)

    @verb
    def quantile(self, p: ArrayLike) -> Array:
        """The quantile, by bisection on the distribution function, for one output."""
        centre, spread = self.mean, self.sd
        return search_quantile(self.cdf, p, centre, spread, jnp.abs(centre), self.discrete)
