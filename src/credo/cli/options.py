"""What a user may ask for, and the small languages of `--model`, `--posterior` and `--drift`; free of JAX."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from credo.core.errors import (
    CredoError,
    FormatError,
    require_choice,
    require_integer,
    require_positive,
    suggest,
)

__all__ = [
    "DRIFTS",
    "METHODS",
    "RULES",
    "WRAPPED",
    "Settings",
    "parse_drift",
    "parse_model",
    "parse_posterior",
    "spec",
    "spell_drift",
]

RULES = ("bong", "blr", "bog", "bbb")
"""The methods that keep a posterior."""

METHODS = (*RULES, "sgd", "momentum", "adam", "replay")
CURVATURES = ("lin-hess", "lin-ef", "mc-hess", "mc-ef")
ITERATED = ("bong", "blr", "bbb")
"""The methods that may take several steps for one row."""

RATED = ("blr", "bog", "bbb", "sgd", "momentum", "adam", "replay")
"""The methods that have a learning rate."""

MODELS = ("linear", "mlp", "cnn")
POSTERIORS = ("full", "diagonal", "low-rank")
DRIFTS: dict[str, tuple[tuple[str, float, float], ...]] = {
    "none": (),
    "walk": (("Q, the variance added at each row", 0.0, math.inf),),
    "ou": (("GAMMA, the share kept at each row", 0.0, 1.0),),
    "inflation": (("ALPHA, the share forgotten at each row", 0.0, math.inf),),
    "decay": (("GAMMA, the factor of each row", 0.0, 1.0),),
    "shrink-perturb": (
        ("SHRINK, the factor of each row", 0.0, 1.0),
        ("SD, of the noise of each row", 0.0, math.inf),
    ),
    "run-length": (
        ("HAZARD, the chance of a change before a row", 0.0, 1.0),
        ("CAPACITY, how many run lengths are kept", 1.0, math.inf),
    ),
    "mixture": (("SWITCHING, the chance that another expert takes over before a row", 0.0, 1.0),),
    "soft-reset": (("HAZARD, the chance of a change before a row", 0.0, 1.0),),
}
"""Each drift's numbers: what they mean, and the least and largest that is allowed."""

WRAPPED = ("run-length", "mixture", "soft-reset")
"""Drifts that are a wrapper around the learner; their later numbers may be left out."""

_WHOLE = ("CAPACITY",)

