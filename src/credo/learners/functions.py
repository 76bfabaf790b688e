"""Functions drawn from a belief."""

from __future__ import annotations

import jax

from credo.core.records import record, static_field
from credo.core.trees import Unravel
from credo.core.types import Array, PyTree
from credo.likelihoods.elliptical import drop_one
from credo.models.model import Model

__all__ = ["SampledFunction"]


@record
class SampledFunction:
    """A function x -> E[y | theta, x] for one theta that was drawn from a belief.

    The outputs are linearised at the mean of the belief, eta(x) = f(mean, x) + J(x) step, which is exact for
    models that are linear in their parameters. For networks it is the function that `forecast` believes in:
    the outputs of a network at drawn weights are far more variable where the belief is wide. `step` (P,) is
    the drawn parameters minus `mean` (P,), or None for the function at `mean` itself.
    """

    model: Model
    mean: Array
    step: Array | None
    unravel: Unravel = static_field()

    def __call__(self, x: PyTree) -> Array:
        """The expected observation at one row x: a scalar for one output, else (C,)."""

        def outputs(vector: Array) -> Array:
            return self.model.outputs(vector, self.unravel, x)

        if self.step is None:
            eta = outputs(self.mean)
        else:
            base, move = jax.jvp(outputs, (self.mean,), (self.step,))
            eta = base + move
        return drop_one(self.model.likelihood.mean(eta))
