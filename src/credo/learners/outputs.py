"""Learners that can say how uncertain the outputs of their model are."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeVar

from credo.core.types import Array, PyTree
from credo.learners.base import Learner
from credo.models.model import Model

__all__ = ["OutputLearner"]

B = TypeVar("B")


class OutputLearner(Learner[B]):
    """A learner of a model, which knows the mean and covariance of the outputs eta at a row x.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> eta, cov = learner.output_moments(learner.init(jnp.ones(2), var=2.0), jnp.ones(2))
        >>> eta.tolist(), cov.round(3).tolist()
        ([2.0], [[4.0]])
    """

    model: Model

    @abstractmethod
    def output_moments(self, belief: B, x: PyTree) -> tuple[Array, Array]:
        """The mean (C,) and covariance (C, C) of the model's outputs under the predicted belief."""
