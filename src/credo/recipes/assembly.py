"""The learner of a session and its prior belief, built from settings if they fit in memory."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np

from credo.adapt import Experts, RunLength, SoftReset
from credo.beliefs import Gaussian, InverseGamma, Point
from credo.core.errors import CredoError
from credo.core.forks import require_threads
from credo.core.kept_programs import Kept
from credo.core.records import replace
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
from credo.likelihoods.base import LikelihoodBase
from credo.models import Model
from credo.particles import liu_west
from credo.recipes import defaults
from credo.recipes.auto import bank_of, combined
from credo.recipes.image_members import ImageMember, image_bank, image_members_of
from credo.recipes.language import Drift, Posterior
from credo.recipes.members import Breadth, Member, TableMember, members_of
from credo.recipes.networks import (
    Origin,
    count_parameters,
    family_of,
    first_parameters,
    network,
    numbers_of,
    outputs_of,
    prior_variances,
)
from credo.recipes.options import MethodName
from credo.recipes.resolution import require_memory
from credo.recipes.settings import Settings
from credo.recipes.tasks import RECIPES, Noise, slots
from credo.tables.infer import MOST_CLASSES

if TYPE_CHECKING:
    from credo.adapt import Bank, Hypotheses, Resettable

__all__ = ["Belief", "SessionLearner", "build", "fits", "inputs_fit", "members", "require_room"]

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

_Curvature: TypeAlias = (
    LinearizedGaussNewton | LinearizedEmpiricalFisher | MonteCarloHessian | MonteCarloEmpiricalFisher
)


def build(
    settings: Settings,
    shape: tuple[int, ...],
    classes: int,
    first: int = 0,
    start: float | None = None,
    origin: Origin | None = None,
) -> tuple[SessionLearner, Belief]:
    """The learner of settings and its prior, for rows of a shape and so many classes, 0 for numbers. `first`
    is how many the first rows showed (0 where they are fixed), `start` the prior mean of the last biases, and
    `origin` the inputs at the beginning, where more have come.
    """
    require_threads()
    if origin == (math.prod(shape),) * 2:
        origin = None
    # the seed is an argument of the compiled programs, so that another seed compiles none anew
    plain = dataclasses.replace(settings, seed=0)
    seed = np.uint32(settings.seed)
    if settings.model.banked:
        pair: tuple[SessionLearner, Belief] = _bank(plain, shape, classes, first, start, origin, seed)
        return pair
    learner = _learner(settings, _model(settings, shape, classes, first, origin))
    return learner, _prior(plain, shape, slots(first, classes), first, start, origin, seed)


@functools.partial(Kept, static=("settings", "shape", "classes", "first", "start", "origin"), once=True)
def _bank(
    settings: Settings,
    shape: tuple[int, ...],
    classes: int,
    first: int,
    start: float | None,
    origin: Origin | None,
    seed: Any,
) -> tuple[SessionLearner, Belief]:
    """The bank of a setting and its prior belief, by one compiled program."""
    task = settings.task
    breadth = _breadth(settings)
    if len(shape) > 1:
        pictures = image_members_of(breadth)
        outputs = outputs_of(task, classes, first)
        distribution = _likelihood(settings, classes, first)
        learner = image_bank(pictures, distribution, shape, outputs, seed, task=task, start=start)
    else:
        inputs = math.prod(shape) if origin is None else origin.inputs
        some = members_of(task, inputs, outputs_of(task, first or classes), breadth)
        learner = bank_of(some, shape, classes, seed, task=task, first=first, start=start, origin=origin)
    whole = combined(learner, task, classes, first)
    belief: Belief = whole.init()
    return whole, belief


def _breadth(settings: Settings) -> Breadth:
    if settings.model.kind == "wide-bank":
        return "wide"
    return "default"


def members(
    settings: Settings, shape: tuple[int, ...], classes: int, first: int = 0
) -> tuple[TableMember | ImageMember, ...]:
    """The members of the bank of a setting, the same however many classes come; none for a single learner."""
    if not settings.model.banked:
        return ()
    if len(shape) > 1:
        return image_members_of(_breadth(settings))
    return members_of(
        settings.task, math.prod(shape), outputs_of(settings.task, first or classes), _breadth(settings)
    )


def _model(
    settings: Settings, shape: tuple[int, ...], classes: int, first: int, origin: Origin | None
) -> Model:
    outputs = outputs_of(settings.task, classes, first, settings.noise_var)
    features = None if origin is None else origin.features
    net = network(settings.model, outputs, shape, settings.seed, features=features)
    return Model(net, _likelihood(settings, classes, first))


@functools.partial(Kept, static=("settings", "shape", "classes", "first", "origin"), once=True)
def _prior(
    settings: Settings,
    shape: tuple[int, ...],
    classes: int,
    first: int,
    start: float | None,
    origin: Origin | None,
    seed: Any,
) -> Belief:
    """The prior belief, by one compiled program in place of some twenty small ones."""
    settings = dataclasses.replace(settings, seed=seed)
    model = _model(settings, shape, classes, first, origin)
    net: Any = model.apply
    features = None if origin is None else origin.features
    begin = RECIPES[settings.task].begin(start)
    params = first_parameters(net, shape, settings.seed, begin, features)
    learner = _learner(settings, model)
    details: dict[str, Any]
    if settings.posterior is None:
        label = np.int32(0) if settings.target.classed else np.float32(0)
        details = {"example": (np.zeros(shape, np.float32), label)}
    else:
        scale = settings.prior_var
        images = len(shape) > 1
        draws = {} if settings.posterior.particles is None else {"key": settings.seed}
        details = draws | {"var": scale if images else prior_variances(net, params, scale, features)}
    belief: Belief = learner.init(params, **details)
    return belief


def _learner(settings: Settings, model: Model) -> SessionLearner:
    """The learner, in the wrapper that its drift asks for, if any."""
    drift = settings.drift
    if settings.posterior is None:
        optimizer = _OPTIMIZERS[settings.method]
        rate = settings.learning_rate
        assert rate is not None
        capacity = defaults.REPLAYED if settings.method == "replay" else 1
        gradient = GradientLearner(model, rate, optimizer, 1, capacity, _dynamics(drift))
        if drift.kind == "run-length":
            return _run_length(drift, gradient)
        return gradient
    if settings.posterior.particles is not None:
        return _adapting(drift, liu_west(model, settings.posterior.particles, _dynamics(drift)))
    recursive = RecursiveLearner(
        model,
        _family(settings.posterior, defaults.dense(settings.method, settings.curvature, drift.kind)),
        _curvature(settings, settings.posterior.rank),
        _rule(settings),
        _dynamics(drift),
    )
    return _adapting(drift, recursive)


def _adapting(drift: Drift, learner: Any) -> SessionLearner:
    """The learner in the wrapper of its drift, if any."""
    if drift.kind == "run-length":
        return _run_length(drift, learner)
    if drift.kind == "mixture":
        bank = [replace(learner, dynamics=PriorBound(RandomWalk(step))) for step in defaults.MIXTURE]
        return Experts(bank, drift.numbers[0])
    return SoftReset(learner, drift.numbers[0]) if drift.kind == "soft-reset" else learner


def _run_length(drift: Drift, learner: Learner[B]) -> RunLength[B]:
    return RunLength(learner, drift.numbers[0], int(drift.numbers[1]), threshold=defaults.ALARM)


def _family(posterior: Posterior, dense: bool) -> Full | Diagonal | LowRank:
    if posterior.rank is not None:
        return LowRank(posterior.rank)
    if posterior.kind == "full":
        return Full("dense" if dense else "root")
    return Diagonal()


def _curvature(settings: Settings, rank: int | None) -> _Curvature:
    if settings.curvature == "mc-hess":
        return MonteCarloHessian(defaults.SAMPLES, rank=rank or 10)
    if settings.curvature == "mc-ef":
        return MonteCarloEmpiricalFisher(defaults.SAMPLES)
    if settings.curvature == "lin-hess":
        return LinearizedGaussNewton()
    return LinearizedEmpiricalFisher()


def _rule(settings: Settings) -> BONGRule | BLRRule | BOGRule | BBBRule:
    """The rule of a method that keeps a posterior. Plain gradients are by mean and variance (or factors)
    whatever that is: one learning rate then moves the mean alike for all.
    """
    rate = settings.learning_rate
    steps = settings.iterations or 1
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


def _likelihood(settings: Settings, classes: int, first: int) -> LikelihoodBase:
    return RECIPES[settings.task].likelihood(_noise(settings), classes, first)


def _noise(settings: Settings) -> Noise:
    """The noise variance of a single learner."""
    if settings.noise_var is not None:
        return settings.noise_var
    particles = settings.posterior is not None and settings.posterior.particles is not None
    if not settings.uncertain or settings.curvature != "lin-hess" or particles:
        return defaults.FIXED_NOISE
    return InverseGamma(*defaults.NOISE)


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
    if drift.kind == "shrink-perturb":
        return ShrinkPerturb(numbers[0], numbers[1])
    return Static()


def require_room(
    settings: Settings, shape: tuple[int, ...], classes: int, first: int = 0, origin: Origin | None = None
) -> None:
    """Refuse more inputs or classes than fit in memory, by a CredoError; the arguments are `build`'s."""
    outputs = outputs_of(settings.task, classes, first, settings.noise_var)
    begun = shape if origin is None else (origin.inputs,)
    bank = members(settings, begun, classes, first)
    if not bank:
        size = count_parameters(settings.model, outputs, shape)
        require_memory(
            settings.posterior, size, settings.drift, model=settings.model, outputs=outputs,
            method=settings.method,
        )  # fmt: skip
        return
    start = outputs_of(settings.task, first or classes, first)
    networks = {one.network: one for one in bank if isinstance(one, Member | ImageMember)}
    for member in networks.values():
        net = member.network
        size = count_parameters(member.network, outputs, shape)
        if isinstance(member, ImageMember):
            kept = Posterior("low-rank", member.rank).numbers(size)
        else:
            inputs = math.prod(shape)
            kept = numbers_of(family_of(net, start, math.prod(begun)), net, outputs, inputs)
        require_memory(None, size, settings.drift, model=net, outputs=outputs, kept=kept)


def fits(
    settings: Settings, shape: tuple[int, ...], classes: int, first: int = 0, origin: Origin | None = None
) -> bool:
    """Whether one more class fits: there are 1,000 at most, and as many as memory holds."""
    if classes > MOST_CLASSES:
        return False
    same = slots(first, classes) == slots(first, classes - 1)
    return same or inputs_fit(settings, shape, classes, first, origin)


def inputs_fit(
    settings: Settings, shape: tuple[int, ...], classes: int, first: int = 0, origin: Origin | None = None
) -> bool:
    """Whether so many inputs fit in memory."""
    try:
        require_room(settings, shape, classes, first, origin)
    except CredoError:
        return False
    return True
