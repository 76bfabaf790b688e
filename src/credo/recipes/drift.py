"""Changes of the world of a session, as a setting."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias, get_args

from credo.core.errors import CredoError, Named
from credo.recipes.language import choose, numbers, split

__all__ = ["Drift", "DriftKind"]

WrapperKind: TypeAlias = Literal["run-length", "mixture", "soft-reset"]
"""The drifts that are a wrapper around the learner. Their later numbers may be left out."""

DriftKind: TypeAlias = Literal["none", "walk", "ou", "inflation", "decay", "shrink-perturb"] | WrapperKind
"""The ways in which a world may change."""

_WRAPPERS: tuple[WrapperKind, ...] = get_args(WrapperKind)
_FORMS = (
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
        kind: DriftKind = choose("drift", text, name, list(_NUMBERS), _FORMS)
        forms = f"{_FORMS}, with numbers after the colon"
        return Drift(kind, numbers("drift", text, rest.split(",") if rest else [], float, forms), text)

    def _spelling(self, numbers: tuple[float, ...]) -> str:
        if numbers:
            return f"{self.kind}:{','.join(f'{number:.10g}' for number in numbers)}"
        return self.kind

    def __str__(self) -> str:
        return self.text
