"""Questions of wrappers to the learners inside: for forecasts, for expectations, or for a function of x."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt.moments import normalized
from credo.core.errors import CredoError
from credo.core.groups import Groups, each, in_order, pick
from credo.core.names import ForecastName
from credo.core.records import record, replace
from credo.core.trees import all_finite
from credo.core.types import Array, Key, PyTree
from credo.core.verbs import traced_once
from credo.learners import Learner
from credo.likelihoods import (
    Contaminated,
    Either,
    Expectation,
    LatentExpectation,
    Predictive,
    Rescaled,
    RescaledExpectation,
    WeightedExpectation,
    WeightedPredictive,
)

__all__ = ["Answer", "ChosenFunction", "Question", "forecast_mixture", "forecast_of", "weighted"]

Answer: TypeAlias = Predictive | Expectation
"""The answer of a learner."""

Question: TypeAlias = Callable[[Learner[Any], Any, PyTree], Answer]
"""`question(learner, belief, x)`."""


def _forecast_of(
    learner: Learner[Any],
    belief: Any,
    x: PyTree,
    method: ForecastName | None = None,
    samples: int | None = None,
    key: Key | None = None,
) -> Predictive:
    """The forecast of a learner; the arguments are those of `Learner.predictive`."""
    return learner.predictive(belief, x, method, samples, key)


forecast_of = traced_once(_forecast_of, static=("method", "samples"))


def weighted(answers: Any, log_weights: Array) -> Answer:
    """The mixture of those of K answers that are finite, which share the weights of the others."""
    first = answers.parts[0] if isinstance(answers, Groups) else answers
    mixture = WeightedPredictive if isinstance(first, Predictive) else WeightedExpectation
    return mixture(answers, _weights_of_finite(answers, log_weights))


def forecast_mixture(parts: Predictive | Groups[Predictive], log_weights: Array) -> WeightedPredictive:
    """`weighted` of forecasts."""
    return WeightedPredictive(parts, _weights_of_finite(parts, log_weights))


@traced_once
def _weights_of_finite(answers: Any, log_weights: Array) -> Array:
    """Log weights (K,) that sum to one, with -inf for answers that are not finite.

    A hypothesis whose belief has run away forecasts infinities or NaN. With a weight of one in a million it
    would still make the whole mixture NaN. The weights stay bit by bit where all answers that have a weight
    are finite, or none is.
    """
    finite = in_order(each(_finite, answers))
    rest, total = normalized(jnp.where(finite, log_weights, -jnp.inf))
    sick = jnp.any(~finite & (log_weights > -jnp.inf)) & (total > -jnp.inf)
    return jnp.where(sick, rest, log_weights)


def _finite(answer: Answer) -> Array:
    """Whether an answer is finite; of a mixture, whether all of it is that has a weight."""
    if isinstance(answer, LatentExpectation) and answer.factor is not None:
        # variances bound the covariances, which nothing else needs
        return all_finite((replace(answer, cov=jnp.zeros((0, 0))), answer.unit_sd))
    if isinstance(answer, Rescaled):
        return _finite(answer.predictive) & all_finite((answer.location, answer.scale))
    if isinstance(answer, RescaledExpectation):
        return _finite(answer.expectation) & all_finite((answer.location, answer.scale))
    if isinstance(answer, Either):
        dead = answer.log_weights == -jnp.inf
        parts = jnp.stack([_finite(answer.first), _finite(answer.second)])
        return jnp.all(dead | parts) & jnp.all(answer.log_weights < jnp.inf)
    if isinstance(answer, Contaminated):
        return _finite(answer.predictive) & all_finite(answer.share)
    if not isinstance(answer, WeightedPredictive | WeightedExpectation):
        return all_finite(answer)
    dead = answer.log_weights == -jnp.inf
    return jnp.all(dead | in_order(each(_finite, answer.parts))) & jnp.all(answer.log_weights < jnp.inf)


@record
class ChosenFunction:
    """One of several functions of x, which are records, whose place was drawn."""

    functions: tuple[Callable[[PyTree], Array], ...]
    which: Array

    @staticmethod
    def draw(
        stacks: Groups[Any], place: Array, function: Callable[[Any], Callable[[PyTree], Array]]
    ) -> ChosenFunction:
        """The function, a record that is called with x, that belongs to one of K things."""
        within = np.zeros(stacks.size, np.int32)
        kind = np.zeros(stacks.size, np.int32)
        for number, group in enumerate(stacks.places):
            within[list(group)] = np.arange(len(group))
            kind[list(group)] = number
        at = jnp.asarray(within)[place]
        functions = tuple(
            function(pick(part, jnp.minimum(at, len(group) - 1)))
            for part, group in zip(stacks.parts, stacks.places, strict=True)
        )
        return ChosenFunction(functions, jnp.asarray(kind)[place])

    def __call__(self, x: PyTree) -> Array:
        """The value at x, which must have the same shape for all functions."""

        def call(function: Callable[[PyTree], Array]) -> Callable[[PyTree], Array]:
            return lambda x: function(x)  # JAX keeps functions by their hash, which a traced record has not

        calls = [call(function) for function in self.functions]
        shapes = [jax.eval_shape(one, x).shape for one in calls]
        if len(set(shapes)) > 1:
            raise CredoError(
                f"functions of learners of different structures must have values of one shape; got {shapes}."
            )
        value: Array = jax.lax.switch(self.which, calls, x)
        return value
