"""The Fisher EKFs as learners."""

from __future__ import annotations

from credo.beliefs import Gaussian
from credo.core.errors import require_nonnegative
from credo.core.records import record
from credo.core.trees import as_like
from credo.core.types import ArrayLike, Key, PyTree
from credo.covariances import Family
from credo.dynamics import Dynamics
from credo.ekf.transform import Rate
from credo.learners import BONGRule, Info, LinearizedEmpiricalFisher, RecursiveLearner
from credo.learners.rules.base import Schedule, rate_at
from credo.models import Model

__all__ = ["FisherLearner", "fisher_learner"]


@record
class FisherLearner(RecursiveLearner):
    """A recursive learner whose observations each count lr / B.

    `diag_fisher.learner` and `dense_fisher.learner` build it.

    Arguments:
        model, family, curvature, rule, dynamics, forecasting: as in `RecursiveLearner`.
        lr: the strength of an observation, or of all rows of a `joint` model together, at least 0; or a
            schedule, a function of the number of earlier steps.

    Raises:
        CredoError: `lr` is below 0.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(1.0))
        >>> learner = credo.ekf.diag_fisher.learner(model, lr=0.5)
        >>> credo.replace(learner, lr=1.0).lr
        1.0
    """

    lr: Rate = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if callable(self.lr) and not isinstance(self.lr, Schedule):
            object.__setattr__(self, "lr", Schedule(self.lr))
        elif not callable(self.lr):
            require_nonnegative("lr", self.lr)

    def measurement_update(
        self, belief: Gaussian, x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> tuple[Gaussian, Info]:
        count = self.model.likelihood.rows(y) if self.model.batched else 1
        rate = rate_at(self.lr, belief.t, belief.mean.dtype)
        tempered = as_like(weight, belief.mean) * rate / count
        return super().measurement_update(belief, x, y, tempered, key)


def fisher_learner(model: Model, family: Family, dynamics: Dynamics, lr: Rate) -> FisherLearner:
    """LIN-EF with the gain of the covariance that is kept."""
    return FisherLearner(model, family, LinearizedEmpiricalFisher(), BONGRule(gain="kept"), dynamics, lr=lr)
