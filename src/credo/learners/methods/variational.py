"""Variational methods under their names, and online gradient descent."""

from __future__ import annotations

from credo.core.types import ArrayLike
from credo.covariances import Diagonal, Full, LowRank
from credo.dynamics import Dynamics, Static
from credo.learners.curvatures import MonteCarloEmpiricalFisher, MonteCarloHessian
from credo.learners.gradient import GradientLearner, sgd
from credo.learners.methods.four_rules import blr, bong
from credo.learners.recursive import RecursiveLearner
from credo.learners.rules.base import Rate
from credo.models import Model

__all__ = ["ivon", "ogd", "rvga", "slang", "vogn", "von"]


def rvga(model: Model, samples: int = 100, *, dynamics: Dynamics = Static()) -> RecursiveLearner:
    """RVGA (Lambert, Bonnabel & Bach 2022): BONG / full / MC-HESS, the explicit scheme.

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        samples: the number M of draws.
        dynamics: how parameters move between observations.

    Returns:
        A learner.

    Raises:
        CredoError: a number is out of range, or (in `update`) there is no key.

    Cost of a step: M P Hessian-vector products and P^3.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.rvga(model, samples=10)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0, key=0)
        >>> [round(value, 3) for value in belief.mean.tolist()]
        [0.725, 0.725]
    """
    return bong(model, Full(), MonteCarloHessian(samples), dynamics=dynamics)


def von(
    model: Model,
    samples: int = 10,
    *,
    dynamics: Dynamics = Static(),
    learning_rate: Rate = 0.5,
    iterations: int = 10,
) -> RecursiveLearner:
    """VON, variational online Newton (Khan et al. 2018, arXiv 1806.04854): BLR / diagonal / MC-HESS.

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        samples: the number M of draws in each iteration.
        dynamics: how parameters move between observations.
        learning_rate, iterations: see `BLRRule`.

    Returns:
        A learner.

    Raises:
        CredoError: a number is out of range, or (in `update`) there is no key.

    Cost of an iteration: M Hessian-vector products and M P.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.von(model, samples=10)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0, key=0)
        >>> [round(value, 3) for value in belief.mean.tolist()]
        [0.531, 0.531]
    """
    return blr(
        model,
        Diagonal(),
        MonteCarloHessian(samples, step_control=False),
        dynamics=dynamics,
        learning_rate=learning_rate,
        iterations=iterations,
        gain="kept",
    )


def vogn(
    model: Model,
    samples: int = 10,
    *,
    dynamics: Dynamics = Static(),
    learning_rate: Rate = 0.5,
    iterations: int = 10,
) -> RecursiveLearner:
    """VOGN (Khan et al. 2018, arXiv 1806.04854): BLR / diagonal / MC-EF with squares of each gradient.

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        samples: the number M of draws in each iteration.
        dynamics: how parameters move between observations.
        learning_rate, iterations: see `BLRRule`.

    Returns:
        A learner.

    Raises:
        CredoError: a number is out of range, or (in `update`) there is no key.

    Cost of an iteration: M gradients and M P.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.vogn(model, samples=10)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0, key=0)
        >>> [round(value, 3) for value in belief.mean.tolist()]
        [0.425, 0.425]
    """
    return blr(
        model,
        Diagonal(),
        MonteCarloEmpiricalFisher(samples),
        dynamics=dynamics,
        learning_rate=learning_rate,
        iterations=iterations,
        gain="kept",
    )


def slang(
    model: Model,
    rank: int = 10,
    samples: int = 10,
    *,
    dynamics: Dynamics = Static(),
    learning_rate: Rate = 0.5,
    iterations: int = 10,
) -> RecursiveLearner:
    """SLANG (Mishkin et al. 2018, arXiv 1811.04504): BLR / low rank / MC-EF.

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        rank: the number R of directions, from 1 to P.
        samples: the number M of draws in each iteration.
        dynamics: how parameters move between observations.
        learning_rate, iterations: see `BLRRule`.

    Returns:
        A learner.

    Raises:
        CredoError: a number is out of range, or (in `update`) there is no key.

    Cost of an iteration: M gradients and P (2R + M)^2.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.slang(model, rank=1, samples=10)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0, key=0)
        >>> [round(value, 3) for value in belief.mean.tolist()]
        [0.264, 0.264]
    """
    return blr(
        model,
        LowRank(rank),
        MonteCarloEmpiricalFisher(samples),
        dynamics=dynamics,
        learning_rate=learning_rate,
        iterations=iterations,
    )


def ivon(
    model: Model,
    samples: int = 10,
    *,
    dynamics: Dynamics = Static(),
    learning_rate: Rate = 0.1,
    iterations: int = 10,
) -> RecursiveLearner:
    """IVON's estimator and step (Shen et al. 2024, arXiv 2402.17641), without its momentum.

    BLR / diagonal / MC-HESS by Price's theorem.

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        samples: the number M of draws in each iteration.
        dynamics: how parameters move between observations.
        learning_rate, iterations: see `BLRRule`.

    Returns:
        A learner.

    Raises:
        CredoError: a number is out of range, or (in `update`) there is no key.

    Cost of an iteration: M gradients and M P.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.ivon(model, samples=10)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0, key=0)
        >>> [round(value, 3) for value in belief.mean.tolist()]
        [0.499, 0.462]
    """
    return blr(
        model,
        Diagonal(),
        MonteCarloHessian(samples, estimator="price", step_control=False),
        dynamics=dynamics,
        learning_rate=learning_rate,
        iterations=iterations,
        gain="kept",
    )


def ogd(model: Model, learning_rate: ArrayLike = 1e-2) -> GradientLearner:
    """Online gradient descent (Zinkevich 2003): BOG with only the mean, theta + a grad log p(y | theta).

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        learning_rate: a, above 0.

    Returns:
        A learner.

    Raises:
        CredoError: the learning rate is not above 0.

    Cost of a step: one gradient.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.ogd(model, 0.01)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> [round(value, 3) for value in belief.mean.tolist()]
        [0.1, 0.1]
    """
    return sgd(model, learning_rate)
