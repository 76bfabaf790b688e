"""Learning rates: a number, or a schedule over the steps of the stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import jax.numpy as jnp

from credo.core.errors import require_interval, require_positive
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike, DTypeLike

__all__ = ["Rate", "Schedule", "as_rate", "rate_at"]


@record
class Schedule:
    """A learning rate that changes along the stream.

    Arguments:
        function: a function from the number of the step (0 at the first observation) to the rate, such as an
            optax schedule. Compiled code is kept per function, so make it only once.

    Example:
        >>> float(Schedule(lambda t: 0.5 / (1 + t))(jnp.asarray(1)))
        0.25
    """

    function: Callable[[Array], ArrayLike] = static_field()

    def __call__(self, t: Array) -> ArrayLike:
        """The rate at step t."""
        return self.function(t)


Rate: TypeAlias = ArrayLike | Schedule | Callable[[Array], ArrayLike]
"""A learning rate: a number, or a schedule over the steps of the stream."""


def as_rate(field: str, value: Rate, high: float | None = None) -> ArrayLike | Schedule:
    """The rate as a number above 0 (and at most `high`), or as a schedule made from a function."""
    if callable(value):
        return value if isinstance(value, Schedule) else Schedule(value)
    require_positive(field, value)
    if high is not None:
        require_interval(field, value, 0.0, high)
    return value


def rate_at(rate: Rate, t: Array, dtype: DTypeLike, high: float | None = None) -> Array:
    """The rate at the belief's time t (1 at the first observation), as a scalar of this dtype.

    With `high`, a rate outside [0, high], of a schedule or traced, becomes NaN, and the update is rejected.
    """
    value = rate(jnp.maximum(t - 1, 0)) if callable(rate) else rate
    scalar = jnp.asarray(value).astype(dtype)
    return scalar if high is None else jnp.where((scalar >= 0) & (scalar <= high), scalar, jnp.nan)