_DRIFT_DEFAULTS = {
    "walk": (1e-6,),
    "ou": (0.9999,),
    "inflation": (1e-4,),
    "decay": (0.9999,),
    "shrink-perturb": (0.9999, 1e-3),
    "run-length": (0.005, 5.0),
    "mixture": (0.01,),
    "soft-reset": (0.05,),
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """How to learn; everything is resolved, so that the same settings give the same learner.

    Attributes:
        task: "classification" or "regression".
        model: "linear", "mlp:W,W,..." or "cnn".
        posterior: "full", "diagonal", "low-rank:R", or "none" for gradient methods.
        method: one of `METHODS`.
        curvature: one of `CURVATURES`.
        drift: "none" or "NAME:NUMBER,...".
        prior_var: the scale of the prior variances (see `credo.cli.defaults.prior_var`).
        noise_var: the noise variance in units of the target's variance; None learns it (regression).
        learning_rate: of the methods that have one.
        seed: of the initial weights, of the order of the rows, and of the draws of Monte Carlo curvatures.
        iterations: of the methods that take several steps for a row.
    """

    task: str
    model: str
    posterior: str
    method: str
    curvature: str
    drift: str
    prior_var: float
    noise_var: float | None
    learning_rate: float | None
    seed: int
    iterations: int | None = None

    @property
    def uncertain(self) -> bool:
        """Whether a posterior is kept."""
        return self.method in RULES

    @property
    def draws(self) -> bool:
        """Whether an update draws random numbers."""
        return self.curvature.startswith("mc-")

    @property
    def spelt(self) -> str:
        """The method in words, with its settings; the default is the posterior alone."""
        if not self.uncertain:
            return self.method
        said = f"{self.posterior} posterior"
        if self.method == "bong" and self.curvature == "lin-hess" and self.iterations in (None, 1):
            return said
        parts = [self.method, self.curvature]
        if self.iterations is not None and (self.method, self.iterations) != ("bong", 1):
            parts.append(f"{self.iterations} iteration{'s'[: self.iterations != 1]}")
        if self.learning_rate is not None:
            parts.append(f"learning rate {self.learning_rate:g}")
        return f"{said} by {', '.join(parts)}"

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON data."""
        return dataclasses.asdict(self)

    @staticmethod
    def from_dict(saved: dict[str, Any]) -> Settings:
        """Restore what `to_dict` gave."""
        try:
            return Settings(**saved)
        except TypeError as error:
            raise FormatError(f"the saved settings are of another version of credo: {error}.") from None


def spec(text: str) -> tuple[str, str]:
    """Split NAME or NAME:REST.

    >>> spec("low-rank:10")
    ('low-rank', '10')
    """
    name, _, rest = text.strip().lower().partition(":")
    return name.replace("_", "-"), rest


def _choice(option: str, text: str, name: str, allowed: Sequence[str], spelt: str) -> None:
    if name not in allowed:
        hint = suggest(name, allowed)
        raise CredoError(f"{option} must be {spelt}; got {text!r}" + (f" ({hint})." if hint else "."))


def parse_model(text: str) -> tuple[str, tuple[int, ...]]:
    """The kind of network and its hidden widths.

    >>> parse_model("mlp:50,50")
    ('mlp', (50, 50))
    """
    spelt = "linear, mlp:WIDTH,WIDTH,... or cnn"
    name, rest = spec(text)
    _choice("--model", text, name, MODELS, spelt)
    if name != "mlp":
        if rest:
            raise CredoError(f"--model {name} takes nothing after a colon; got {text!r}.")
        return name, ()
    try:
        widths = tuple(int(width) for width in rest.split(",")) if rest else (50,)
    except ValueError:
        raise CredoError(
            f"--model must be {spelt}, with whole numbers for the widths; got {text!r}."
        ) from None
    for width in widths:
        require_integer("every width of --model mlp", width, 1)
    return name, widths


def parse_posterior(text: str) -> tuple[str, int | None]:
    """The family of the posterior, and its rank where it has one.

    >>> parse_posterior("low-rank:10"), parse_posterior("full")
    (('low-rank', 10), ('full', None))
    """
    spelt = "full, diagonal or low-rank:RANK"
    name, rest = spec(text)
    _choice("--posterior", text, name, POSTERIORS, spelt)
    if name != "low-rank":
        if rest:
            raise CredoError(f"--posterior {name} takes nothing after a colon; got {text!r}.")
        return name, None
    try:
        rank = int(rest) if rest else 10
    except ValueError:
        raise CredoError(
            f"--posterior must be {spelt}, with a whole number for the rank; got {text!r}."
        ) from None
    require_integer("the rank of --posterior low-rank", rank, 1)
    return name, rank


def parse_drift(text: str) -> tuple[str, tuple[float, ...]]:
    """The kind of drift and its numbers.

    >>> parse_drift("walk:1e-6"), parse_drift("none"), parse_drift("run-length:0.01")
    (('walk', (1e-06,)), ('none', ()), ('run-length', (0.01, 5.0)))
    """
    spelt = (
        "none, walk:Q, ou:GAMMA, inflation:ALPHA, decay:GAMMA, shrink-perturb:SHRINK,SD, "
        "run-length:HAZARD,CAPACITY, mixture:SWITCHING or soft-reset:HAZARD"
    )
    name, rest = spec(text)
    _choice("--drift", text, name, list(DRIFTS), spelt)
    wanted, usual = DRIFTS[name], _DRIFT_DEFAULTS.get(name, ())
    if not rest:
        return name, usual
    try:
        numbers = tuple(float(part) for part in rest.split(","))
    except ValueError:
        raise CredoError(f"--drift must be {spelt}, with numbers after the colon; got {text!r}.") from None
    if len(numbers) > len(wanted) or (len(numbers) < len(wanted) and name not in WRAPPED):
        upto = "at most " if name in WRAPPED else ""
        raise CredoError(
            f"--drift {name} takes {upto}{len(wanted)} number{'s'[: len(wanted) != 1]}; got {text!r}."
        )
    numbers += usual[len(numbers) :]
    for number, (meaning, low, high) in zip(numbers, wanted, strict=True):
        whole = meaning.startswith(_WHOLE)
        if not (low <= number <= high and math.isfinite(number)) or (whole and number != int(number)):
            span = f"at least {low:g}" if high == math.inf else f"in [{low:g}, {high:g}]"
            span = f"a whole number {span}" if whole else span
            raise CredoError(f"--drift {name} needs {span} for {meaning}; got {number:g}.")
    return name, numbers


def spell_drift(text: str) -> str:
    """A drift with the numbers that were left out, where it is a wrapper; else as it was written.

    >>> spell_drift("run-length"), spell_drift("walk")
    ('run-length:0.005,5', 'walk')
    """
    name, numbers = parse_drift(text)
    return f"{name}:{','.join(f'{number:.10g}' for number in numbers)}" if name in WRAPPED else text


def require_settings(method: str, asked: dict[str, Any]) -> None:
    """Refuse an unknown method or curvature, and what the method does not have.

    Arguments:
        method: as asked for, or by default.
        asked: `curvature`, `iterations` and `learning_rate`; None where nothing was asked for.
    """
    require_choice("--method", method, METHODS)
    if asked["curvature"] is not None:
        require_choice("--curvature", asked["curvature"], CURVATURES)
        if method not in RULES:
            raise CredoError(
                f"--curvature {asked['curvature']} does not fit --method {method}, which follows gradients "
                f"only; use --method {', '.join(RULES[:-1])} or {RULES[-1]}."
            )
    if asked["iterations"] is not None:
        require_integer("--iterations", asked["iterations"], 1)
        if method not in ITERATED:
            raise CredoError(
                f"--iterations is for --method {', '.join(ITERATED[:-1])} or {ITERATED[-1]}; "
                f"{method} takes one step for each row."
            )
    rate = asked["learning_rate"]
    if rate is not None:
        require_positive("--learning-rate", rate)
        if method not in RATED:
            raise CredoError(f"--learning-rate is for {', '.join(RATED)}; --method {method} needs none.")
        if method == "blr" and rate > 1:
            raise CredoError(f"--learning-rate must be at most 1 with --method blr; got {rate:g}.")
