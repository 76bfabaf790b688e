"""Forecasts of numbers that are stretched about their mean, by as much as observations have asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt.moments import log_sum_few, matched
from credo.adapt.nested import Around, B, floating
from credo.adapt.priors import moved, moved_inside
from credo.adapt.questions import Answer, Question, forecast_of
from credo.adapt.wrapper import Proposal, Wrapper
from credo.core.errors import CredoError, require_interval, require_positive
from credo.core.fields import field
from credo.core.names import ForecastName
from credo.core.records import record, replace
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.core.weights import fixed_share
from credo.learners.acceptance import clean, scored
from credo.likelihoods import Predictive, Rescaled

__all__ = ["Stretch", "Stretched"]

FACTORS = (0.5, 0.7, 0.8, 0.9, 1.0, 1.12, 1.25, 1.5)
"""The factors that are weighed where none are given."""


@record
class Stretch(Around[B], Generic[B]):
    """The belief of a learner, and how well each stretch of its forecasts has predicted.

    Attributes:
        belief: the belief of the learner inside.
        log_weights: log P(factor k forecasts best) (K,), of probabilities that sum to one.
        t: how many times `predict` has been called.

    Example:
        >>> import credo
        >>> inner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(1.0)))
        >>> Stretched(inner, factors=(0.8, 1.0)).init(jnp.zeros(1)).weights.tolist()
        [0.5, 0.5]
    """

    belief: B
    log_weights: Array = field("log weights")
    t: Array

    @property
    def weights(self) -> Array:
        """The probabilities of the factors (K,)."""
        return jnp.exp(self.log_weights)


@record
class Stretched(Wrapper[Stretch[B], B], Generic[B]):
    """A learner of numbers whose whole forecast has the width that past observations ask for.

    A mixture of forecasts that are each as wide as they should be is wider than it should be, since their
    means differ (Gneiting & Ranjan 2013, Theorem 3.1). So where the learner inside forecasts p_0, with the
    mean m, this one forecasts the same distribution stretched about its mean (their "spread-adjusted" pool):

        p(y) = p_0(m + (y - m) / s) / s,   log s = sum_k w_k log s_k,

    for factors s_k with weights w_k. Before an observation a share moves, w_k <- (1 - switching) w_k +
    switching (1 - w_k) / (K - 1), and after it log w_k += weight log p_k(y), normalised, where p_k is the
    distribution that is stretched by s_k. The belief inside learns as it would alone.

    Arguments:
        learner: any learner that forecasts one number.
        factors: the factors s_k, above 0, at least one.
        switching: the probability that another factor is right at the next step, in [0, 0.5].

    Raises:
        CredoError: a number is outside its range, or (later) the forecast is of classes, counts or several
            outputs.

    `Info.log_evidence` is the log density of the stretched distribution, and `extras` are those of the
    learner inside. The weights are exact for a mixture over s_k; that one distribution with the geometric
    mean of the factors is forecast in its place keeps quantiles as cheap as those of the learner inside. The
    mean stays, and so do expectations. A row that is missing or refused leaves the weights; so does one at
    which no density is finite. A forecast by a named `method`, and draws, are those of the learner inside.

    Cost: the forecast of the learner inside, and its log density at K + 1 points.

    Example:
        A forecast that is twice as wide as it should be:

        >>> import credo, jax, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(4.0))
        >>> learner = Stretched(credo.extended_kalman(model))
        >>> ys = jax.random.normal(jax.random.key(0), (300,))
        >>> belief, trace = credo.run(learner, learner.init(jnp.zeros(1)), jnp.ones((300, 1)), ys)
        >>> predictive = learner.forecast(belief, jnp.ones(1))
        >>> bool(0.9 < predictive.sd < 1.1)
        True
    """

    factors: ArrayLike | Sequence[float] = FACTORS
    switching: ArrayLike = 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("factors", self.factors)
        require_interval("switching", self.switching, 0.0, 0.5)
        if isinstance(self.factors, list | tuple):
            object.__setattr__(self, "factors", jnp.asarray(self.factors, float))
        if np.ndim(self.factors) == 0 or np.size(self.factors) == 0:
            raise CredoError(f"factors must be several numbers; got {self.factors!r}.", field="factors")

    def wrap(self, prior: B) -> Stretch[B]:
        """The inner learner's first belief, and equal weights."""
        size = np.shape(self.factors)[0]
        log_weights = jnp.full(size, -jnp.log(float(size)), floating(prior))
        return Stretch(prior, log_weights, jnp.zeros((), jnp.int32))

    def advance(self, belief: Stretch[B], dt: ArrayLike | None) -> Stretch[B]:
        """Advance the learner inside by a step of time, in which another factor may take over."""
        logs = fixed_share(belief.log_weights, self.switching)
        return replace(belief, belief=self.learner.time_update(belief.belief, dt), log_weights=logs)

    def _numbers(self, like: Array) -> Array:
        return jnp.asarray(self.factors, like.dtype)

    def factor(self, belief: Stretch[Any]) -> Array:
        """The factor s of the next forecast: the geometric mean of the factors by their weights."""
        logs = belief.log_weights
        return jnp.exp(jnp.exp(logs) @ jnp.log(self._numbers(logs)))

    def ask(self, belief: Stretch[B], x: PyTree, question: Question) -> Answer:
        answer = question(self.learner, belief.belief, x)
        if not isinstance(answer, Predictive):
            return answer
        return _stretched(answer, self.factor(belief))

    def predictive(
        self,
        belief: Stretch[B],
        x: PyTree,
        method: ForecastName | None,
        samples: int | None,
        key: Key | None,
    ) -> Predictive:
        """The stretched forecast; where a method is named, the forecast of the learner inside."""
        if method is None:
            return super().predictive(belief, x, method, samples, key)
        return forecast_of(self.learner, belief.belief, x, method, samples, key)

    def propose(
        self, belief: Stretch[B], x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> Proposal[Stretch[B]]:
        """Weigh the factors by how they predicted, and let the learner inside learn."""
        logs = belief.log_weights
        seen = x if self.takes_missing else clean(x)
        distribution = forecast_of(self.learner, belief.belief, seen, None, None, key)
        factors = jnp.append(self._numbers(logs), self.factor(belief))
        target = as_like(scored(y), logs)
        densities = jax.vmap(lambda factor: _stretched(distribution, factor).log_prob(target))(factors)
        finite = jnp.isfinite(densities[:-1])
        evidence = jnp.where(finite, densities[:-1], -jnp.inf)
        scores = jnp.where(finite, as_like(weight, densities) * evidence, -jnp.inf)
        total = log_sum_few(logs + scores)
        log_weights = jnp.where(total > -jnp.inf, logs + scores - total, logs)
        learned, info = self.learner.measurement_update(belief.belief, x, y, weight, key)
        new = replace(belief, belief=learned, log_weights=log_weights)
        return Proposal(new, densities[-1], info.ok & jnp.isfinite(densities[-1]), info.extras)


def _stretched(distribution: Predictive, factor: Array) -> Rescaled:
    """A distribution of a number, stretched about its mean."""
    mean = distribution.mean
    if distribution.discrete or jnp.ndim(mean):
        raise CredoError(
            "Stretched is for forecasts of one number; this one is of a class, a count or several."
        )
    share = as_like(factor, mean)
    return Rescaled(distribution, (1.0 - share) * mean, share)


@matched.register
def _(beliefs: Stretch, weights: Array) -> Stretch[Any]:  # type: ignore[type-arg]
    shares = jnp.log(weights @ jnp.exp(beliefs.log_weights))
    return Stretch(matched(beliefs.belief, weights), shares, beliefs.t[0])


moved.register(Stretch)(moved_inside)
