"""Hazards: how likely the world changes before the next observation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError, require_interval, require_positive
from credo.core.records import record, static_field
from credo.core.trees import as_like

__all__ = ["ConstantHazard", "Hazard", "HazardFunction", "LearnedHazard", "as_hazard"]


class Hazard:
    """A rule that gives the probability of a change from a run length and a count of changes."""

    counts: bool = False
    """Whether the probability depends on how many changes there were, so that these must be told apart."""

    def probability(self, run_length: jax.Array, count: jax.Array, t: jax.Array) -> jax.Array:
        """P(change before the next observation), elementwise.

        Arguments:
            run_length: steps since the segment's first observation, 0 at that observation; floating point.
            count: how many changes there were; floating point.
            t: how many observations there were, at least 1; floating point.
        """
        raise NotImplementedError


@record
class ConstantHazard(Hazard):
    """The same probability at every step: segments have a geometric length of mean 1 / rate."""

    rate: Any

    def __post_init__(self) -> None:
        require_interval("hazard", self.rate, 0.0, 1.0)

    def probability(self, run_length: jax.Array, count: jax.Array, t: jax.Array) -> jax.Array:
        """The rate."""
        return jnp.broadcast_to(as_like(self.rate, run_length), run_length.shape)


@record
class HazardFunction(Hazard):
    """A hazard that depends on the run length.

    Arguments:
        function: `function(run_length)`, a probability; traceable, elementwise.

    Example:
        >>> hazard = HazardFunction(lambda r: 1.0 - jnp.exp(-r / 100.0))
    """

    function: Callable = static_field()

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise CredoError(f"function must be a function of the run length; got {self.function!r}.")

    def probability(self, run_length: jax.Array, count: jax.Array, t: jax.Array) -> jax.Array:
        """The function's value, kept in [0, 1]."""
        return jnp.clip(as_like(self.function(run_length), run_length), 0.0, 1.0)


@record
class LearnedHazard(Hazard):
    """An unknown constant hazard with prior Beta(a, b), learned along with all else.

    Given c changes in n transitions its mean is (c + a) / (n + a + b): run lengths are kept apart by the
    number of changes (Wilson, Nassar & Gold 2010). Exact while the capacity suffices.

    Arguments:
        a, b: prior pseudo-counts of changes and of steps without one, above 0.
    """

    a: Any = 1.0
    b: Any = 100.0

    counts = True

    def __post_init__(self) -> None:
        require_positive("a", self.a)
        require_positive("b", self.b)

    def probability(self, run_length: jax.Array, count: jax.Array, t: jax.Array) -> jax.Array:
        """(c + a) / (n + a + b) with n = t - 1 transitions so far."""
        a, b = as_like(self.a, count), as_like(self.b, count)
        return (count + a) / (t - 1 + a + b)


def as_hazard(value: Any) -> Hazard:
    """A hazard from a number in [0, 1], a function of the run length, or a hazard."""
    if isinstance(value, Hazard):
        return value
    if callable(value):
        return HazardFunction(value)
    return ConstantHazard(value)
