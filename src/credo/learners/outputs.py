"""Learners that can say how uncertain the outputs of their model are."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeVar

import jax

from credo.core.records import replace
from credo.core.types import Array, ArrayLike, PyTree
from credo.learners.base import Learner
from credo.likelihoods import Predictive, PredictiveRows
from credo.models.model import Model

__all__ = ["OutputLearner"]

B = TypeVar("B")


class OutputLearner(Learner[B]):
    """A learner of a model, which knows the mean and covariance of the outputs eta at a row x."""

    model: Model

    @abstractmethod
    def output_moments(self, belief: B, x: PyTree) -> tuple[Array, Array]:
        """The mean (C,) and covariance (C, C) of the model's outputs under the predicted belief."""

    def scaled_predictive(self, belief: B, x: PyTree, scale: ArrayLike) -> Predictive:
        """The linearised forecast of outputs N(eta, scale cov); a `vmap` over scales computes both once."""
        if self.model.batched:
            single: OutputLearner[B] = replace(self, model=self.model.each)
            return PredictiveRows(jax.vmap(lambda row: single.scaled_predictive(belief, row, scale))(x))
        eta, cov = self.output_moments(belief, x)
        return self.model.likelihood.scaled(eta, cov, scale, getattr(belief, "noise", None))
