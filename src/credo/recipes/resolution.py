"""The resolution of options to settings, which fills in open choices and refuses those that do not fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from credo.core.errors import CredoError, Named, require_choice
from credo.core.names import CURVATURES, RULES, CurvatureName
from credo.core.setting import require_settings
from credo.recipes import defaults
from credo.recipes.language import Drift, Network, Posterior
from credo.recipes.members import members_of, networks_of
from credo.recipes.networks import count_parameters, family_of, numbers_of, outputs_of
from credo.recipes.options import METHODS, MethodName, NoiseVar, Options, TaskName
from credo.recipes.settings import Settings
from credo.recipes.tasks import RECIPES

__all__ = ["input_clip", "require_memory", "resolve"]

_RATED = tuple(method for method in METHODS if method in defaults.LEARNING_RATE)
_ITERATED = tuple(method for method in METHODS if method in defaults.ITERATIONS)

_OPTIMIZER_NUMBERS: dict[MethodName, int] = {"sgd": 2, "momentum": 3, "adam": 4, "replay": 2}
"""The numbers that a gradient method keeps for each parameter, with its gradient."""


def resolve(
    options: Options, task: TaskName, shape: tuple[int, ...], classes: int, *, ordered: bool = True
) -> Settings:
    """Fill in the choices that the user left open, and refuse those that do not fit together.

    Arguments:
        options: what the user chose; texts are parsed, and "auto" stands for None.
        task: what is predicted.
        shape: the shape of one row of inputs: (features,) for a table, (height, width) for images.
        classes: the number of classes, 0 for a regression.
        ordered: whether the rows are one stream, in which the past fades by default.

    Returns:
        The settings: those of a bank where nothing but the seed was chosen.

    Raises:
        CredoError: a setting is unknown or out of its range, two do not fit together, or memory is too small.

    Example:
        >>> str(resolve(Options(), "regression", (3,), 0).model)
        'bank'
        >>> settings = resolve(Options(drift="run-length"), "regression", (3,), 0)
        >>> str(settings.model), str(settings.posterior), str(settings.drift)
        ('mlp:20', 'full', 'run-length:0.005,5')
    """
    require_settings(options)
    images = len(shape) > 1
    bank = _bank(options)
    if bank is not None:
        return _settings_of_bank(bank, options, task, shape, classes)
    method = require_choice("method", options.method or "bong", METHODS)
    curvature = _curvature(options, method)
    iterations = _iterations(options, method)
    rate = _learning_rate(options, method)
    model = Network.parse(_chosen(options.model) or defaults.model(images, options.budget == "fast"))
    wanted = _chosen(options.posterior)
    wanted = None if wanted is None else Posterior.parse(wanted)
    noise_var = _noise_var(options, task)
    particles = wanted is not None and wanted.kind == "particles"
    if noise_var is None and particles and not RECIPES[task].noiseless:
        noise_var = "input"  # particles learn the noise as a function among the parameters
    outputs = outputs_of(task, classes, noise_var=noise_var)
    size = count_parameters(model, outputs, shape)
    usual = defaults.drift(images, ordered) if method in RULES else "none"
    drift = Drift.parse(_chosen(options.drift) or usual)
    _require_wrapping(drift, method)
    posterior = _posterior(wanted, method, curvature, drift, size, images)
    if posterior is not None and posterior.particles is not None and (iterations or 1) > 1:
        raise CredoError(
            f"{Named('posterior', 'particles')} takes one step for each row.", field="iterations"
        )
    require_memory(posterior, size, drift, model=model, outputs=outputs, method=method)
    prior_var = _prior_var(options, images, task)
    seed = int(options.seed or 0)
    kept = (posterior, method, curvature, drift, prior_var, noise_var)
    return Settings(task, model, *kept, rate, seed, iterations)


_OF_ONE = tuple(name for name in Options.__dataclass_fields__ if name not in ("model", "seed", "budget"))
"""The options of a single learner."""


def _bank(options: Options) -> Network | None:
    """The bank that the options ask for, or None for a single learner."""
    budget = options.budget
    model = _chosen(options.model)
    single = [name for name in _OF_ONE if _chosen(getattr(options, name)) is not None]
    network = None if model is None else Network.parse(model)
    if network is not None and not network.banked:
        single.insert(0, "model")
    banked = network is not None and network.banked
    asked = Named("model", str(network)) if banked else Named("budget", budget)
    if not banked and budget not in ("default", "thorough"):
        usual = Network.parse(defaults.USUAL)
        if usual.banked and not (single or budget == "fast"):
            return usual
        return None
    if single:
        raise CredoError(
            f"{Named(single[0], getattr(options, single[0]))} is for a single learner, and {asked} is "
            f"a bank of several, which have their own; use {Named('budget', 'fast')}.",
            field=single[0],
        )
    if banked and budget is not None:
        raise CredoError(
            f"{asked} says how many members there are; leave out {Named('budget')}.", field="budget"
        )
    return network or Network("wide-bank" if budget == "thorough" else "bank")


def _settings_of_bank(
    bank: Network, options: Options, task: TaskName, shape: tuple[int, ...], classes: int
) -> Settings:
    settings = Settings(
        task, bank, None, "bong", "lin-hess", Drift(), 1.0, None, None, int(options.seed or 0)
    )
    outputs = outputs_of(task, classes)
    if len(shape) > 1:
        return settings
    inputs = math.prod(shape)
    for net in networks_of(members_of(task, inputs, outputs)):
        size = count_parameters(net, outputs, shape)
        kept = numbers_of(family_of(net, outputs, inputs), net, outputs, inputs)
        require_memory(None, size, Drift(), model=net, outputs=outputs, kept=kept)
    return settings


Setting = TypeVar("Setting", Network, Posterior, Drift)


def _chosen(option: Setting | str | None) -> Setting | str | None:
    if option == "auto":
        return None
    return option


def _curvature(options: Options, method: MethodName) -> CurvatureName:
    if options.curvature is None:
        return "lin-hess"
    curvature: CurvatureName = require_choice("curvature", options.curvature, CURVATURES)
    if method not in RULES:
        raise _misfit(Named("curvature", curvature), method, "follows gradients only", _one_of(RULES))
    return curvature


def _misfit(setting: Named, method: MethodName, why: str, use: str) -> CredoError:
    """A setting that does not fit the method; why, and what does."""
    return CredoError(f"{setting} does not fit {Named('method', method)}, which {why}; use {use}.")


def _one_of(methods: Sequence[str]) -> str:
    """Several methods, with "or" before the last."""
    first, *middle, last = methods
    return f"{Named('method', first)}, {', '.join(middle)} or {last}"


def _iterations(options: Options, method: MethodName) -> int | None:
    if options.iterations is not None and method not in _ITERATED:
        raise CredoError(
            f"iterations is for {_one_of(_ITERATED)}; {method} takes one step for each row.",
            field="iterations",
        )
    if method in _ITERATED:
        return options.iterations or defaults.ITERATIONS[method]
    return None


def _learning_rate(options: Options, method: MethodName) -> float | None:
    rate = options.learning_rate
    if rate is not None:
        if method not in _RATED:
            raise CredoError(
                f"learning_rate is for {', '.join(_RATED)}; {Named('method', method)} needs none.",
                field="learning_rate",
            )
        if method == "blr" and rate > 1:
            raise CredoError(
                f"learning_rate must be at most 1 with {Named('method', 'blr')}; got {rate:g}.",
                field="learning_rate",
            )
    return rate or defaults.LEARNING_RATE.get(method)


def _posterior(
    option: Posterior | str | None,
    method: MethodName,
    curvature: CurvatureName,
    drift: Drift,
    size: int,
    images: bool,
) -> Posterior | None:
    if method not in RULES:
        if option is not None:
            raise _misfit(
                Named("posterior", str(option)), method, "keeps no uncertainty", f"{Named('method', 'bong')}"
            )
        return None
    if option is None:
        cubic = defaults.cubic(method, curvature, drift.kind)
        return Posterior.parse(defaults.posterior(size, images, cubic))
    posterior = Posterior.parse(option)
    if posterior.kind == "particles" and (method, curvature) != ("bong", "lin-hess"):
        raise CredoError(
            f"{Named('posterior', 'particles')} is learned by a method of its own; leave out "
            f"{Named('method')} and {Named('curvature')}.",
            field="posterior",
        )
    if posterior.rank is not None and posterior.rank > size:
        raise CredoError(
            f"the rank of {Named('posterior', 'low-rank')} must be at most the number of parameters, "
            f"{size}; got {posterior.rank}.",
        )
    return posterior


def _prior_var(options: Options, images: bool, task: TaskName) -> float:
    if options.prior_var is None:
        return RECIPES[task].prior_var or defaults.prior_scale(images)
    return float(options.prior_var)


def _noise_var(options: Options, task: TaskName) -> NoiseVar:
    choice = options.noise_var
    if choice is None:
        return None
    noiseless = RECIPES[task].noiseless
    if noiseless:
        raise CredoError(
            f"noise_var is for regression; this target is {noiseless} ({Named('task', 'regression')} "
            "to override).",
            field="noise_var",
        )
    if isinstance(choice, str):
        return "input"
    return choice


def _require_wrapping(drift: Drift, method: MethodName) -> None:
    """Refuse wrappers that need a posterior for methods that keep none."""
    if drift.wrapped and drift.kind != "run-length" and method not in RULES:
        use = f"{_one_of(RULES)}, or {Named('drift', 'run-length')}"
        raise _misfit(Named("drift", drift.kind), method, "keeps no uncertainty", use)


def input_clip(settings: Settings) -> float:
    """The largest size of a standardised number that a learner is given; members of a bank clip it again."""
    wide = settings.model.banked and not RECIPES[settings.task].noiseless
    if wide:
        return defaults.BANK_CLIP
    return defaults.CLIP


def require_memory(
    posterior: Posterior | None,
    size: int,
    drift: Drift,
    *,
    model: Network | None = None,
    outputs: int = 1,
    method: MethodName = "bong",
    kept: int | None = None,
) -> None:
    """Refuse, by a CredoError, a learner of more than `defaults.MEMORY_LIMIT` bytes. Counted are the beliefs
    that the drift keeps, or the state of an optimiser, and the C P numbers of the Jacobian of a row. `kept`
    is how many numbers a member of a bank keeps, which has no setting of its own.
    """
    beliefs = {"run-length": 1 + int(drift.numbers[-1]) if drift.numbers else 1}
    copies = (beliefs | {"mixture": len(defaults.MIXTURE)}).get(drift.kind, 1)
    banked = kept is not None
    if kept is None:
        kept = _OPTIMIZER_NUMBERS.get(method, 2) * size if posterior is None else posterior.numbers(size)
    full = posterior is not None and posterior.kind == "full"
    total = 4 * copies * (kept if full else kept + outputs * size)
    if total <= defaults.MEMORY_LIMIT:
        return
    gib = f"{total / 2**30:,.0f} GiB" if total > 2**33 else f"{total / 2**30:.1f} GiB"
    alone = 4 * (2 + outputs) * size > defaults.MEMORY_LIMIT
    if full and not alone:
        square = f"{size} x {size}"
        what = f"a {square} covariance" if copies == 1 else f"{copies} covariances of {square}"
        with_drift = "" if copies == 1 else f" with {Named('drift', str(drift))}"
        raise CredoError(
            f"{Named('posterior', 'full')} would keep {what}{with_drift}, {gib}; use low-rank:10 or diagonal."
        )
    if copies > 1 and not alone:
        raise CredoError(
            f"{Named('drift', str(drift))} would keep {copies:,} beliefs of {size:,} parameters, {gib}; "
            "use a smaller CAPACITY."
        )
    name = "the network" if model is None else f"{Named('model', str(model))}"
    setting = Named("method", method) if posterior is None else Named("posterior", str(posterior))
    belief = "a member of the default bank" if banked else f"{setting}"
    smaller = "" if alone or posterior is None else f", or {Named('posterior', 'diagonal')}"
    raise CredoError(
        f"{name} has {size:,} parameters, for which {belief} would need {gib}, more than the "
        f"{defaults.MEMORY_LIMIT / 2**30:.1f} GiB allowed; use a smaller model{smaller}."
    )
