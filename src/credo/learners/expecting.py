"""What a learner says to one who decides: the law of expected observations, and functions drawn from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from credo.core.errors import CredoError
from credo.core.types import Array, Key, PyTree
from credo.core.verbs import verb
from credo.likelihoods import Expectation

__all__ = ["Expecting"]

B = TypeVar("B")
"""The kind of belief that a learner keeps."""


class Expecting(Generic[B]):
    """The part of a learner that decisions are made from; every `Learner` derives from it."""

    @verb
    def expect(self, belief: B, x: PyTree) -> Expectation:
        """What is believed about the expected observation E[y | theta, x], without the noise of y.

        Arguments:
            belief: the predicted belief.
            x: one row of inputs; or several rows for a joint model, whose numbers come with their joint law.

        Returns:
            The law of K numbers: one an output of the row (the class probabilities of a classifier), or one a
            row of a joint model.

        Raises:
            CredoError: the learner writes no `expectation`.
        """
        return self.expectation(belief, x)

    @verb
    def sample_function(self, belief: B, key: Key) -> Callable[[PyTree], Array]:
        """Draw a function x -> E[y | theta, x] from the belief.

        Arguments:
            belief: any belief of this learner.
            key: the key of the draw.

        Returns:
            A record that is called with one row x, and gives a scalar for one output, else (C,). It may be
            vmapped and differentiated. Outputs of networks are linearised at the mean of the belief.

        Raises:
            CredoError: the learner writes no `function_draw`.
        """
        return self.function_draw(belief, key)

    def expectation(self, belief: B, x: PyTree) -> Expectation:
        """The law of E[y | theta, x] under the belief. `expect` compiles this function.

        A learner that takes part in decisions writes it. The arguments are those of `expect`.

        Raises:
            CredoError: the subclass does not write it.
        """
        raise CredoError(f"{type(self).__name__} has no expectation(belief, x); write this method in it.")

    def function_draw(self, belief: B, key: Key) -> Callable[[PyTree], Array]:
        """One function drawn from the belief, as a record. `sample_function` compiles this function.

        Raises:
            CredoError: the subclass does not write it.
        """
        raise CredoError(f"{type(self).__name__} has no function_draw(belief, key); write this method in it.")

    def inputs_of(self, row: PyTree) -> PyTree:
        """What the verbs of this learner take as x for one row of its model's inputs: by default the row."""
        return row
