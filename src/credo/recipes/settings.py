"""The settings of a session, which are resolved from what a user chose. Nothing here uses JAX."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict, cast

from credo.core.errors import FormatError
from credo.core.forms import Loop, Seed, require_form
from credo.core.names import CurvatureName
from credo.recipes.language import Drift, Network, Posterior
from credo.recipes.options import MethodName, NoiseVar, TaskName
from credo.tables.schema import TARGET_KINDS, TargetKind

__all__ = ["SavedSettings", "Settings"]


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
    seed: Seed
    iterations: NotRequired[Loop | None]


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
        plain = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}
        texts = {
            "model": str(self.model),
            "posterior": str(self.posterior or "none"),
            "drift": str(self.drift),
        }
        return cast(SavedSettings, plain | texts)

    @staticmethod
    def from_dict(saved: Mapping[str, Any]) -> Settings:
        """Restore what `to_dict` gave.

        Raises:
            FormatError: a setting is absent or of another type, or was added by another version.
        """
        unknown = sorted(set(saved) - set(SavedSettings.__annotations__))
        if unknown:
            raise FormatError(
                f"the saved settings are of another version of credo: {unknown[0]!r} is unknown."
            )
        require_form(saved, SavedSettings, "settings")
        none = saved["posterior"] == "none"
        records = {
            "model": Network.parse(saved["model"]),
            "posterior": None if none else Posterior.parse(saved["posterior"]),
            "drift": Drift.parse(saved["drift"]),
        }
        return Settings(**{**saved, **records})
