"""Forecasts by the targets of alike rows: votes of classes, numbers and counts, by conjugacy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import jax
import jax.numpy as jnp

from credo.beliefs import Beta, Dirichlet, Gamma, InverseGamma
from credo.core.errors import CredoError
from credo.core.fields import field
from credo.core.records import record
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, DTypeLike, PyTree
from credo.learners.conjugate import NegativeBinomialPredictive
from credo.likelihoods import (
    Bernoulli,
    ConjugateExpectation,
    Expectation,
    LatentExpectation,
    NegativeBinomial,
    Normal,
    OpenCategorical,
    Poisson,
    Predictive,
    StudentTPredictive,
)
from credo.likelihoods.base import LikelihoodBase
from credo.likelihoods.categorical import ClassLikelihood, class_outputs, class_slots, known_classes

__all__ = ["ClassVotes", "CountVotes", "NumberVotes", "Votes", "votes_of"]

P = TypeVar("P", bound=PyTree)
"""The summary of all targets: the base, towards which few votes are drawn."""


class Votes(ABC, Generic[P]):
    """The forecast of the next target by those (k,) of alike rows, given the shares (S, k) of S widths.

    Every answer is a stack of S distributions. The base is what is known of all targets alike.
    """

    @abstractmethod
    def base(self, widths: int, dtype: DTypeLike) -> P:
        """The base before any target."""

    @abstractmethod
    def observed(self, y: PyTree) -> Array:
        """Whether y is a target: a boolean."""

    @abstractmethod
    def forecast(self, base: P, targets: Array, shares: Array) -> Predictive:
        """The forecasts of the next target."""

    @abstractmethod
    def expectation(self, base: P, targets: Array, shares: Array) -> Expectation:
        """The distributions of the expected target."""

    @abstractmethod
    def value(self, base: P, targets: Array, shares: Array, key: Array) -> Array:
        """The expected target for shares (k,) that were drawn, with a base that is drawn with the key."""

    @abstractmethod
    def learn(self, base: P, forecast: Predictive, y: Array, weight: Array, fade: float) -> P:
        """The base after a target, of which earlier ones have lost the share `fade` of their weight."""


@record
class ClassVotes(Votes[Array]):
    """Votes for classes: p_c = (n_c + s b_c) / (n + s), with n_c the shares of class c and b the base rates.

    Base rates are those among the classes that are known; a class that is not known has no probability.

    Arguments:
        likelihood: `Bernoulli`, `Categorical` or `OpenCategorical`.
        strength: the pseudo-count s of the base rates, above 0.

    Example:
        >>> votes = ClassVotes(Bernoulli(), 1.0)
        >>> shares = jnp.asarray([[1.0, 1.0, 0.0]])
        >>> probs = votes.forecast(votes.base(1, float), jnp.asarray([1.0, 1.0, 0.0]), shares).probs
        >>> [round(float(p), 2) for p in probs.reshape(-1)]
        [0.17, 0.83]
    """

    likelihood: ClassLikelihood
    strength: ArrayLike = 0.03

    @property
    def classes(self) -> int:
        """The number of classes that there is room for."""
        return class_slots(self.likelihood)

    def base(self, widths: int, dtype: DTypeLike) -> Array:
        return jnp.ones(self.classes, dtype)

    def observed(self, y: PyTree) -> Array:
        label = jnp.asarray(y)
        return self.likelihood.observed(y) & jnp.all(label == jnp.round(label))

    def prior(self, base: Array) -> Array:
        """s b_c (C,), which vanishes for classes that are not known."""
        if isinstance(self.likelihood, OpenCategorical):
            known = jnp.arange(self.classes) < jnp.asarray(self.likelihood.known, int)
            base = jnp.where(known, base, 0.0)
        return as_like(self.strength, base) * base / jnp.sum(base)

    def told(self, targets: Array, shares: Array) -> Array:
        """n_c: the shares of each class (..., C)."""
        labels = jnp.arange(self.classes, dtype=targets.dtype)
        return shares @ (targets[:, None] == labels[None, :]).astype(shares.dtype)

    def counts(self, base: Array, targets: Array, shares: Array) -> Array:
        """n_c + s b_c of each width (S, C), which a logarithm can be taken of."""
        counts = self.told(targets, shares) + self.prior(base)[None, :]
        return jnp.maximum(counts, jnp.finfo(counts.dtype).tiny)

    def forecast(self, base: Array, targets: Array, shares: Array) -> Predictive:
        logs = jnp.log(self.counts(base, targets, shares))
        return jax.vmap(lambda row: self.likelihood.plugin(class_outputs(self.likelihood, row)))(logs)

    def expectation(self, base: Array, targets: Array, shares: Array) -> Expectation:
        counts = self.counts(base, targets, shares)
        clock = jnp.zeros(counts.shape[0], jnp.int32)
        if isinstance(self.likelihood, Bernoulli):
            return ConjugateExpectation(Beta(counts[:, 1], counts[:, 0], clock))
        return ConjugateExpectation(Dirichlet(counts, clock))

    def value(self, base: Array, targets: Array, shares: Array, key: Array) -> Array:
        # a gamma number of a small shape is often below the smallest float, so that logarithms are added up
        fixed = jnp.maximum(self.prior(base), jnp.finfo(base.dtype).tiny)
        logs = jnp.logaddexp(
            jnp.log(self.told(targets, shares)), jax.random.loggamma(key, fixed, dtype=fixed.dtype)
        )
        probs = jax.nn.softmax(known_classes(self.likelihood, logs))
        if isinstance(self.likelihood, Bernoulli):
            return probs[1]
        return probs

    def learn(self, base: Array, forecast: Predictive, y: Array, weight: Array, fade: float) -> Array:
        own = (y == jnp.arange(self.classes, dtype=y.dtype)).astype(base.dtype)
        return (1.0 - fade) * base + fade + weight * own


@record
class NumberLevel:
    """The summary of all numbers: their mean, and how far off each width's forecasts are.

    Attributes:
        mean: the running mean of the numbers.
        count: the weight of the numbers that it is the mean of.
        noise: the running scale of the squared errors of each width (S,).

    Example:
        >>> NumberLevel(jnp.zeros(()), jnp.zeros(()), jnp.ones(4)).noise.shape
        (4,)
    """

    mean: Array = field(raw=True)
    count: Array = field("nonnegative", raw=True)
    noise: Array = field("positive", raw=True)


FLOOR = 1e-12
"""The smallest scale of errors, as a share of the first: a density is finite where all targets are alike."""


@record
class NumberVotes(Votes[NumberLevel]):
    """Votes for numbers: a normal-inverse-gamma, whose noise is that of the errors of its own forecasts.

        y ~ t(2 a, m, b (1 + 1 / k) / a),   k = k0 + n,   a = a0 + n / 2,   b = a0 v + S / 2

    with n the sum of the shares, m their weighted mean, drawn to the mean of all numbers by k0 rows, S the
    sum of their squares around it, and v the running scale of the squared errors of this width.

    Arguments:
        noise: the prior of the noise: a0 is its shape, v begins at its scale over its shape, and the latest
            error has at least the share 1 - `forgetting` in v.
        confidence: the pseudo-count k0, above 0.

    Example:
        >>> votes = NumberVotes(InverseGamma(3.0, 3.0))
        >>> distribution = votes.forecast(votes.base(1, float), jnp.asarray([2.0, 2.2]), jnp.ones((1, 2)))
        >>> [round(float(distribution.loc[0, 0]), 1)], distribution.df.tolist()
        ([2.0], [8.0])
    """

    noise: InverseGamma
    confidence: ArrayLike = 0.1

    def base(self, widths: int, dtype: DTypeLike) -> NumberLevel:
        zero = jnp.zeros((), dtype)
        return NumberLevel(zero, zero, jnp.full(widths, self._first(zero), dtype))

    def _first(self, like: Array) -> Array:
        """The scale of errors before any."""
        return as_like(self.noise.scale, like) / as_like(self.noise.shape, like)

    def observed(self, y: PyTree) -> Array:
        return jnp.isfinite(jnp.asarray(y)).reshape(())

    def _posterior(
        self, base: NumberLevel, targets: Array, shares: Array
    ) -> tuple[Array, Array, Array, Array]:
        """k, m, a and b of each width (S,). Squares are taken around the nearest target, for their digits."""
        centre = targets[0]
        gaps = targets - centre
        sums = shares @ jnp.stack([jnp.ones_like(gaps), gaps, gaps**2], axis=1)
        few = as_like(self.confidence, gaps)
        own = base.mean - centre
        rows = sums[:, 0] + few
        mean = (sums[:, 1] + few * own) / rows
        squares = jnp.maximum(sums[:, 2] + few * own**2 - rows * mean**2, 0.0)
        a0 = as_like(self.noise.shape, gaps)
        return rows, centre + mean, a0 + 0.5 * sums[:, 0], a0 * base.noise + 0.5 * squares

    def forecast(self, base: NumberLevel, targets: Array, shares: Array) -> StudentTPredictive:
        rows, mean, a, b = self._posterior(base, targets, shares)
        scale = b / a * (1.0 + 1.0 / rows)
        return StudentTPredictive(2.0 * a, mean[:, None], scale[:, None, None])

    def expectation(self, base: NumberLevel, targets: Array, shares: Array) -> Expectation:
        rows, mean, a, b = self._posterior(base, targets, shares)

        def one(rows: Array, mean: Array, a: Array, b: Array) -> Expectation:
            noise = InverseGamma(a, b)
            return LatentExpectation(Normal(noise), mean.reshape(1, 1), (1.0 / rows).reshape(1, 1), noise)

        return jax.vmap(one)(rows, mean, a, b)

    def value(self, base: NumberLevel, targets: Array, shares: Array, key: Array) -> Array:
        few = as_like(self.confidence, targets) * jax.random.exponential(key, dtype=targets.dtype)
        return (shares @ targets + few * base.mean) / (jnp.sum(shares) + few)

    def learn(
        self, base: NumberLevel, forecast: Predictive, y: Array, weight: Array, fade: float
    ) -> NumberLevel:
        """The noise is the scale of a Student-t's expectation-maximisation step, so outliers count little."""
        assert isinstance(forecast, StudentTPredictive)
        count = (1.0 - fade) * base.count + weight
        mean = base.mean + weight / jnp.maximum(count, jnp.finfo(count.dtype).tiny) * (y - base.mean)
        squares = (y - forecast.loc[:, 0]) ** 2
        df = forecast.df
        trust = (df + 1.0) / (df + squares / forecast.shape[:, 0, 0])
        least = 1.0 - as_like(self.noise.forgetting, count)
        rate = jnp.minimum(weight * jnp.maximum(least, 1.0 / (count + 2.0)), 1.0)
        noise = base.noise + rate * (trust * squares - base.noise)
        return NumberLevel(mean, count, jnp.maximum(noise, FLOOR * self._first(noise)))


