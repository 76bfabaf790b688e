"""Log weights of hypotheses."""

from __future__ import annotations

import jax.numpy as jnp
import jax.scipy.special as jss

from credo.core.types import Array

__all__ = ["log_sum", "normalized"]


def log_sum(logs: Array, axis: int | None = None) -> Array:
    """logsumexp, whose derivative is 0 where everything is -inf.

    Arguments:
        logs: log weights.
        axis: the axis to sum over; None for all.

    Returns:
        The log of the sum.
    """
    dead = jnp.max(logs, axis=axis) == -jnp.inf
    wide = dead if axis is None else jnp.expand_dims(dead, axis)
    return jnp.where(dead, -jnp.inf, jss.logsumexp(jnp.where(wide, 0.0, logs), axis=axis))


def normalized(log_weights: Array) -> tuple[Array, Array]:
    """Log weights whose weights sum to one, and the log of their sum before; all -inf stays all -inf."""
    total = log_sum(log_weights)
    return jnp.where(total > -jnp.inf, log_weights - total, log_weights), total
