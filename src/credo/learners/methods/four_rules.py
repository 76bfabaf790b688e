"""The four rules with any family and curvature, which make up every cell of the grid."""

from __future__ import annotations

from credo.core.errors import CredoError, require_choice
from credo.core.names import CurvatureName
from credo.covariances import Family
from credo.dynamics import Dynamics, Static
from credo.learners.curvatures import (
    Curvature,
    LinearizedEmpiricalFisher,
    LinearizedGaussNewton,
    MonteCarloEmpiricalFisher,
    MonteCarloHessian,
)
from credo.learners.recursive import RecursiveLearner
from credo.learners.rules import BBBRule, BLRRule, BOGRule, BONGRule
from credo.learners.rules.base import Rate, Retraction
from credo.learners.rules.blr import Gain
from credo.learners.rules.plain_gradient import Chart
from credo.models import Model

__all__ = ["bbb", "blr", "bog", "bong"]

_CURVATURES: dict[CurvatureName, type[Curvature]] = {
    "lin-hess": LinearizedGaussNewton,
    "lin-ef": LinearizedEmpiricalFisher,
    "mc-hess": MonteCarloHessian,
    "mc-ef": MonteCarloEmpiricalFisher,
}


def _curvature(name: CurvatureName | Curvature) -> Curvature:
    if isinstance(name, Curvature):
        return name
    require_choice("curvature", name, _CURVATURES)
    return _CURVATURES[name]()


def _family(family: Family) -> Family:
    if not isinstance(family, Family):
        raise CredoError(
            f"family must be credo.Full(), credo.Diagonal() or credo.LowRank(rank); got {family!r}."
        )
    return family


def bong(
    model: Model,
    family: Family,
    curvature: CurvatureName | Curvature = "lin-hess",
    *,
    dynamics: Dynamics = Static(),
    gain: Gain = "joint",
    iterations: int = 1,
) -> RecursiveLearner:
    """BONG, the Bayesian online natural gradient: one natural-gradient step for each observation.

    Source: Jones, Chang & Murphy 2024 (arXiv 2405.19681).

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        family: `Full()`, `Diagonal()` or `LowRank(rank)`.
        curvature: "lin-hess", "lin-ef", "mc-hess", "mc-ef" (100 draws), or a curvature object.
        dynamics: how parameters move between observations.
        gain, iterations: see `BONGRule`.

    Returns:
        A learner.

    Raises:
        CredoError: a name is unknown, or a number out of range.

    Cost of a step: see `RecursiveLearner`. Exact for linear-Gaussian models with `Full()` and "lin-hess".

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.bong(model, credo.Full())
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> [round(value, 3) for value in belief.mean.tolist()]
        [0.476, 0.476]
    """
    return RecursiveLearner(
        model, _family(family), _curvature(curvature), BONGRule(gain, iterations), dynamics
    )


def blr(  # noqa: PLR0913 - settings, each by its name
    model: Model,
    family: Family,
    curvature: CurvatureName | Curvature = "lin-hess",
    *,
    dynamics: Dynamics = Static(),
    learning_rate: Rate = 0.5,
    iterations: int = 10,
    gain: Gain = "joint",
    parameters: Chart = "natural",
    retraction: Retraction = "safe",
) -> RecursiveLearner:
    """The Bayesian learning rule (Khan & Rue 2023, arXiv 2107.04562): iterated natural gradients on the ELBO.

    Arguments:
        model, family, curvature, dynamics: as in `bong`.
        learning_rate, iterations, gain, parameters, retraction: see `BLRRule`.

    Returns:
        A learner.

    Raises:
        CredoError: a name is unknown, or a number out of range.

    Cost of a step: `iterations` times that of `bong`; see `BLRRule`.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.blr(model, credo.Diagonal(), iterations=3)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> [round(value, 3) for value in belief.mean.tolist()]
        [0.475, 0.475]
    """
    rule = BLRRule(learning_rate, iterations, gain, parameters, retraction)
    return RecursiveLearner(model, _family(family), _curvature(curvature), rule, dynamics)


def bog(
    model: Model,
    family: Family,
    curvature: CurvatureName | Curvature = "lin-hess",
    *,
    dynamics: Dynamics = Static(),
    learning_rate: Rate = 0.01,
    parameters: Chart | None = None,
    retraction: Retraction = "safe",
) -> RecursiveLearner:
    """Bayesian online gradient (Jones, Chang & Murphy 2024, arXiv 2405.19681): one plain gradient step.

    Arguments:
        model, family, curvature, dynamics: as in `bong`.
        learning_rate, parameters, retraction: see `BOGRule`.

    Returns:
        A learner.

    Raises:
        CredoError: a name is unknown, or a number out of range.

    Cost of a step: see `BOGRule`. Not exact on any model.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.bog(model, credo.Full(), learning_rate=0.01)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> [round(value, 3) for value in belief.mean.tolist()]
        [0.071, 0.071]
    """
    rule = BOGRule(learning_rate, parameters, retraction)
    return RecursiveLearner(model, _family(family), _curvature(curvature), rule, dynamics)


def bbb(
    model: Model,
    family: Family,
    curvature: CurvatureName | Curvature = "lin-hess",
    *,
    dynamics: Dynamics = Static(),
    learning_rate: Rate = 0.01,
    iterations: int = 10,
    parameters: Chart | None = None,
    retraction: Retraction = "safe",
) -> RecursiveLearner:
    """Bayes by backprop, online (Blundell et al. 2015, arXiv 1505.05424): plain gradients on the ELBO.

    Arguments:
        model, family, curvature, dynamics: as in `bong`.
        learning_rate, iterations, parameters, retraction: see `BBBRule`.

    Returns:
        A learner.

    Raises:
        CredoError: a name is unknown, or a number out of range.

    Cost of a step: see `BBBRule`. Not exact on any model.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.bbb(model, credo.Diagonal(), learning_rate=0.01, iterations=5)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> [round(value, 3) for value in belief.mean.tolist()]
        [0.206, 0.206]
    """
    rule = BBBRule(learning_rate, iterations, parameters, retraction)
    return RecursiveLearner(model, _family(family), _curvature(curvature), rule, dynamics)
