"""Mixtures of whole predictives, mixtures of expectations, and expectations of independent numbers.

`Either` mixes two distributions of unlike kinds. `Contaminated` leaves a small probability to outliers, of
which nothing is known but that they are far.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Generic, TypeVar

import jax
import jax.numpy as jnp
import jax.scipy.special as jss
import numpy as np

from credo.core.groups import Groups, choose, each, in_order, pick
from credo.core.records import record
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, PyTree
from credo.core.verbs import traced_once, verb
from credo.likelihoods.expectation import Expectation
from credo.likelihoods.predictive import Predictive
from credo.likelihoods.quantiles import bisect, search_quantile

__all__ = [
    "WIDTH",
    "Contaminated",
    "Either",
    "IndependentExpectation",
    "WeightedExpectation",
    "WeightedPredictive",
    "outlier_log_density",
    "value_cdf",
    "with_outliers",
]

P = TypeVar("P", Predictive, Expectation)
"""The kind of answer that is mixed."""


class _Mixture(Generic[P]):
    """The base of mixtures: parts whose arrays have a leading axis, or `Groups` of such, and log weights."""

    parts: P | Groups[P]
    log_weights: Array

    def _each(self, function: Callable[[P], Array]) -> Array:
        answers: Array = in_order(each(function, self.parts))
        return answers

    def _average(self, values: Array) -> Array:
        weights = jnp.exp(self.log_weights).reshape((-1,) + (1,) * (values.ndim - 1))
        return jnp.sum(jnp.where(weights > 0, weights * values, 0.0), axis=0)

    @property
    @traced_once
    def mean(self) -> Array:
        return self._average(self._each(lambda part: part.mean))

    @property
    @traced_once
    def var(self) -> Array:
        """The variance, by the law of total variance."""
        means = self._each(lambda part: part.mean)
        gaps = means - self._average(means)[None]
        return self._average(self._each(lambda part: part.var) + gaps**2)

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Draws: first a part is drawn, then all numbers from that part."""
        first, second = jax.random.split(key)
        count = int(np.prod(shape))
        which = jax.random.categorical(first, self.log_weights, shape=(count,))

        def draw(index: Array, one: Array) -> Array:
            value: Array = choose(self.parts, index, lambda part, key: part.sample(key), one)
            return value

        draws = jax.vmap(draw)(which, jax.random.split(second, count))
        return draws.reshape(tuple(shape) + draws.shape[1:])


@record
class WeightedPredictive(_Mixture[Predictive], Predictive):
    """A mixture of predictives, p(y) = sum_k w_k p_k(y), as several hypotheses or experts form it.

    Arguments:
        parts: a predictive whose arrays have a leading axis K; or `Groups` of such, if they are of several
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

    @property
    @traced_once
    def probs(self) -> Array:
        """The class probabilities, averaged."""
        return self._average(self._each(lambda part: part.probs))

    @traced_once
    def log_prob(self, y: PyTree) -> Array:
        """log sum_k w_k p_k(y)."""
        each = self._each(lambda part: part.log_prob(y))
        weights = self.log_weights.reshape((-1,) + (1,) * (each.ndim - 1))
        return jss.logsumexp(jnp.where(weights > -jnp.inf, each + weights, -jnp.inf), axis=0)

    @traced_once
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
        centre = self.mean
        spread = self.sd
        return search_quantile(self.cdf, p, centre, spread, jnp.abs(centre), self.discrete)


@record
class WeightedExpectation(_Mixture[Expectation], Expectation):
    """A mixture of expectations: one of several hypotheses is right, and says how all K numbers behave.

    Attributes:
        parts: an expectation whose arrays have a leading axis J, all with the same link; or `Groups` of such,
            if they are of several classes. If their links differ, the latent scale is that of y, and
            each evaluation of a distribution function searches the latent numbers of such parts by bisection.
        log_weights: log weights (J,), which sum to one; -inf leaves a part out, whatever it says.

    Example:
        >>> import credo
        >>> arm = credo.Experts([credo.BetaBernoulli(a=a) for a in (1.0, 3.0)])
        >>> float(arm.expect(arm.init(), None).mean[0])
        0.625
    """

    parts: Expectation | Groups[Expectation]
    log_weights: Array

    @property
    def latent_name(self) -> object:
        """That of the parts where they share one, else "y"."""
        names = [part.latent_name for part in self._kinds]
        if all(name == names[0] for name in names):
            return names[0]
        return "y"

    @property
    def _kinds(self) -> tuple[Expectation, ...]:
        """The parts, one stack a class."""
        if isinstance(self.parts, Groups):
            return self.parts.parts
        return (self.parts,)

    def latent_cdf(self, u: Array) -> Array:
        """The distribution function, averaged."""
        name = self.latent_name

        def one(part: Expectation) -> Array:
            if part.latent_name == name:
                return part.latent_cdf(u)
            return value_cdf(part, u)

        return self._average(self._each(one))

    def latent_scale(self) -> tuple[Array, Array]:
        """The mean and standard deviation of the parts' centres and spreads."""
        name = self.latent_name

        def one(part: Expectation) -> tuple[Array, Array]:
            if part.latent_name == name:
                return part.latent_scale()
            return (part.mean, part.sd)

        scales = each(one, self.parts)
        centres = in_order(each(lambda pair: pair[0], scales))
        spreads = in_order(each(lambda pair: pair[1], scales))
        centre = self._average(centres)
        return centre, jnp.sqrt(self._average(spreads**2 + (centres - centre[None]) ** 2))

    def link(self, u: Array) -> Array:
        """The link of the parts where they share one."""
        first: Expectation = pick(self._kinds[0], 0)
        if first.latent_name == self.latent_name:
            return first.link(u)
        return u


