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
    """One of several functions of x, whose place was drawn.

    Attributes:
        functions: the functions, which are records.
        which: the place of the one that is meant.

    Example:
        >>> import credo
        >>> coins, counts = credo.BetaBernoulli(), credo.GammaPoisson()
        >>> learner = credo.Experts([coins, counts])
        >>> function = learner.sample_function(learner.init(), key=0)
        >>> len(function.functions), function(None).shape
        (2, ())
    """

    functions: tuple[Callable[[PyTree], Array], ...]
    which: Array

    @staticmethod
    def draw(
        stacks: Groups[Any], place: Array, function: Callable[[Any], Callable[[PyTree], Array]]
    ) -> ChosenFunction:
        """The function that belongs to one of K things.

        Arguments:
            stacks: the things, of several kinds.
            place: which of them, among all K.
            function: `function(thing)`, a record that is called with x.
        """
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
        """The value at x.

        Raises:
            CredoError: the functions have values of unlike shapes.
        """

        def call(function: Callable[[PyTree], Array]) -> Callable[[PyTree], Array]:
            return lambda x: function(x)  # JAX keeps functions by their hash, which a traced record has not

        calls = [call(function) for function in self.functions]
        shapes = [jax.eval_shape(one, x).shape for one in calls]
        if len(set(shapes)) > 1:
            raise CredoError(f"functions of unlike learners must have values of one shape; got {shapes}.")
        value: Array = jax.lax.switch(self.which, calls, x)
        return value
