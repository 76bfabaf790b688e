"""The learner of a session and its prior belief, built from settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import jax
import numpy as np

from credo.adapt import Experts, RunLength, SoftReset
from credo.beliefs import Gaussian, InverseGamma, Point
from credo.core.records import replace
from credo.core.types import PyTree
from credo.covariances import Diagonal, Full, LowRank
from credo.dynamics import (
    Decay,
    Dynamics,
    Inflation,
    OrnsteinUhlenbeck,
    PriorBound,
    RandomWalk,
    ShrinkPerturb,
    Static,
)
from credo.learners import (
    BBBRule,
    BLRRule,
    BOGRule,
    BONGRule,
    GradientLearner,
    Learner,
    LinearizedEmpiricalFisher,
    LinearizedGaussNewton,
    MonteCarloEmpiricalFisher,
    MonteCarloHessian,
    RecursiveLearner,
)
from credo.likelihoods import Bernoulli, Categorical, Normal
from credo.models import Model
from credo.sessions import defaults
from credo.sessions.drift import Drift
from credo.sessions.posterior import Posterior
from credo.sessions.resolution import network, outputs_of
from credo.sessions.settings import MethodName, Settings

if TYPE_CHECKING:
    from credo.adapt import Bank, Hypotheses, Resettable

__all__ = ["Belief", "SessionLearner", "build"]

B = TypeVar("B", Gaussian, Point)

Belief: TypeAlias = (
    "Gaussian | Point | Hypotheses[Gaussian] | Hypotheses[Point] | Bank[Gaussian] | Resettable[Gaussian]"
)
"""The belief of the learner of a session, whose kind depends on the settings."""

SessionLearner: TypeAlias = Learner[Any]
"""The learner of a session. The kind of belief that it keeps depends on the settings."""

_OPTIMIZERS: dict[MethodName, Literal["sgd", "momentum", "adam"]] = {
    "sgd": "sgd",
    "momentum": "momentum",
    "adam": "adam",
    "replay": "sgd",
}

_Start: TypeAlias = tuple[SessionLearner, Belief]
_Curvature: TypeAlias = (
    LinearizedGaussNewton | LinearizedEmpiricalFisher | MonteCarloHessian | MonteCarloEmpiricalFisher
)


def build(settings: Settings, shape: tuple[int, ...], classes: int) -> tuple[SessionLearner, Belief]:
    """The learner and its prior belief.

    Arguments:
        settings: resolved settings.
        shape: the shape of one row of inputs.
        classes: the number of classes, 0 for a regression.
    """
    net = network(settings.model, outputs_of(settings.task, classes), shape)
    params = net.init(jax.random.key(settings.seed), shape)
    model = Model(net, _likelihood(settings, classes))
    if settings.posterior is None:
        return _gradient(settings, model, params, shape)
    rank = settings.posterior.rank
    learner = RecursiveLearner(
        model,
        _family(settings.posterior, defaults.dense(settings.method, settings.curvature, settings.drift.kind)),
        _curvature(settings, rank),
        _rule(settings),
        _dynamics(settings.drift),
    )
    images = len(shape) > 1
    var = settings.prior_var if images else net.prior_var(params, settings.prior_var)
    return _posterior(settings.drift, learner, params, var)


def _posterior(drift: Drift, learner: RecursiveLearner, params: PyTree, var: PyTree) -> _Start:
    """The learner in the wrapper that a drift asks for, if any, with its prior."""
    if drift.kind == "run-length":
        changing = _run_length(drift, learner)
        return changing, changing.init(params, var=var)
    if drift.kind == "mixture":
        bank = [replace(learner, dynamics=PriorBound(RandomWalk(step))) for step in defaults.MIXTURE]
        experts = Experts(bank, drift.numbers[0])
        return experts, experts.init(params, var=var)
    if drift.kind == "soft-reset":
        resetting = SoftReset(learner, drift.numbers[0])
        return resetting, resetting.init(params, var=var)
    return learner, learner.init(params, var=var)


def _gradient(settings: Settings, model: Model, params: PyTree, shape: tuple[int, ...]) -> _Start:
    optimizer, rate = _OPTIMIZERS[settings.method], settings.learning_rate
    assert rate is not None
    capacity = defaults.REPLAYED if settings.method == "replay" else 1
    learner = GradientLearner(model, rate, optimizer, 1, capacity, _dynamics(settings.drift))
    label = np.float32(0) if settings.task == "regression" else np.int32(0)
    example = (np.zeros(shape, np.float32), label)
    if settings.drift.kind == "run-length":
        changing = _run_length(settings.drift, learner)
        return changing, changing.init(params, example=example)
    return learner, learner.init(params, example=example)


def _run_length(drift: Drift, learner: Learner[B]) -> RunLength[B]:
    return RunLength(learner, drift.numbers[0], int(drift.numbers[1]), threshold=defaults.ALARM)


def _family(posterior: Posterior, dense: bool) -> Full | Diagonal | LowRank:
    if posterior.rank is not None:
        return LowRank(posterior.rank)
    return Full("dense" if dense else "root") if posterior.kind == "full" else Diagonal()


def _curvature(settings: Settings, rank: int | None) -> _Curvature:
    if settings.curvature == "mc-hess":
        return MonteCarloHessian(defaults.SAMPLES, rank=rank or 10)
    if settings.curvature == "mc-ef":
        return MonteCarloEmpiricalFisher(defaults.SAMPLES)
    return LinearizedGaussNewton() if settings.curvature == "lin-hess" else LinearizedEmpiricalFisher()


def _rule(settings: Settings) -> BONGRule | BLRRule | BOGRule | BBBRule:
    """The rule of a method that keeps a posterior.

    Plain gradients are by mean and variance (or factors), whatever the posterior: one learning rate then
    moves the mean alike for all of them.
    """
    rate, steps = settings.learning_rate, settings.iterations or 1
    low_rank = settings.posterior is not None and settings.posterior.kind == "low-rank"
    parameters: Literal["moment"] | None = None if low_rank else "moment"
    if settings.method == "bong":
        return BONGRule(iterations=steps)
    assert rate is not None
    if settings.method == "blr":
        return BLRRule(rate, steps)
    if settings.method == "bbb":
        return BBBRule(rate, steps, parameters)
    return BOGRule(rate, parameters)


def _likelihood(settings: Settings, classes: int) -> Bernoulli | Categorical | Normal:
    if settings.task == "classification":
        return Bernoulli() if classes == 2 else Categorical(classes)
    if settings.noise_var is not None:
        return Normal(settings.noise_var)
    if not settings.uncertain or settings.curvature != "lin-hess":
        return Normal(defaults.FIXED_NOISE)
    return Normal(InverseGamma(*defaults.NOISE))


def _dynamics(drift: Drift) -> Dynamics:
    numbers = drift.numbers
    if drift.kind == "walk":
        return PriorBound(RandomWalk(numbers[0]))
    if drift.kind == "ou":
        return OrnsteinUhlenbeck(numbers[0])
    if drift.kind == "inflation":
        return Inflation(numbers[0])
    if drift.kind == "decay":
        return Decay(numbers[0])
    return ShrinkPerturb(numbers[0], numbers[1]) if drift.kind == "shrink-perturb" else Static()