def value_cdf(part: Expectation, values: Array) -> Array:
    """P(number <= value) for each number (K,), by the latent number that the link takes to the value."""
    centre, spread = part.latent_scale()

    def latent(s: Array) -> Array:
        return centre + spread * jnp.sinh(s)

    falls = part.link(latent(jnp.ones_like(centre))) < part.link(latent(-jnp.ones_like(centre)))
    sign = jnp.where(falls, -1.0, 1.0).astype(values.dtype)
    root = bisect(lambda s: sign * part.link(latent(s)), sign * values, -24.0, 24.0)
    below = part.latent_cdf(latent(root))
    chance = jnp.where(falls, 1.0 - below, below)
    return jnp.where(spread > 0, chance, (part.link(centre) <= values).astype(chance.dtype))


@record
class IndependentExpectation(Expectation):
    """Independent numbers, such as the arms of a bandit that each have a learner of their own.

    Attributes:
        parts: an expectation of one number, whose arrays have a leading axis K.

    Example:
        >>> import credo
        >>> arm = credo.BetaBernoulli()
        >>> arms = jax.vmap(lambda a: credo.replace(arm, a=a).init())(jnp.array([1.0, 3.0]))
        >>> IndependentExpectation(jax.vmap(lambda belief: arm.expect(belief, None))(arms)).mean.tolist()
        [0.5, 0.75]
    """

    parts: Expectation

    def _each(self, function: Callable[[Expectation], Array]) -> Array:
        answers: Array = jax.vmap(function)(self.parts)
        return answers.reshape(-1)

    @property
    def mean(self) -> Array:
        return self._each(lambda part: part.mean)

    @property
    def var(self) -> Array:
        return self._each(lambda part: part.var)

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Joint draws, each number by itself."""
        keys = jax.random.split(key, jax.tree.leaves(self.parts)[0].shape[0])
        draws = jax.vmap(lambda part, one: part.sample(one, shape))(self.parts, keys)
        return jnp.moveaxis(draws[..., 0], 0, -1)

    def latent_cdf(self, u: Array) -> Array:
        """The distribution function of each number."""
        each: Array = jax.vmap(lambda part, one: part.latent_cdf(one[None]))(self.parts, u)
        return each.reshape(-1)

    def latent_scale(self) -> tuple[Array, Array]:
        """The centre and spread of each number."""
        centres, spreads = jax.vmap(lambda part: part.latent_scale())(self.parts)
        return centres.reshape(-1), spreads.reshape(-1)

    def link(self, u: Array) -> Array:
        """The link of each number."""
        each: Array = jax.vmap(lambda part, one: part.link(one[None]))(self.parts, u)
        return each.reshape(-1)


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
        >>> distributions = [credo.Normal(1.0).plugin(jnp.full(1, mean)) for mean in (-1.0, 1.0)]
        >>> distribution = Either(*distributions, jnp.log(jnp.array([0.5, 0.5])))
        >>> float(distribution.mean), float(distribution.var), float(distribution.cdf(0.0))
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
        return self._average(lambda distribution: distribution.mean)

    @property
    def var(self) -> Array:
        """The variance, by the law of total variance."""
        centre = self.mean
        return self._average(lambda distribution: distribution.var + (distribution.mean - centre) ** 2)

    @property
    def probs(self) -> Array:
        """The class probabilities, averaged."""
        return self._average(lambda distribution: distribution.probs)

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
        return self._average(lambda distribution: distribution.cdf(y))

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
        >>> distribution = Contaminated(credo.Normal(1.0).plugin(jnp.zeros(1)), jnp.asarray(1e-3))
        >>> [round(float(distribution.log_prob(y)), 2) for y in (0.0, 1000.0)]
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
