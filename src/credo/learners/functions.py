"""Functions drawn from a belief, and learners that say how uncertain the outputs of their model are."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeVar

import jax

from credo.core.records import record, replace, static_field
from credo.core.trees import Unravel
from credo.core.types import Array, ArrayLike, PyTree
from credo.learners.base import Learner
from credo.likelihoods import Predictive, PredictiveRows
from credo.likelihoods.elliptical import drop_one
from credo.models.model import Model

__all__ = ["OutputLearner", "SampledFunction"]


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


B = TypeVar("B")


class OutputLearner(Learner[B]):
    """A learner of a model, which knows the mean and covariance of the outputs eta at a row x."""

    model: Model

    @abstractmethod
    def output_moments(self, belief: B, x: PyTree) -> tuple[Array, Array]:
        """The mean (C,) and covariance (C, C) of the model's outputs under the predicted belief."""

    def scaled_predictive(self, belief: B, x: PyTree, scale: ArrayLike | None) -> Predictive:
        """The linearised forecast of outputs N(eta, scale cov); a `vmap` over scales computes both once."""
        if self.model.batched:
            single: OutputLearner[B] = replace(self, model=self.model.each)
            return PredictiveRows(jax.vmap(lambda row: single.scaled_predictive(belief, row, scale))(x))
        eta, cov = self.output_moments(belief, x)
        if scale is None:
            return self.model.likelihood.plugin(eta, getattr(belief, "noise", None))
        return self.model.likelihood.scaled(eta, cov, scale, getattr(belief, "noise", None))
