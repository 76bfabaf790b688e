"""A function that is one of several, which are of unlike classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.errors import CredoError
from credo.core.groups import Groups, pick
from credo.core.records import record
from credo.core.types import Array, PyTree

__all__ = ["ChosenFunction"]


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
        within, kind = np.zeros(stacks.size, np.int32), np.zeros(stacks.size, np.int32)
        for number, group in enumerate(stacks.places):
            within[list(group)], kind[list(group)] = np.arange(len(group)), number
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
            raise CredoError(f"functions of unlike learners must have values of one shape; got {shapes}.")
        value: Array = jax.lax.switch(self.which, calls, x)
        return value
