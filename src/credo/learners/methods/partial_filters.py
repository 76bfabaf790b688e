"""Kalman filters over a part of the parameters, and of ensembles, under their names."""

from __future__ import annotations

from credo.core.types import ArrayLike, PyTree
from credo.dynamics import Dynamics, Static
from credo.learners.ensemble import EnsembleLearner
from credo.learners.methods.filters import extended_kalman
from credo.learners.recursive import RecursiveLearner
from credo.models import Model, last_layer, subspace

__all__ = ["enkf", "etkf", "last_layer_ekf", "subspace_ekf"]


def subspace_ekf(
    model: Model, params: PyTree, basis: ArrayLike, *, dynamics: Dynamics = Static()
) -> RecursiveLearner:
    """The subspace EKF (Duran-Martin, Kara & Murphy 2022, arXiv 2112.00195): `subspace`, then the EKF.

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        params: the parameters at the origin of the subspace.
        basis: its directions (D, P), one a row.
        dynamics: how parameters move between observations.

    Returns:
        A learner.

    Raises:
        CredoError: the basis does not fit.

    Cost of a step: C D^2, and C P D for the Jacobian. Exact within the subspace for linear-Gaussian models.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.subspace_ekf(model, jnp.zeros(3), jnp.eye(2, 3))
        >>> learner.init().mean.shape
        (2,)
    """
    return extended_kalman(subspace(model, params, basis), dynamics=dynamics)


def last_layer_ekf(
    model: Model, params: PyTree, layer: str | None = None, *, dynamics: Dynamics = Static()
) -> RecursiveLearner:
    """The EKF of the last layer on frozen features (Snoek et al. 2015, arXiv 1502.05700): `last_layer`.

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        params: the parameters of the whole network.
        layer: the path of the layer; None takes the last entry of `params`.
        dynamics: how parameters move between observations.

    Returns:
        A learner.

    Raises:
        CredoError: there is no such layer.

    Cost of a step: C D^2 for the D parameters of the layer. Exact given the features, with a linear last
    layer and normal noise.

    Example:
        >>> import credo
        >>> net = credo.MLP(outputs=1, hidden=(8,))
        >>> learner = credo.last_layer_ekf(credo.Model(net, credo.Normal(0.1)), net.init(0, (3,)))
        >>> learner.init().mean.shape
        (9,)
    """
    return extended_kalman(last_layer(model, params, layer), dynamics=dynamics)


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
