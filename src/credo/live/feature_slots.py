"""Features that come and go: which of a learner's inputs stands for which feature of a row.

A row is a dict of numbers, truth values and texts, in which a feature may be absent. A feature gets an input,
its slot, when it first has a value. New features of one row take slots in sorted order, so that the order of
a dict's keys changes nothing. A number has one slot, and so has a truth value, as -1 and 1. A text has one
slot for each of its values, and one for all the others once there are `MOST_VALUES`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from operator import itemgetter, sub
from typing import Any, NamedTuple

import numpy as np

from credo.core.errors import CredoError
from credo.live.feature_values import (
    FARTHEST,
    FeatureKind,
    FeatureName,
    absent,
    kind_of,
    number_of,
    origin_of,
    sign_of,
    text_of,
)

__all__ = ["MOST_VALUES", "Arrival", "FeatureSlots", "Slot"]

MOST_VALUES = 16
"""The most values of a text feature that have a slot of their own."""

FEW = 8
"""The least number of inputs of a learner, which doubles when they are all taken."""


class Slot(NamedTuple):
    """What an input of the learner stands for.

    Attributes:
        name: the feature.
        kind: what it holds.
        value: the value of a text; None for a number, a truth value, and for all other values of a text.
    """

    name: FeatureName
    kind: FeatureKind
    value: str | None = None

    def __str__(self) -> str:
        if self.kind != "text":
            return str(self.name)
        return f"{self.name}={'(other)' if self.value is None else self.value}"


class Arrival(NamedTuple):
    """The first value of a feature, or a new value of a text.

    Attributes:
        row: the row that has it.
        name, kind: the feature, and what it holds.
        value: the number, 0 for truth values; or the text.
    """

    row: int
    name: FeatureName
    kind: FeatureKind
    value: float | str

    def order(self) -> tuple[int, str, int | float | str, str]:
        """The order in which arrivals take slots: by row, then by name, then by text."""
        name, text = self.name, self.value if isinstance(self.value, str) else ""
        plain = name if isinstance(name, str | int | float) else repr(name)
        return self.row, "text" if isinstance(plain, str) else "", plain, text


class FeatureSlots:
    """The slots of the features that were met. It never changes: `including` gives a new one.

    Attributes:
        slots: what each slot stands for, in order.
        kinds: what each feature holds.
        plain: whether all features are numbers.
        origins: the first value of each number, from which its values are counted, so that single precision
            can hold them; 0 for other slots.
        centred: whether numbers are counted from their first value; if not, they pass as they come.

    Example:
        >>> met = FeatureSlots().including(FeatureSlots().arrivals({"b": 2.5, "a": True, "c": "x"}))
        >>> [str(slot) for slot in met.slots], met.room
        (['a', 'b', 'c=x'], 8)
        >>> met.row({"c": "x", "b": 3.0, "new": 1.0}).tolist()
        [nan, 0.5, 1.0, nan, nan, nan, nan, nan]
    """

    def __init__(
        self, slots: Iterable[Slot] = (), origins: Iterable[float] = (), centred: bool = True
    ) -> None:
        self.slots = tuple(slots)
        self.origins = tuple(origins)
        self.centred = centred
        self.kinds: dict[FeatureName, FeatureKind] = {slot.name: slot.kind for slot in self.slots}
        self._places: dict[FeatureName, int] = {
            slot.name: place for place, slot in enumerate(self.slots) if slot.kind != "text"
        }
        self._texts: dict[FeatureName, dict[str | None, int]] = {}
        for place, slot in enumerate(self.slots):
            if slot.kind == "text":
                self._texts.setdefault(slot.name, {})[slot.value] = place
        self.plain = all(kind == "number" for kind in self.kinds.values())
        names = [slot.name for slot in self.slots]
        self._cells = itemgetter(*names) if self.plain and len(names) > 1 else None
        self._numbers = struct.Struct(f"{len(self.slots)}f")
        self._row = np.full(self.room, np.nan, np.float32)
        self._values = np.full(self.room, np.nan)
        self._origins = np.zeros(self.room)
        self._origins[: len(self.slots)] = self.origins

    @property
    def room(self) -> int:
        """The number of inputs of the learner: 8, 16, 32 and so on."""
        room = FEW
        while room < len(self.slots):
            room *= 2
        return room

    @property
    def scaled(self) -> np.ndarray:
        """Whether each input is to be standardised (room,): numbers are, and inputs that nothing has yet."""
        scaled = np.ones(self.room, bool)
        scaled[: len(self.slots)] = [slot.kind == "number" for slot in self.slots]
        return scaled

    def knows(self, x: Mapping[Any, object]) -> bool:
        """Whether all features of a row were met. New values of a text are not looked at.

        Raises:
            CredoError: the row is no dict.
        """
        try:
            return x.keys() <= self.kinds.keys()
        except AttributeError:
            raise _no_dict(x) from None

    def arrivals(self, x: Mapping[Any, object], row: int = 0) -> list[Arrival]:
        """What is new in a row, all of whose values are checked.

        Arguments:
            x: the features of a row.
            row: its number among several.

        Raises:
            CredoError: a feature holds something else than before, or what is no number, truth value or text.
        """
        new = []
        for name, value in x.items():
            if absent(value):
                continue
            kind = self.kinds.get(name) or kind_of(name, value)
            if kind == "text":
                text = text_of(value)
                if text not in self._texts.get(name, {}):
                    new.append(Arrival(row, name, kind, text))
            else:
                read = number_of if kind == "number" else sign_of
                number = read(name, value)
                if name not in self.kinds:
                    new.append(Arrival(row, name, kind, number if kind == "number" else 0.0))
        return new

    def including(self, arrivals: Iterable[Arrival]) -> FeatureSlots:
        """The slots with those of new features and values; `self` where there are none.

        Arguments:
            arrivals: what is new, in any order; a feature or a text may be among them several times.
        """
        slots, origins = list(self.slots), list(self.origins)
        met = set(self.slots)
        counts = {name: len(values) for name, values in self._texts.items()}
        for arrival in sorted(arrivals, key=Arrival.order):
            slot = Slot(arrival.name, arrival.kind, arrival.value if isinstance(arrival.value, str) else None)
            if slot in met:
                continue
            if arrival.kind == "text":
                count = counts.get(arrival.name, 0)
                if count >= MOST_VALUES:
                    slot = Slot(arrival.name, "text")
                    if slot in met:
                        continue
                counts[arrival.name] = count + 1
            met.add(slot)
            slots.append(slot)
            counted = self.centred and arrival.kind == "number"
            origins.append(origin_of(float(arrival.value)) if counted else 0.0)
        return self if len(slots) == len(self.slots) else FeatureSlots(slots, origins, self.centred)

    def __reduce__(self) -> tuple[Any, ...]:
        return FeatureSlots, (self.slots, self.origins, self.centred)

    def row(self, x: Mapping[Any, object]) -> np.ndarray:
        """A row of inputs (room,), float32: NaN where there is no value. Features not met are left out.

        Raises:
            CredoError: a feature holds something else than before, or the row is no dict.
        """
        if type(x) is dict and self._cells is not None:
            try:
                # one call each for the cells, their gaps and the row; whatever is out of the ordinary raises
                self._numbers.pack_into(self._row.data, 0, *map(sub, self._cells(x), self.origins))
                return self._row.copy()
            except (KeyError, TypeError, ValueError, OverflowError, struct.error):
                pass
        values = self._values
        values[:] = np.nan
        try:
            cells = x.items()
        except AttributeError:
            raise _no_dict(x) from None
        for name, value in cells:
            if not absent(value) and name in self.kinds:
                self._write(values, name, value)
        return self._centred(values)

    def _centred(self, values: np.ndarray) -> np.ndarray:
        gaps = values - self._origins
        gaps[~(np.abs(gaps) <= FARTHEST)] = np.nan
        return gaps.astype(np.float32)

    def _write(self, values: np.ndarray, name: FeatureName, value: object) -> None:
        kind = self.kinds[name]
        if kind == "text":
            places = self._texts[name]
            for place in places.values():
                values[place] = 0.0
            active = places.get(text_of(value), places.get(None))
            if active is not None:
                values[active] = 1.0
        else:
            values[self._places[name]] = (number_of if kind == "number" else sign_of)(name, value)

    def rows(self, columns: Mapping[FeatureName, np.ndarray], count: int) -> np.ndarray:
        """Rows of inputs (count, room), as `row` gives them one by one.

        Arguments:
            columns: the features of the rows, one array (count,) each.
            count: the number of rows.

        Raises:
            CredoError: a feature holds something else than before.
        """
        values = np.full((count, self.room), np.nan)
        for name, cells in columns.items():
            kind = self.kinds.get(name)
            if kind == "number" and cells.dtype.kind in "fiub":
                values[:, self._places[name]] = cells
            elif kind is not None:
                for row, cell in zip(values, cells.tolist(), strict=True):
                    if not absent(cell):
                        self._write(row, name, cell)
        return self._centred(values)

    def column_arrivals(self, columns: Mapping[FeatureName, np.ndarray]) -> list[Arrival]:
        """What is new in rows, as if they came one by one; all values are checked.

        Arguments:
            columns: the features of the rows, one array (n,) each.

        Raises:
            CredoError: a feature holds something else than before, or what is no number, truth value or text.
        """
        new: list[Arrival] = []
        for name, cells in columns.items():
            if cells.dtype.kind in "fiu" and self.kinds.get(name, "number") == "number":
                if name not in self.kinds:
                    there = ~np.isnan(cells) if cells.dtype.kind == "f" else np.ones(len(cells), bool)
                    if there.any():
                        first = int(np.argmax(there))
                        new.append(Arrival(first, name, "number", number_of(name, cells[first].item())))
                continue
            slots: FeatureSlots = self
            for row, cell in enumerate(cells.tolist()):
                arrived = slots.arrivals({name: cell}, row)
                new.extend(arrived)
                slots = slots.including(arrived)
        return new


def _no_dict(x: object) -> CredoError:
    return CredoError(f"x must be a dict of features; got {type(x).__name__}.", field="x")
