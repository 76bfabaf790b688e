"""Conjugate learners: exact Bayes for one unknown, with exponential forgetting towards the prior."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.scipy.special as jss

from credo.beliefs import Beta, Dirichlet, Gamma
from credo.core.errors import CredoError, require_integer, require_interval, require_positive
from credo.core.keys import as_key
from credo.core.names import ForecastName
from credo.core.records import record, replace, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.core.verbs import verb
from credo.learners.base import Info, Learner, accept, usable
from credo.likelihoods import Bernoulli, Categorical, ConjugateExpectation, Expectation, Predictive
from credo.likelihoods.quantiles import log_gamma_ratio

__all__ = ["BetaBernoulli", "DirichletCategorical", "GammaPoisson", "NegativeBinomialPredictive"]


def _forgotten(value: Array, prior: ArrayLike, keep: ArrayLike, dt: ArrayLike | None) -> Array:
    """Pull a pseudo-count back to its prior: a share keep^dt of the evidence survives a step."""
    factor = as_like(keep, value) ** (1.0 if dt is None else as_like(dt, value))
    return jnp.where(factor == 1, value, factor * value + (1 - factor) * as_like(prior, value))


def closed_form(method: ForecastName | None) -> None:
    """Refuse a way to forecast other than the exact one."""
    if method not in (None, "linearized", "plugin"):
        raise CredoError(f"conjugate learners forecast in closed form: method must be None; got {method!r}.")


@record
class Constant:
    """The function that has one value everywhere."""

    value: Array

    def __call__(self, x: PyTree) -> Array:
        """The value."""
        return self.value


@record
class Exposed:
    """A rate times the exposure x."""

    rate: Array

    def __call__(self, x: PyTree) -> Array:
        """The expected count."""
        return self.rate * _exposure(x, self.rate)


@record
class BetaBernoulli(Learner[Beta]):
    """A learner of y in {0, 1} with unknown probability p ~ Beta(a, b). x is ignored.

    Arguments:
        a, b: the prior pseudo-counts of ones and zeros, above 0.
        forgetting: the share of the evidence that is kept for a unit of time, in (0, 1]; 1 never forgets.

    Raises:
        CredoError: a count is not above 0, or `forgetting` is outside (0, 1].

    Example:
        >>> learner = BetaBernoulli()
        >>> belief, info = learner.step(learner.init(), None, 1.0)
        >>> float(belief.mean)
        0.6666666865348816
    """

    a: ArrayLike = 1.0
    b: ArrayLike = 1.0
    forgetting: ArrayLike = 1.0

    def __post_init__(self) -> None:
        require_positive("a", self.a)
        require_positive("b", self.b)
        require_interval("forgetting", self.forgetting, 1e-9, 1.0)

    def init(self, params: PyTree = None, *, var: PyTree = 1.0) -> Beta:
        """The prior Beta(a, b). The arguments are ignored."""
        return Beta(jnp.asarray(self.a, float), jnp.asarray(self.b, float), jnp.zeros((), jnp.int32))

    def time_update(self, belief: Beta, dt: ArrayLike | None) -> Beta:
        a = _forgotten(belief.a, self.a, self.forgetting, dt)
        return Beta(a, _forgotten(belief.b, self.b, self.forgetting, dt), belief.t + 1)

    def predictive(
        self, belief: Beta, x: PyTree, method: ForecastName | None, samples: int | None, key: Key | None
    ) -> Predictive:
        closed_form(method)
        return Bernoulli().plugin(jnp.log(belief.a / belief.b).reshape(1))

    def measurement_update(
        self, belief: Beta, x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> tuple[Beta, Info]:
        observed = (as_like(y, belief.a) == 0) | (as_like(y, belief.a) == 1)
        observed, used = usable(observed, weight, belief.a.dtype)
        value = jnp.where(observed, as_like(y, belief.a), 0.0)
        new = Beta(belief.a + used * value, belief.b + used * (1 - value), belief.t)
        p = jnp.where(value == 1, belief.a, belief.b) / (belief.a + belief.b)
        return accept(belief, new, jnp.where(used > 0, jnp.log(p), 0.0), observed, (), y, used)

    def expectation(self, belief: Beta, x: PyTree) -> Expectation:
        return ConjugateExpectation(belief)

    def function_draw(self, belief: Beta, key: Key) -> Callable[[PyTree], Array]:
        return Constant(belief.sample(as_key(key)))

    def draws(self, belief: Beta, key: Key, shape: tuple[int, ...]) -> Array:
        return belief.sample(as_key(key), shape)


@record
class DirichletCategorical(Learner[Dirichlet]):
    """A learner of y in 0..C-1 with unknown class probabilities p ~ Dirichlet(counts). x is ignored.

    Arguments:
        classes: the number C of classes.
        count: the prior pseudo-count of each class, above 0.
        forgetting: the share of the evidence that is kept for a unit of time, in (0, 1].

    Raises:
        CredoError: `classes` is below 2, `count` is not above 0, or `forgetting` is outside (0, 1].

    Example:
        >>> learner = DirichletCategorical(3)
        >>> belief, info = learner.step(learner.init(), None, 1)
        >>> belief.mean
        Array([0.25, 0.5 , 0.25], dtype=float32)
    """

    classes: int = static_field()
    count: ArrayLike = 1.0
    forgetting: ArrayLike = 1.0

    def __post_init__(self) -> None:
        require_integer("classes", self.classes, 2)
        require_positive("count", self.count)
        require_interval("forgetting", self.forgetting, 1e-9, 1.0)

    def init(self, params: PyTree = None, *, var: PyTree = 1.0) -> Dirichlet:
        """The prior Dirichlet(count, ..., count). The arguments are ignored."""
        counts = jnp.broadcast_to(jnp.asarray(self.count, float), (self.classes,))
        return Dirichlet(counts, jnp.zeros((), jnp.int32))

    def time_update(self, belief: Dirichlet, dt: ArrayLike | None) -> Dirichlet:
        return Dirichlet(_forgotten(belief.counts, self.count, self.forgetting, dt), belief.t + 1)

    def predictive(
        self, belief: Dirichlet, x: PyTree, method: ForecastName | None, samples: int | None, key: Key | None
    ) -> Predictive:
        closed_form(method)
        return Categorical(self.classes).plugin(jnp.log(belief.counts))

    def measurement_update(
        self, belief: Dirichlet, x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> tuple[Dirichlet, Info]:
        observed = Categorical(self.classes).observed(y)
        observed, used = usable(observed, weight, belief.counts.dtype)
        label = jnp.where(observed, jnp.asarray(y), 0).astype(jnp.int32)
        new = Dirichlet(belief.counts.at[label].add(used), belief.t)
        log_p = jnp.log(belief.counts[label] / jnp.sum(belief.counts))
        return accept(belief, new, jnp.where(used > 0, log_p, 0.0), observed, (), y, used)

    def expectation(self, belief: Dirichlet, x: PyTree) -> Expectation:
        return ConjugateExpectation(belief)

    def function_draw(self, belief: Dirichlet, key: Key) -> Callable[[PyTree], Array]:
        return Constant(belief.sample(as_key(key)))

    def draws(self, belief: Dirichlet, key: Key, shape: tuple[int, ...]) -> Array:
        return belief.sample(as_key(key), shape)


@record
class NegativeBinomialPredictive(Predictive):
    """A Poisson count whose rate is Gamma(shape, per), which is negative binomial with success odds `per`."""

    shape: Array
    per: Array

    @property
    def discrete(self) -> bool:
        """Counts are whole numbers."""
        return True

    @property
    def mean(self) -> Array:
        """shape / per."""
        return self.shape / self.per

    @property
    def var(self) -> Array:
        """mean (1 + 1 / per)."""
        return self.mean * (1 + 1 / self.per)

    def log_prob(self, y: PyTree) -> Array:
        """The negative binomial log probability."""
        y = as_like(y, self.shape)
        choose = log_gamma_ratio(self.shape, y) - jss.gammaln(y + 1)
        log_prob: Array = choose - self.shape * jnp.log1p(1 / self.per) - y * jnp.log1p(self.per)
        return log_prob

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        first, second = jax.random.split(key)
        rate = jax.random.gamma(first, self.shape, shape, self.shape.dtype) / self.per
        return jax.random.poisson(second, rate, shape).astype(self.shape.dtype)

    def cdf(self, y: PyTree) -> Array:
        """P(Y <= y), by the incomplete beta function."""
        floor = jnp.floor(as_like(y, self.shape))
        inside = jss.betainc(self.shape, jnp.maximum(floor, 0.0) + 1, self.per / (1 + self.per))
        return jnp.where(floor < 0, 0.0, inside)

    @verb
    def quantile(self, p: ArrayLike) -> Array:
        """The smallest whole y with P(Y <= y) >= p."""
        p = as_like(p, self.shape)
        high = jnp.ones_like(p)
        high = jax.lax.while_loop(lambda h: jnp.any((self.cdf(h) < p) & (h < 2.0**30)), lambda h: 2 * h, high)

        def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            low, top = ends
            middle = jnp.floor(0.5 * (low + top))
            enough = self.cdf(middle) >= p
            return jnp.where(enough, low, middle), jnp.where(enough, middle, top)

        ends: tuple[Array, Array] = jax.lax.fori_loop(0, 32, halve, (jnp.full_like(p, -1.0), high))
        return ends[1]


@record
class GammaPoisson(Learner[Gamma]):
    """A learner of counts y with unknown rate ~ Gamma(shape, per). x is the exposure, by default 1.

    Arguments:
        shape, per: prior pseudo-events and pseudo-exposure, above 0; the prior mean rate is shape / per.
        forgetting: the share of the evidence that is kept for a unit of time, in (0, 1].

    Raises:
        CredoError: `shape` or `per` is not above 0, or `forgetting` is outside (0, 1].

    Example:
        >>> learner = GammaPoisson()
        >>> belief, info = learner.step(learner.init(), None, 3.0)
        >>> float(belief.mean)
        2.0
    """

    shape: ArrayLike = 1.0
    per: ArrayLike = 1.0
    forgetting: ArrayLike = 1.0

    def __post_init__(self) -> None:
        require_positive("shape", self.shape)
        require_positive("per", self.per)
        require_interval("forgetting", self.forgetting, 1e-9, 1.0)

    def init(self, params: PyTree = None, *, var: PyTree = 1.0) -> Gamma:
        """The prior Gamma(shape, per). The arguments are ignored."""
        return Gamma(jnp.asarray(self.shape, float), jnp.asarray(self.per, float), jnp.zeros((), jnp.int32))

    def time_update(self, belief: Gamma, dt: ArrayLike | None) -> Gamma:
        shape = _forgotten(belief.shape, self.shape, self.forgetting, dt)
        return Gamma(shape, _forgotten(belief.per, self.per, self.forgetting, dt), belief.t + 1)

    def predictive(
        self, belief: Gamma, x: PyTree, method: ForecastName | None, samples: int | None, key: Key | None
    ) -> Predictive:
        closed_form(method)
        exposure = _exposure(x, belief.per)
        return NegativeBinomialPredictive(belief.shape, belief.per / exposure)

    def measurement_update(
        self, belief: Gamma, x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> tuple[Gamma, Info]:
        count = as_like(y, belief.shape)
        exposure = _exposure(x, belief.per)
        observed = (count >= 0) & (count == jnp.floor(count)) & (exposure > 0)
        observed, used = usable(observed, weight, belief.shape.dtype)
        safe = jnp.where(observed, count, 0.0)
        new = Gamma(
            belief.shape + used * safe, belief.per + used * jnp.where(observed, exposure, 0.0), belief.t
        )
        log_evidence = NegativeBinomialPredictive(
            belief.shape, belief.per / jnp.where(observed, exposure, 1.0)
        ).log_prob(safe)
        return accept(belief, new, jnp.where(used > 0, log_evidence, 0.0), observed, (), y, used)

    def expectation(self, belief: Gamma, x: PyTree) -> Expectation:
        return ConjugateExpectation(replace(belief, per=belief.per / _exposure(x, belief.per)))

    def function_draw(self, belief: Gamma, key: Key) -> Callable[[PyTree], Array]:
        return Exposed(belief.sample(as_key(key)))

    def draws(self, belief: Gamma, key: Key, shape: tuple[int, ...]) -> Array:
        return belief.sample(as_key(key), shape)


def _exposure(x: PyTree, like: Array) -> Array:
    """The exposure as a number; 1 for None."""
    exposure = jnp.ones_like(like) if x is None else as_like(x, like)
    if exposure.ndim:
        raise CredoError(f"x must be the exposure, one number above 0; got shape {exposure.shape}.")
    return exposure
