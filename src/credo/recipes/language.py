"""Settings with numbers, and the small language in which they are written: NAME, or NAME:PART,PART,...

They are the network of a session, the family of its belief, and the changes of its world.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias, TypeVar, get_args

from credo.core.errors import CredoError, Named, Sentence, require_integer, require_representable, suggest
from credo.core.integers import read_integer

__all__ = [
    "Drift",
    "DriftKind",
    "Network",
    "NetworkKind",
    "Posterior",
    "PosteriorKind",
    "choose",
    "numbers",
    "split",
]

Name = TypeVar("Name", bound=str)
Number = TypeVar("Number", int, float)


def split(text: str) -> tuple[str, str]:
    """Split NAME or NAME:REST, "Low_Rank:10" as "low-rank", "10". Capitals and underscores do not matter."""
    name, _, rest = text.strip().lower().partition(":")
    return name.replace("_", "-"), rest


def choose(setting: str, text: str, name: str, allowed: Sequence[Name], forms: str) -> Name:
    """The name in the text of a setting; a CredoError shows the `forms` if it is none of those allowed."""
    for choice in allowed:
        if choice == name:
            return choice
    raise CredoError.must_be(setting, forms, text, suggest(name, allowed))


def numbers(
    setting: str, text: str, parts: Sequence[str], read: Callable[[str], Number], forms: str
) -> tuple[Number, ...]:
    """The numbers in the text of a setting; a CredoError shows the `forms` if a part is none."""
    try:
        return tuple(read(part) for part in parts)
    except ValueError:
        raise CredoError.must_be(setting, forms, text) from None


NetworkKind: TypeAlias = Literal["linear", "mlp", "cnn", "features", "bank", "wide-bank"]
"""The kinds of networks, and the banks of several of them."""

_NETWORKS: tuple[NetworkKind, ...] = get_args(NetworkKind)
_NETWORK_FORMS = "linear, mlp:WIDTH,WIDTH,..., cnn, features:NUMBER, bank or wide-bank"
_WIDTHS = {"mlp": 50, "features": 200}


@dataclass(frozen=True)
class Network:
    """Which network maps a row to the outputs.

    Arguments:
        kind: "linear", "mlp" (a perceptron with hidden layers), "cnn" (for images), "features" (a linear
            model of random waves), or "bank" and "wide-bank" (several networks, weighed by evidence).
        widths: the widths of the hidden layers of an mlp, or the number of random features.

    Raises:
        CredoError: a width is not a whole number above 0.

    Example:
        >>> Network.parse("mlp:50,50")
        Network(kind='mlp', widths=(50, 50))
        >>> str(Network("mlp", (20,)))
        'mlp:20'
    """

    kind: NetworkKind
    widths: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for width in self.widths:
            require_integer(Sentence(f"every width of {Named('model', self.kind)}"), width, 1)

    @property
    def banked(self) -> bool:
        """Whether this is a bank of several networks."""
        return self.kind in ("bank", "wide-bank")

    @staticmethod
    def parse(text: str | Network) -> Network:
        """Read `linear`, `mlp:WIDTH,WIDTH,...` (by default one hidden layer of 50), `cnn`,
        `features:NUMBER` (200), `bank` or `wide-bank`.

        Arguments:
            text: the setting as text; a record is returned unchanged.

        Raises:
            CredoError: there is no such network, or a width is not a whole number above 0.
        """
        if isinstance(text, Network):
            return text
        name, rest = split(text)
        kind: NetworkKind = choose("model", text, name, _NETWORKS, _NETWORK_FORMS)
        if kind not in _WIDTHS:
            if rest:
                raise CredoError(f"{Named('model', kind)} takes nothing after a colon; got {text!r}.")
            return Network(kind)
        forms = f"{_NETWORK_FORMS}, with whole numbers for the widths"
        parts = rest.split(",") if rest else []
        whole = numbers("model", text, parts, read_integer, forms) or (_WIDTHS[kind],)
        if kind == "features" and len(whole) > 1:
            raise CredoError(f"{Named('model', kind)} takes one number; got {text!r}.", field="model")
        return Network(kind, whole)

    def __str__(self) -> str:
        if self.widths:
            return f"{self.kind}:{','.join(map(str, self.widths))}"
        return self.kind


PosteriorKind: TypeAlias = Literal["full", "diagonal", "low-rank", "particles"]
"""The families of covariances, and weighted particles in place of a mean and a covariance."""

_POSTERIORS: tuple[PosteriorKind, ...] = get_args(PosteriorKind)
_POSTERIOR_FORMS = "full, diagonal, low-rank:RANK or particles:NUMBER"
_RANK = 10
_PARTICLES = 1000


@dataclass(frozen=True)
class Posterior:
    """The form in which the uncertainty about the P parameters is kept.

    Arguments:
        kind: "full" (P^2 numbers), "diagonal" (P), "low-rank" (P (R + 1)) or "particles" (P N).
        rank: the rank R of a low-rank posterior; 10 if it is left out.
        particles: the number N of particles; 1000 if it is left out.

    Raises:
        CredoError: the rank or the number is not a whole number that is allowed, or the family has none.

    Example:
        >>> Posterior.parse("low-rank:10")
        Posterior(kind='low-rank', rank=10, particles=None)
        >>> str(Posterior("full")), str(Posterior.parse("particles"))
        ('full', 'particles:1000')
    """

    kind: PosteriorKind
    rank: int | None = None
    particles: int | None = None

    def __post_init__(self) -> None:
        if self.kind == "particles":
            object.__setattr__(self, "particles", _PARTICLES if self.particles is None else self.particles)
            require_integer(Sentence(f"the number of {Named('posterior', self.kind)}"), self.particles, 2)
        elif self.particles is not None:
            raise CredoError(f"{Named('posterior', self.kind)} has no particles; got {self.particles!r}.")
        if self.kind == "low-rank":
            object.__setattr__(self, "rank", _RANK if self.rank is None else self.rank)
            require_integer(Sentence(f"the rank of {Named('posterior', self.kind)}"), self.rank, 1)
        elif self.rank is not None:
            raise CredoError(f"{Named('posterior', self.kind)} has no rank; got {self.rank!r}.")

    @staticmethod
    def parse(text: str | Posterior) -> Posterior:
        """Read `full`, `diagonal`, `low-rank:RANK` or `particles:NUMBER`.

        Arguments:
            text: the setting as text; a record is returned unchanged.

        Raises:
            CredoError: there is no such family, or its number is not a whole number that is allowed.
        """
        if isinstance(text, Posterior):
            return text
        name, rest = split(text)
        kind: PosteriorKind = choose("posterior", text, name, _POSTERIORS, _POSTERIOR_FORMS)
        if kind not in ("low-rank", "particles"):
            if rest:
                raise CredoError(f"{Named('posterior', kind)} takes nothing after a colon; got {text!r}.")
            return Posterior(kind)
        what = "rank" if kind == "low-rank" else "particles"
        forms = f"{_POSTERIOR_FORMS}, with a whole number for the {what}"
        found = numbers("posterior", text, [rest] if rest else [], read_integer, forms)
        number = found[0] if found else None
        if kind == "low-rank":
            return Posterior(kind, number)
        return Posterior(kind, particles=number)

    def numbers(self, size: int) -> int:
        """The count of numbers that the family keeps of `size` parameters.

        >>> Posterior("low-rank", 10).numbers(100)
        1100
        """
        if self.particles is not None:
            return size * self.particles
        if self.kind == "full":
            return size**2
        return size * (1 + (self.rank or 1))

    def __str__(self) -> str:
        number = self.particles if self.rank is None else self.rank
        if number is None:
            return self.kind
        return f"{self.kind}:{number}"


WrapperKind: TypeAlias = Literal["run-length", "mixture", "soft-reset"]
"""The drifts that are a wrapper around the learner. Their later numbers may be left out."""

DriftKind: TypeAlias = Literal["none", "walk", "ou", "inflation", "decay", "shrink-perturb"] | WrapperKind
"""The ways in which a world may change."""

_WRAPPERS: tuple[WrapperKind, ...] = get_args(WrapperKind)
_DRIFT_FORMS = (
    "none, walk:Q, ou:GAMMA, inflation:ALPHA, decay:GAMMA, shrink-perturb:SHRINK,SD, "
    "run-length:HAZARD,CAPACITY, mixture:SWITCHING or soft-reset:HAZARD"
)


class _Number(NamedTuple):
    """A number of a drift: its meaning, least and largest value, default, and whether it is whole."""

    meaning: str
    low: float
    high: float
    usual: float
    whole: bool = False


_HAZARD = "HAZARD, the chance of a change before a row"
_NUMBERS: dict[DriftKind, tuple[_Number, ...]] = {
    "none": (),
    "walk": (_Number("Q, the variance added at each row", 0.0, math.inf, 1e-6),),
    "ou": (_Number("GAMMA, the share kept at each row", 0.0, 1.0, 0.9999),),
    "inflation": (_Number("ALPHA, the share forgotten at each row", 0.0, math.inf, 1e-4),),
    "decay": (_Number("GAMMA, the factor of each row", 0.0, 1.0, 0.9999),),
    "shrink-perturb": (
        _Number("SHRINK, the factor of each row", 0.0, 1.0, 0.9999),
        _Number("SD, of the noise of each row", 0.0, math.inf, 1e-3),
    ),
    "run-length": (
        _Number(_HAZARD, 0.0, 1.0, 0.005),
        _Number("CAPACITY, how many run lengths are kept", 1.0, math.inf, 5.0, whole=True),
    ),
    "mixture": (
        _Number("SWITCHING, the chance that another expert takes over before a row", 0.0, 1.0, 0.01),
    ),
    "soft-reset": (_Number(_HAZARD, 0.0, 1.0, 0.05),),
}


@dataclass(frozen=True)
class Drift:
    """The way in which the parameters of a world may change from row to row.

    Gradually: "none", "walk" (Q, the variance added at each row), "ou" (GAMMA, the share kept), "inflation"
    (ALPHA, the share forgotten), "decay" (GAMMA, a factor), "shrink-perturb" (SHRINK, SD). At once, by a
    wrapper around the learner: "run-length" (HAZARD, CAPACITY), "mixture" (SWITCHING), "soft-reset" (HAZARD).

    Arguments:
        kind: the name of the drift.
        numbers: its numbers; those left out take their defaults.
        text: how the drift is written, which changes nothing else; by default with all its numbers.

    Raises:
        CredoError: there are too many numbers or too few, or one is out of its range.

    Example:
        >>> Drift.parse("run-length:0.01").numbers
        (0.01, 5.0)
        >>> str(Drift("run-length", (0.01,))), Drift("walk", (1e-5,)) == Drift.parse("walk:0.00001")
        ('run-length:0.01,5', True)
    """

    kind: DriftKind = "none"
    numbers: tuple[float, ...] = ()
    text: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        slots = _NUMBERS[self.kind]
        for given in self.numbers:
            require_representable("numbers", given)
        numbers = tuple(float(number) for number in self.numbers)
        too_few = 0 < len(numbers) < len(slots) and not self.wrapped
        if len(numbers) > len(slots) or too_few:
            upto = "at most " if self.wrapped else ""
            raise CredoError(
                f"{Named('drift', self.kind)} takes {upto}{len(slots)} number{'s'[: len(slots) != 1]}; got "
                f"{self.text or self._spelling(numbers)!r}.",
            )
        numbers += tuple(number.usual for number in slots[len(numbers) :])
        for value, number in zip(numbers, slots, strict=True):
            inside = number.low <= value <= number.high and math.isfinite(value)
            if not inside or (number.whole and value != int(value)):
                at_least = f"at least {number.low:g}"
                span = at_least if number.high == math.inf else f"in [{number.low:g}, {number.high:g}]"
                span = f"a whole number {span}" if number.whole else span
                raise CredoError(
                    f"{Named('drift', self.kind)} needs {span} for {number.meaning}; got {value:g}."
                )
        object.__setattr__(self, "numbers", numbers)
        if self.wrapped or not self.text:
            object.__setattr__(self, "text", self._spelling(numbers))

    @property
    def wrapped(self) -> bool:
        """Whether the drift is a wrapper around the learner, which reports changes."""
        return self.kind in _WRAPPERS

    @staticmethod
    def parse(text: str | Drift) -> Drift:
        """Read NAME, NAME:NUMBER or NAME:NUMBER,NUMBER.

        Arguments:
            text: the setting as text; a record is returned unchanged.

        Raises:
            CredoError: there is no such drift, or a number is out of its range.
        """
        if isinstance(text, Drift):
            return text
        name, rest = split(text)
        kind: DriftKind = choose("drift", text, name, list(_NUMBERS), _DRIFT_FORMS)
        forms = f"{_DRIFT_FORMS}, with numbers after the colon"
        return Drift(kind, numbers("drift", text, rest.split(",") if rest else [], float, forms), text)

    def _spelling(self, numbers: tuple[float, ...]) -> str:
        if numbers:
            return f"{self.kind}:{','.join(f'{number:.10g}' for number in numbers)}"
        return self.kind

    def __str__(self) -> str:
        return self.text
