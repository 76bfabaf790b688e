"""Ensemble Kalman filters under their names."""

from __future__ import annotations

from credo.dynamics import Dynamics, Static
from credo.learners.ensemble import EnsembleLearner
from credo.models import Model

__all__ = ["enkf", "etkf"]


def enkf(model: Model, members: int = 100, *, dynamics: Dynamics = Static()) -> EnsembleLearner:
    """The ensemble Kalman filter (Evensen 1994; perturbed observations: Burgers et al. 1998).

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        members: the number M of members, at least 2.
        dynamics: how parameters move between observations.

    Returns:
        A learner.

    Raises:
        CredoError: fewer than 2 members.

    Cost of a step: M evaluations of the model, and M C P. Exact in the limit of many members on
    linear-Gaussian models.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.enkf(model, members=50)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2), key=0), jnp.ones(2), 1.0)
        >>> belief.members.shape
        (50, 2)
    """
    return EnsembleLearner(model, members, "perturbed", dynamics)


def etkf(model: Model, members: int = 100, *, dynamics: Dynamics = Static()) -> EnsembleLearner:
    """The ensemble transform Kalman filter (Bishop, Etherton & Majumdar 2001), which draws nothing.

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        members: the number M of members, at least 2.
        dynamics: how parameters move between observations.

    Returns:
        A learner.

    Raises:
        CredoError: fewer than 2 members.

    Cost of a step: M evaluations of the model, and M C P. Exact for the members' sample covariance on
    linear-Gaussian models.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.etkf(model, members=50)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2), key=0), jnp.ones(2), 1.0)
        >>> belief.members.shape
        (50, 2)
    """
    return EnsembleLearner(model, members, "etkf", dynamics)