@record
class CountVotes(Votes[Array]):
    """Votes for counts: rate ~ Gamma(sum + s r, n + s), with r the mean of all counts.

    Arguments:
        strength: the pseudo-count s of the mean of all counts, above 0.

    Example:
        >>> votes = CountVotes(1.0)
        >>> distribution = votes.forecast(votes.base(1, float), jnp.asarray([2.0, 3.0]), jnp.ones((1, 2)))
        >>> distribution.mean.tolist()
        [2.0]
    """

    strength: ArrayLike = 0.3

    def base(self, widths: int, dtype: DTypeLike) -> Array:
        """The sum and the number of all counts, faded; they begin at one event in one row."""
        return jnp.ones(2, dtype)

    def observed(self, y: PyTree) -> Array:
        return Poisson().observed(y)

    def _posterior(self, base: Array, targets: Array, shares: Array) -> tuple[Array, Array]:
        few = as_like(self.strength, base)
        return shares @ targets + few * base[0] / base[1], jnp.sum(shares, axis=-1) + few

    def forecast(self, base: Array, targets: Array, shares: Array) -> Predictive:
        return NegativeBinomialPredictive(*self._posterior(base, targets, shares))

    def expectation(self, base: Array, targets: Array, shares: Array) -> Expectation:
        shape, per = self._posterior(base, targets, shares)
        return ConjugateExpectation(Gamma(shape, per, jnp.zeros(shape.shape, jnp.int32)))

    def value(self, base: Array, targets: Array, shares: Array, key: Array) -> Array:
        few = as_like(self.strength, base)
        events = shares @ targets + jax.random.gamma(key, few * base[0] / base[1], dtype=base.dtype)
        return events / (jnp.sum(shares) + few)

    def learn(self, base: Array, forecast: Predictive, y: Array, weight: Array, fade: float) -> Array:
        return (1.0 - fade) * base + fade + weight * jnp.stack([y, jnp.ones_like(y)])


def votes_of(likelihood: LikelihoodBase) -> ClassVotes | NumberVotes | CountVotes:
    """The votes that forecast the targets of a likelihood.

    Raises:
        CredoError: the likelihood has none: it is not of classes, counts, or numbers of unknown noise.

    Example:
        >>> type(votes_of(Bernoulli())).__name__
        'ClassVotes'
    """
    if isinstance(likelihood, ClassLikelihood):
        return ClassVotes(likelihood)
    if isinstance(likelihood, Poisson | NegativeBinomial):
        return CountVotes()
    if isinstance(likelihood, Normal) and isinstance(likelihood.var, InverseGamma):
        return NumberVotes(likelihood.var)
    raise CredoError(
        "likelihood must be Bernoulli, Categorical, OpenCategorical, Poisson, NegativeBinomial, or "
        f"Normal(InverseGamma(...)) for votes; got {likelihood!r}.",
        field="likelihood",
    )
