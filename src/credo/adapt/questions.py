"""What wrappers ask the learners inside: for forecasts, or for expectations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax.numpy as jnp

from credo.adapt.log_weights import forecast_mixture, normalized
from credo.core.groups import Groups, each, in_order
from credo.core.trees import all_finite
from credo.core.types import Array, PyTree
from credo.learners import Learner
from credo.likelihoods import Expectation, Predictive, RescaledExpectation, WeightedExpectation

__all__ = ["Answer", "Question", "weighted"]

Answer: TypeAlias = Predictive | Expectation
"""What a learner answers."""

Question: TypeAlias = Callable[[Learner[Any], Any, PyTree], Answer]
"""`question(learner, belief, x)`."""


def weighted(answers: Any, log_weights: Array) -> Answer:
    """The mixture of those of K answers that are finite, which share the weights of the others."""
    first = answers.parts[0] if isinstance(answers, Groups) else answers
    if isinstance(first, Predictive):
        return forecast_mixture(answers, log_weights)
    finite = in_order(each(_finite, answers))
    rest, total = normalized(jnp.where(finite, log_weights, -jnp.inf))
    sick = jnp.any(~finite & (log_weights > -jnp.inf)) & (total > -jnp.inf)
    return WeightedExpectation(answers, jnp.where(sick, rest, log_weights))


def _finite(answer: Expectation) -> Array:
    """Whether an expectation is finite; of a mixture, whether all of it is that has a weight."""
    if isinstance(answer, RescaledExpectation):
        return _finite(answer.expectation) & all_finite((answer.location, answer.scale))
    if not isinstance(answer, WeightedExpectation):
        return all_finite(answer)
    dead = answer.log_weights == -jnp.inf
    return jnp.all(dead | in_order(each(_finite, answer.parts))) & jnp.all(answer.log_weights < jnp.inf)
