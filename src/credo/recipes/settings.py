"""The settings of a session: what a user may choose, and what is resolved from it. Nothing here uses JAX."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias, TypedDict, TypeVar, get_args

from credo.core.errors import FormatError
from credo.core.forms import Loop, Seed, require_form
from credo.core.names import CURVATURES, RULES, CurvatureName, RuleName
from credo.recipes.architecture import Network
from credo.recipes.drift import Drift
from credo.recipes.posterior import Posterior
from credo.tables.tasks import TARGET_KINDS, TargetKind, Task

__all__ = [
    "METHODS",
    "BaselineName",
    "BudgetName",
    "LearnerWords",
    "MethodName",
    "NoiseVar",
    "NumberWords",
    "OptionWords",
    "Options",
    "SavedSettings",
    "Settings",
    "TaskName",
    "one_of",
]

TaskName: TypeAlias = Task
"""The kind of targets to predict: classes, numbers or counts."""

BaselineName: TypeAlias = Literal["sgd", "momentum", "adam", "replay"]
"""The methods that follow gradients and keep no posterior."""

MethodName: TypeAlias = RuleName | BaselineName
"""The methods: the update rules, which keep a posterior, and the gradient baselines."""

NoiseVar: TypeAlias = float | Literal["input"] | None
"""A noise variance that is known, that follows the inputs, or that is learned as one number."""

BudgetName: TypeAlias = Literal["fast", "default", "thorough"]
"""The amount of computation for a row: one learner, a bank of them, or a wider bank."""

METHODS: tuple[MethodName, ...] = (*RULES, *get_args(BaselineName))
"""All methods."""


@dataclasses.dataclass(frozen=True)
class Options:
    """The choices of a user; None leaves a choice to the session, which makes it from the data.

    Arguments:
        model: the network: a `Network`, or its text, such as "mlp:50,50".
        posterior: what is kept of the covariance: a `Posterior`, or its text, such as "low-rank:10".
        method: one of `METHODS`; "bong" by default.
        curvature: how a row's information is measured; "lin-hess" by default.
        drift: how the world may change: a `Drift`, or its text, such as "run-length:0.005,5".
        prior_var: the scale of the prior variances.
        noise_var: the noise variance of a regression, in units of the target's variance; learned by default.
            "input" learns a variance that follows the inputs.
        learning_rate: the learning rate, for the methods that have one.
        iterations: the number of steps for a row, for the methods that may take several.
        seed: the seed of the initial weights and of draws; 0 by default.
        budget: "fast" (one learner), "default" (a bank) or "thorough" (a wider bank).

    Example:
        >>> Options(model="mlp:20", drift=Drift("walk", (1e-5,))).model
        'mlp:20'
    """

    model: Network | str | None = None
    posterior: Posterior | str | None = None
    method: MethodName | str | None = None
    curvature: CurvatureName | str | None = None
    drift: Drift | str | None = None
    prior_var: float | None = None
    noise_var: NoiseVar | str = None
    learning_rate: float | None = None
    iterations: int | None = None
    seed: int | None = None
    budget: BudgetName | str | None = None


class LearnerWords(TypedDict, total=False):
    """The options of every learner as keyword arguments, but for the network and the seed; see `Options`."""

    posterior: Posterior | str | None
    method: MethodName | None
    curvature: CurvatureName | None
    drift: Drift | str | None
    prior_var: float | None
    learning_rate: float | None
    iterations: int | None
    budget: BudgetName | None


class NumberWords(LearnerWords, total=False):
    """The options of learners of numbers as keyword arguments."""

    noise_var: NoiseVar


class OptionWords(NumberWords, total=False):
    """All options as keyword arguments."""

    model: Network | str | None
    seed: int | None


class SavedSettings(TypedDict):
    """Settings as JSON data.

    Example:
        >>> settings = Settings("regression", Network("linear"), Posterior("full"), "bong", "lin-hess",
        ...                     Drift(), prior_var=4.0, noise_var=None, learning_rate=None, seed=0)
        >>> saved: SavedSettings = settings.to_dict()
        >>> saved["model"], saved["posterior"], saved["prior_var"]
        ('linear', 'full', 4.0)
    """

    task: TaskName
    model: str
    posterior: str
    method: MethodName
    curvature: CurvatureName
    drift: str
    prior_var: float
    noise_var: NoiseVar
    learning_rate: float | None
    seed: int
    iterations: int | None


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of a session. Every choice is resolved, so that the same settings give the same learner.

    Attributes:
        task: what is predicted.
        model: the network, or a bank of them.
        posterior: what is kept of the covariance; None for gradient methods, and for banks, whose members
            have their own.
        method: one of `METHODS`.
        curvature: how a row's information is measured.
        drift: how the world may change.
        prior_var: the scale of the prior variances (see `credo.recipes.defaults.prior_scale`).
        noise_var: the noise variance in units of the target's variance; None learns it, and "input"
            learns one that follows the inputs (regression).
        learning_rate: the learning rate, for the methods that have one.
        seed: the seed of the initial weights and of the draws of Monte Carlo curvatures.
        iterations: the number of steps for a row, for the methods that take several.

    Example:
        >>> settings = Settings("regression", Network("linear"), Posterior("full"), "bong", "lin-hess",
        ...                     Drift(), prior_var=4.0, noise_var=None, learning_rate=None, seed=0)
        >>> settings.description
        'full posterior'
        >>> Settings.from_dict(settings.to_dict()) == settings
        True
    """

    task: TaskName
    model: Network
    posterior: Posterior | None
    method: MethodName
    curvature: CurvatureName
    drift: Drift
    prior_var: float
    noise_var: NoiseVar
    learning_rate: float | None
    seed: int
    iterations: int | None = None

    @property
    def target(self) -> TargetKind:
        """The kind of the targets."""
        return TARGET_KINDS[self.task]

    @property
    def uncertain(self) -> bool:
        """Whether the learner is a single one that keeps a posterior."""
        return self.posterior is not None

    @property
    def draws(self) -> bool:
        """Whether an update draws random numbers."""
        return self.curvature.startswith("mc-")

    @property
    def description(self) -> str:
        """The method in words, with its settings. The default method is described by its posterior alone."""
        if self.model.banked:
            return "members weighed by evidence"
        if self.posterior is None:
            return self.method
        words = f"{self.posterior} posterior" + ", noise by the inputs" * (self.noise_var == "input")
        if self.method == "bong" and self.curvature == "lin-hess" and self.iterations in (None, 1):
            return words
        parts: list[str] = [self.method, self.curvature]
        if self.iterations is not None and (self.method, self.iterations) != ("bong", 1):
            parts.append(f"{self.iterations} iteration{'s'[: self.iterations != 1]}")
        if self.learning_rate is not None:
            parts.append(f"learning rate {self.learning_rate:g}")
        return f"{words} by {', '.join(parts)}"

    def to_dict(self) -> SavedSettings:
        """The settings as JSON data."""
        return {
            "task": self.task,
            "model": str(self.model),
            "posterior": "none" if self.posterior is None else str(self.posterior),
            "method": self.method,
            "curvature": self.curvature,
            "drift": str(self.drift),
            "prior_var": self.prior_var,
            "noise_var": self.noise_var,
            "learning_rate": self.learning_rate,
            "seed": self.seed,
            "iterations": self.iterations,
        }

    @staticmethod
    def from_dict(saved: Mapping[str, object]) -> Settings:
        """Restore what `to_dict` gave.

        Raises:
            FormatError: a setting is absent or of another type, or was added by another version.
        """
        names = {field.name for field in dataclasses.fields(Settings)}
        unknown = sorted(set(saved) - names)
        absent = sorted(names - set(saved) - {"iterations"})
        if unknown or absent:
            what = f"it has no {absent[0]!r}" if absent else f"{unknown[0]!r} is unknown"
            raise FormatError(f"the saved settings are of another version of credo: {what}.")
        posterior = _text(saved, "posterior")
        require_form(saved.get("seed"), Seed, "seed")
        require_form(saved.get("iterations"), Loop | None, "iterations")
        seed = _number(saved, "seed")
        iterations = _number(saved, "iterations")
        prior_var = _number(saved, "prior_var")
        if prior_var is None or seed is None:
            raise FormatError("the saved settings are of another version of credo: a number is absent.")
        return Settings(
            one_of(saved, "task", TARGET_KINDS),
            Network.parse(_text(saved, "model")),
            None if posterior == "none" else Posterior.parse(posterior),
            one_of(saved, "method", METHODS),
            one_of(saved, "curvature", CURVATURES),
            Drift.parse(_text(saved, "drift")),
            prior_var,
            "input" if saved["noise_var"] == "input" else _number(saved, "noise_var"),
            _number(saved, "learning_rate"),
            int(seed),
            None if iterations is None else int(iterations),
        )


Name = TypeVar("Name", bound=str)


def one_of(saved: Mapping[str, object], name: str, allowed: Iterable[Name]) -> Name:
    """A saved name, one of those allowed; a FormatError if another version wrote it."""
    for choice in allowed:
        if choice == saved[name]:
            return choice
    raise FormatError(f"the saved {name} is of another version of credo; got {saved[name]!r}.")


def _text(saved: Mapping[str, object], name: str) -> str:
    value = saved[name]
    if not isinstance(value, str):
        raise FormatError(f"the saved {name} must be text; got {value!r}.")
    return value


def _number(saved: Mapping[str, object], name: str) -> float | None:
    value = saved.get(name)
    if value is not None and not isinstance(value, int | float):
        raise FormatError(f"the saved {name} must be a number; got {value!r}.")
    return value
