"""The variables of a search space: ranges of numbers, and choices.

Some variables are there only if a choice has some options: the search space is then conditional. A
`Parameter` is a variable as another package describes it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.errors import CredoError, suggest
from credo.core.types import Array

__all__ = [
    "Choices",
    "Condition",
    "Given",
    "Option",
    "Parameter",
    "Range",
    "given",
    "read_condition",
    "read_variable",
]

Option: TypeAlias = str | int | float | bool | None
"""A value of a variable."""

ROUNDING = 1e-6
"""The distance that a number may be outside a range, relative to its end: single precision rounds it."""

GRID = 2.0**22
"""The number of steps between 0 and 1 of an encoded number."""


@dataclass(frozen=True)
class Range:
    """Numbers from a low to a high one, on a linear or logarithmic scale, of any value or whole.

    Equal ends make it a constant, as where a search is narrowed by hand. A `CredoError` refuses ends that are
    no finite numbers in order, not whole, or not above 0 for a logarithm.
    """

    name: str
    low: float
    high: float
    log: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            self._refuse("two finite numbers, the lower one first")
        if not math.isfinite(2.0 * (self.high - self.low)):
            self._refuse("less than 8e307 apart")
        if self.log and self.low <= 0:
            self._refuse("above 0 for a logarithmic scale")
        if self.whole and not (self.low == round(self.low) and self.high == round(self.high)):
            self._refuse("whole numbers")

    def _refuse(self, what: str) -> None:
        raise CredoError(
            f"the bounds of {self.name} must be {what}; got ({self.low!r}, {self.high!r}).", field="bounds"
        )

    @property
    def columns(self) -> int:
        """The number of columns of a row that it takes."""
        return 1

    @property
    def edge(self) -> float:
        """The largest absolute value of these numbers."""
        return 1.0

    @property
    def count(self) -> int | None:
        """The number of values; None if they are not counted."""
        if self.whole or self._constant:
            return round(self.high - self.low) + 1
        return None

    @property
    def _constant(self) -> bool:
        return self.low == self.high

    @property
    def words(self) -> tuple[str, ...]:
        """The words that describe it in bounds."""
        return ("log",) * self.log + ("whole",) * self.whole

    @property
    def _ends(self) -> tuple[float, float]:
        if self.log:
            return (math.log(self.low), math.log(self.high))
        return (self.low, self.high)

    def every(self) -> list[np.ndarray]:
        """The parts of all values, if they are whole."""
        return [self.encode(self.low + i) for i in range(self.count or 0)]

    def encode(self, value: object) -> np.ndarray:
        """The part of a row (1,); a `CredoError` says that the value is not in the range."""
        number = math.nan
        if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
            number = self._at_an_end(_as_float(value))
        if not self.low <= number <= self.high or (self.whole and number != round(number)):
            kind = "a whole number" if self.whole else "a number"
            raise CredoError(
                f"{self.name} must be {kind} from {self.low:g} to {self.high:g}; got {value!r}.",
                field=self.name,
            )
        if self._constant:
            return np.array([-1.0])
        low, high = self._ends
        share = ((math.log(number) if self.log else number) - low) / (high - low)
        return np.round(np.array([2.0 * share - 1.0]) * GRID) / GRID

    def _at_an_end(self, number: float) -> float:
        """The end of the range that a number is but for the rounding of single precision, or the number."""
        ends = (end for end in (self.low, self.high) if math.isclose(number, end, rel_tol=ROUNDING))
        return next(ends, number)

    def plain(self, value: Any) -> float | int:
        """A value as a plain Python number."""
        if self.whole:
            return int(value)
        return float(value)

    def decode(self, part: np.ndarray) -> float | int:
        """The value of a part of a row."""
        low, high = self._ends
        position = low + (high - low) * (float(part[0]) + 1.0) / 2.0
        value = min(max(math.exp(position) if self.log else position, self.low), self.high)
        # An end comes back as it was given.
        if part[0] <= -1.0:
            value = self.low
        elif part[0] >= 1.0:
            value = self.high
        if self.whole:
            return round(value)
        return value

    def value(self, part: Array) -> Array:
        """The value of a part of a row, in a compiled program."""
        low, high = self._ends
        position = low + (high - low) * (part[0] + 1.0) / 2.0
        value = jnp.clip(jnp.exp(position) if self.log else position, self.low, self.high)
        if self.whole:
            return jnp.round(value)
        return value

    def snap(self, part: Array) -> Array:
        """The nearest part that is a value, in a compiled program."""
        if self._constant:
            return jnp.full_like(part, -1.0)
        inside = jnp.clip(part, -1.0, 1.0)
        if self.whole:
            inside = self._part(self.value(inside))
        return jnp.round(inside * GRID) / GRID

    def _part(self, value: Array) -> Array:
        low, high = self._ends
        position = jnp.log(value) if self.log else value
        return (2.0 * (position - low) / (high - low) - 1.0)[None]

    def place(self, unit: Array) -> Array:
        """The part of a number from 0 to 1, of which every whole number has its share."""
        if not self.whole or self._constant:
            return self.snap(2.0 * unit[None] - 1.0)
        low = self.low - 0.5
        high = self.high + 0.5
        if self.log:
            value = jnp.exp(math.log(low) + unit * (math.log(high) - math.log(low)))
        else:
            value = low + unit * (high - low)
        return self.snap(self._part(jnp.clip(jnp.round(value), self.low, self.high)))

    def others(self, part: Array) -> list[Array]:
        """The parts of the whole numbers just below and above, which are the number itself at an end."""
        if not self.whole or self._constant:
            return []
        steps = (self.value(part) + move for move in (-1.0, 1.0))
        return [self.snap(self._part(jnp.clip(step, self.low, self.high))) for step in steps]


@dataclass(frozen=True)
class Choices:
    """One of several options, which have no order: texts, numbers, booleans or None.

    One option makes it a constant. A `CredoError` refuses none, two that are equal, and one of another kind.
    """

    name: str
    options: tuple[Option, ...]

    def __post_init__(self) -> None:
        plain = all(one is None or isinstance(one, str | int | float) for one in self.options)
        if not plain or not self.options or len(set(self.options)) < len(self.options):
            raise CredoError(
                f"the bounds of {self.name} must list different texts, numbers, booleans or None; "
                f"got {list(self.options)!r}.",
                field="bounds",
            )

    @property
    def columns(self) -> int:
        """The number of columns of a row that it takes."""
        return len(self.options)

    @property
    def edge(self) -> float:
        """The largest absolute value of these numbers."""
        return math.sqrt(0.5)

    @property
    def count(self) -> int:
        """The number of options."""
        return len(self.options)

    def every(self) -> list[np.ndarray]:
        """The parts of all options."""
        return list(self.edge * (2.0 * np.eye(self.count) - 1.0))

    def encode(self, value: object) -> np.ndarray:
        """The part of a row; a `CredoError` says that there is no such option."""
        for i, option in enumerate(self.options):
            if type(option) is type(value) and option == value:
                return self.every()[i]
        hint = (
            suggest(value, [one for one in self.options if isinstance(one, str)])
            if isinstance(value, str)
            else ""
        )
        raise CredoError(
            f"{self.name} must be one of {', '.join(repr(one) for one in self.options)}; got {value!r}"
            f"{f' ({hint})' if hint else ''}.",
            field=self.name,
        )

    def plain(self, value: Any) -> Option:
        """A value as it is."""
        option: Option = value
        return option

    def decode(self, part: np.ndarray) -> Option:
        """The option of a part of a row."""
        return self.options[int(np.argmax(part))]

    def value(self, part: Array) -> Array:
        """The place of the option, in a compiled program."""
        return jnp.argmax(part)

    def snap(self, part: Array) -> Array:
        """The nearest part that is an option, in a compiled program."""
        return self._at(jnp.argmax(part), part.dtype)

    def _at(self, place: Array, kind: object) -> Array:
        hot = jax.nn.one_hot(place, self.count, dtype=kind)
        return self.edge * (2.0 * hot - 1.0)

    def place(self, unit: Array) -> Array:
        """The part of a number from 0 to 1."""
        return self._at(jnp.clip(jnp.floor(unit * self.count), 0, self.count - 1).astype(int), unit.dtype)

    def others(self, part: Array) -> list[Array]:
        """The parts of all other options."""
        here = jnp.argmax(part)
        return [self._at((here + i) % self.count, part.dtype) for i in range(1, self.count)]


def _as_float(number: float | np.integer | np.floating) -> float:
    """A number as a float; infinite if it is a whole number beyond all floats."""
    try:
        return float(number)
    except OverflowError:
        if number > 0:
            return math.inf
        return -math.inf


def read_variable(name: str, given: object) -> Range | Choices:
    """The variable of a bound: (low, high), (low, high, "log" or "whole" or both), or a list of options."""
    if isinstance(given, list):
        return Choices(name, tuple(given))
    if isinstance(given, tuple) and len(given) >= 2:
        low, high, *words = given
        numbers = all(isinstance(end, int | float) and not isinstance(end, bool) for end in (low, high))
        known = all(word in ("log", "whole") for word in words) and len(set(words)) == len(words)
        if numbers and known:
            return Range(name, _as_float(low), _as_float(high), "log" in words, "whole" in words)
    raise CredoError(
        f'the bounds of {name} must be (low, high), with "log", "whole" or both behind, or a list of '
        f"options; got {given!r}.",
        field="bounds",
    )


@dataclass(frozen=True)
class Given:
    """The bounds of a variable, and the options of a choice with which it is there; see `given`."""

    bounds: Sequence[object]
    choice: str
    options: tuple[Option, ...]


def given(bounds: Sequence[object], **choice: object) -> Given:
    """A variable that is there only where a choice has one of some options.

    Arguments:
        bounds: the bounds of the variable, as for `Optimizer`.
        choice: the name of a choice that stands before it in the bounds, with one option or a list of them.

    Returns:
        What `Optimizer` takes in the place of the bounds. Points without one of the options lack the
        variable, and a learner sees the middle of its range there.

    Raises:
        CredoError: not exactly one choice is named; or (later) there is no such choice or option.

    Example:
        >>> from credo import bandits
        >>> bounds = {"kind": ["tree", "net"], "rate": bandits.optimize.given((1e-4, 1.0, "log"), kind="net")}
        >>> space = bandits.Space.read(bounds)
        >>> space.decode(space.encode({"kind": "tree"}))
        {'kind': 'tree'}
    """
    if len(choice) != 1:
        raise CredoError(f"given must name one choice; got {list(choice)}.", field="bounds")
    ((name, options),) = choice.items()
    every: Any = tuple(options) if isinstance(options, list | tuple) else (options,)
    return Given(bounds, name, every)


@dataclass(frozen=True)
class Condition:
    """The place of a choice among the variables, and the places of its options that count."""

    choice: int
    options: tuple[int, ...]

    def met(self, part: Array) -> Array:
        """Whether the part of a row that belongs to the choice is one of the options."""
        place = jnp.argmax(part)
        return jnp.any(jnp.stack([place == option for option in self.options]))


def read_condition(name: str, one: Given, before: Mapping[str, Range | Choices]) -> Condition:
    """The condition of a variable, by the variables before it."""
    parent = before.get(one.choice)
    if not isinstance(parent, Choices):
        names = ", ".join(key for key, value in before.items() if isinstance(value, Choices)) or "none"
        raise CredoError(
            f"the bounds of {name} must be given by a choice that stands before it ({names}); "
            f"got {one.choice!r}.",
            field="bounds",
        )
    places = []
    for option in one.options:
        same = [
            i for i, other in enumerate(parent.options) if type(other) is type(option) and other == option
        ]
        if not same:
            raise CredoError(
                f"the bounds of {name} must be given by options of {one.choice}; got {option!r}.",
                field="bounds",
            )
        places += same
    return Condition(list(before).index(one.choice), tuple(places))


@dataclass(frozen=True)
class Parameter:
    """A range, of which a step may be counted, or options, which stand for their places.

    Attributes:
        low, high: the ends of a range, which belong to it.
        step: the distance of its values, None where any number will do; from `low` on, up to `high`.
        log: whether it is logarithmic. Steps of such a range other than 1 are rounded to.
        options: the options; None for a range.

    Example:
        >>> share = Parameter(0.0, 1.0, step=0.25)
        >>> share.bounds, share.value_of(3), share.seen_as(0.5)
        ((0, 4, 'whole'), 0.75, 2)
    """

    low: Any = 0
    high: Any = 0
    step: Any = None
    log: bool = False
    options: tuple[Any, ...] | None = None

    @property
    def _counted(self) -> bool:
        """Whether steps are counted, because values are not whole numbers next to each other."""
        return self.step is not None and not self.log and not (isinstance(self.low, int) and self.step == 1)

    @property
    def bounds(self) -> Sequence[object]:
        """The bounds that an `Optimizer` takes."""
        if self.options is not None:
            return [f"{place}" for place in range(len(self.options))]
        if self._counted:
            return (0, round((self.high - self.low) / self.step), "whole")
        kinds = [*(["log"] if self.log else []), *(["whole"] if isinstance(self.low, int) else [])]
        return (self.low, self.high, *kinds)

    def value_of(self, seen: Any) -> Any:
        """The value of what an optimiser answered."""
        if self.options is not None:
            return self.options[int(seen)]
        if self._counted:
            return min(self.low + seen * self.step, self.high)
        if self.step is not None and self.step != 1:
            return min(max(round(seen / self.step) * self.step, self.low), self.high)
        return seen

    def seen_as(self, value: Any) -> Any:
        """The form of a value, which is in the range or an option, for an optimiser; NaN may be an option."""
        if self.options is not None:
            same = (one is value or one == value or (one != one and value != value) for one in self.options)
            return f"{list(same).index(True)}"
        if self._counted:
            return round((value - self.low) / self.step)
        return value
