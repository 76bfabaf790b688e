"""Log weights of hypotheses."""

from __future__ import annotations

import functools
import operator

import jax.numpy as jnp
import jax.scipy.special as jss

from credo.core.groups import Groups, each, in_order
from credo.core.trees import all_finite
from credo.core.types import Array
from credo.likelihoods import Contaminated, Predictive, Rescaled, WeightedPredictive

__all__ = ["forecast_mixture", "log_sum", "normalized"]


def log_sum(logs: Array, axis: int | None = None) -> Array:
    """logsumexp over an axis, by default over all, whose derivative is 0 where everything is -inf."""
    dead = jnp.max(logs, axis=axis) == -jnp.inf
    wide = dead if axis is None else jnp.expand_dims(dead, axis)
    return jnp.where(dead, -jnp.inf, jss.logsumexp(jnp.where(wide, 0.0, logs), axis=axis))


def log_sum_few(logs: Array) -> Array:
    """`log_sum` of a short vector, entry by entry: one loop in a compiled program instead of four."""
    entries = [logs[index] for index in range(logs.shape[0])]
    top = functools.reduce(jnp.maximum, entries)
    dead = top == -jnp.inf
    centre = jnp.where(dead, 0.0, top)
    total = functools.reduce(operator.add, [jnp.exp(entry - centre) for entry in entries])
    return jnp.where(dead, -jnp.inf, centre + jnp.log(jnp.where(dead, 1.0, total)))


def normalized(log_weights: Array) -> tuple[Array, Array]:
    """Log weights whose weights sum to one, and the log of their sum before; all -inf stays all -inf."""
    total = log_sum(log_weights)
    return jnp.where(total > -jnp.inf, log_weights - total, log_weights), total


def forecast_mixture(parts: Predictive | Groups[Predictive], log_weights: Array) -> WeightedPredictive:
    """The mixture of those of K forecasts that are finite, which share the weights of the others.

    A hypothesis whose belief has run away forecasts infinities or NaN. With a weight of one in a million it
    would still make the whole mixture NaN. The weights, which sum to one, stay bit by bit where all
    forecasts that have a weight are finite, or none is.
    """
    finite = in_order(each(_finite, parts))
    sick = ~finite & (log_weights > -jnp.inf)
    rest, total = normalized(jnp.where(finite, log_weights, -jnp.inf))
    return WeightedPredictive(parts, jnp.where(jnp.any(sick) & (total > -jnp.inf), rest, log_weights))


def _finite(part: Predictive) -> Array:
    """Whether a forecast is finite; of a mixture, whether all of it is that has a weight."""
    if isinstance(part, Rescaled):
        return _finite(part.predictive) & all_finite((part.location, part.scale))
    if isinstance(part, Contaminated):
        return _finite(part.predictive) & all_finite(part.share)
    if not isinstance(part, WeightedPredictive):
        return all_finite(part)
    dead = part.log_weights == -jnp.inf
    return jnp.all(dead | in_order(each(_finite, part.parts))) & jnp.all(part.log_weights < jnp.inf)
