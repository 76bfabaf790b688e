"""Log weights of hypotheses."""

from __future__ import annotations

import functools
import operator

import jax.numpy as jnp
import jax.scipy.special as jss

from credo.core.types import Array

__all__ = ["log_sum", "normalized"]


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
