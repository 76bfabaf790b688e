"""Features that come and go: which of a learner's inputs stands for which feature of a row.

A feature gets an input, its slot, when it first has a value; new ones of one row in sorted order, so that the
order of a dict changes nothing. Numbers and truth values (-1 and 1) have one. A text has one for each value,
and one for all others once there are `MOST_VALUES`, or those of its hashed words; a time has one for itself
and those of its cycles. The first slot of all is 1 if a row lacks a feature of the first row, else 0.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Iterable, Mapping
from operator import itemgetter, sub
from typing import Any, Literal, NamedTuple

import numpy as np

from credo.core.errors import CredoError
from credo.live.feature_values import (
    FARTHEST,
    HOLDINGS,
    FeatureKind,
    FeatureName,
    absent,
    kind_of,
    number_of,
    origin_of,
    read_features,
    text_of,
)
from credo.tables.schema import SHARED

__all__ = ["MOST_VALUES", "Arrival", "FeatureSlots", "Slot"]

MOST_VALUES = 16
"""The most values of a text feature that have a slot of their own."""

FEW = 8
"""The least number of inputs of a learner, which doubles when they are all taken."""


class Slot(NamedTuple):
    """The meaning of an input: a feature, what it holds ("gap": whether a value is missing), and the value of
    a text, the cycle of a time or the number of hashed words; None for what has one slot.
    """

    name: FeatureName
    kind: FeatureKind | Literal["gap"]
    value: str | None = None

    def __str__(self) -> str:
        if self.kind == "text":
            return f"{self.name}={'(other)' if self.value is None else self.value}"
        if self.value is None:
            return str(self.name)
        return f"{self.name}: {self.value}"


GAP = Slot(SHARED, "gap")
"""The slot that is 1 where a row lacks a feature of the first row."""


class Arrival(NamedTuple):
    """The first value of a feature, or a new text: a number (or 0), a text, or seconds since 1970."""

    row: int
    name: FeatureName
    kind: FeatureKind
    value: float | str

    def order(self) -> tuple[int, str, int | float | str, str]:
        """The order in which arrivals take slots: by row, then by name, then by text."""
        name = self.name
        text = self.value if isinstance(self.value, str) else ""
        plain = name if isinstance(name, str | int | float) else repr(name)
        return self.row, "text" if isinstance(plain, str) else "", plain, text


class FeatureSlots:
    """The slots of the features that were met, what each feature holds (`kinds`), and the first value of each
    number and time, from which it is counted unless not `centred` (`origins`). `first` is how many slots the
    first row took. Never changed: `including` gives new ones.
    """

    def __init__(
        self, slots: Iterable[Slot] = (), origins: Iterable[float] = (), centred: bool = True, first: int = 0
    ) -> None:
        self.slots = tuple(slots)
        self.origins = tuple(origins)
        self.centred = centred
        self.first = first
        self._lead = (0.0,) if first else ()
        own = self.slots[len(self._lead) :]
        self.kinds: dict[FeatureName, FeatureKind] = {
            slot.name: slot.kind for slot in own if slot.kind != "gap"
        }
        self._places: dict[FeatureName, int] = {}
        self._texts: dict[FeatureName, dict[str | None, int]] = {}
        for place, slot in enumerate(self.slots):
            if slot.kind == "text":
                self._texts.setdefault(slot.name, {})[slot.value] = place
            elif slot.kind != "gap":
                self._places.setdefault(slot.name, place)
        self.plain = all(kind == "number" for kind in self.kinds.values())
        names = [slot.name for slot in own]
        self._cells = itemgetter(*names) if self.plain and len(names) > 1 else None
        self._own_origins = self.origins[len(self._lead) :]
        self._numbers = struct.Struct(f"{len(self.slots)}f")
        self._row = np.full(self.room, np.nan, np.float32)
        self._memory = self._row.data
        self._values = np.full(self.room, np.nan)
        self._origins = np.zeros(self.room)
        self._origins[: len(self.slots)] = self.origins

    @property
    def room(self) -> int:
        """The number of inputs of the learner: 8, 16, 32 and so on, and one for what is missing."""
        room = FEW
        while room < len(self.slots):
            room *= 2
        return room

    @property
    def scaled(self) -> np.ndarray:
        """Whether each input is to be standardised (room,): numbers, times and free inputs are."""
        scaled = np.ones(self.room, bool)
        own = [one.kind != "gap" and HOLDINGS[one.kind].scaled and one.value is None for one in self.slots]
        scaled[: len(own)] = own
        return scaled

    def knows(self, x: Mapping[Any, object]) -> bool:
        """Whether all features of a row were met; new values of a text are not looked at."""
        try:
            return x.keys() <= self.kinds.keys()
        except AttributeError:
            raise _no_dict(x) from None

    def arrivals(self, x: Mapping[Any, object], row: int = 0) -> list[Arrival]:
        """The new features and texts of a row; a CredoError refuses a value of another kind than before."""
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
                number = HOLDINGS[kind].read(name, value)
                if name not in self.kinds:
                    new.append(Arrival(row, name, kind, number if HOLDINGS[kind].scaled else 0.0))
        return new

    def including(self, arrivals: Iterable[Arrival]) -> FeatureSlots:
        """The slots with those of arrivals, in any order and more than once; `self` if none is new."""
        slots = list(self.slots)
        origins = list(self.origins)
        first = self.first
        met = set(self.slots)
        counts = {name: len(values) for name, values in self._texts.items()}
        ordered = sorted(arrivals, key=Arrival.order)
        beginning = ordered[0].row if ordered and not slots else None
        if beginning is not None:
            slots = [GAP]
            origins = [0.0]
        for arrival in ordered:
            new = [slot for slot in _slots_of(arrival, counts, met) if slot not in met]
            if new:
                met.update(new)
                slots += new
                holding = HOLDINGS[arrival.kind]
                counted = holding.counted or (self.centred and holding.scaled)
                origin = origin_of(float(arrival.value)) if counted else 0.0
                origins += [origin, *[0.0] * (len(new) - 1)]
            if arrival.row == beginning:
                first = len(slots)
        if len(slots) == len(self.slots):
            return self
        return FeatureSlots(slots, origins, self.centred, first)

    def __reduce__(self) -> tuple[Any, ...]:
        return FeatureSlots, (self.slots, self.origins, self.centred, self.first)

    def row(self, x: Mapping[Any, object]) -> np.ndarray:
        """A row of inputs (room,), float32, until the next is asked for: NaN if there is no value.

        Features not met are left out.
        """
        if type(x) is dict and self._cells is not None:
            try:
                # one call each for the cells, their gaps, what bounds them and the row; what is unusual
                # raises, or is farther away than that
                gaps = tuple(map(sub, self._cells(x), self._own_origins))
                if math.hypot(*gaps) <= FARTHEST:
                    self._numbers.pack_into(self._memory, 0, *self._lead, *gaps)
                    return self._row
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
        return self._finished(values)

    def _finished(self, values: np.ndarray) -> np.ndarray:
        """Values (..., room) as inputs: counted from their origins, and with the slot for what is missing."""
        gaps = values - self._origins
        gaps[~(np.abs(gaps) <= FARTHEST)] = np.nan
        if self.first:
            gaps[..., 0] = np.isnan(gaps[..., 1 : self.first]).any(axis=-1)
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
        elif len(HOLDINGS[kind].parts) > 1:
            read_features(name, kind, [value], values[None], self._places[name])
        else:
            values[self._places[name]] = HOLDINGS[kind].read(name, value)

    def rows(self, columns: Mapping[FeatureName, np.ndarray], count: int) -> np.ndarray:
        """Rows of inputs (count, room) of columns (count,), as `row` gives them one by one."""
        values = np.full((count, self.room), np.nan)
        for name, cells in columns.items():
            kind = self.kinds.get(name)
            if kind == "number" and cells.dtype.kind in "fiub":
                values[:, self._places[name]] = cells
            elif kind is not None and len(HOLDINGS[kind].parts) > 1:
                read_features(name, kind, cells.tolist(), values, self._places[name])
            elif kind is not None:
                for row, cell in zip(values, cells.tolist(), strict=True):
                    if not absent(cell):
                        self._write(row, name, cell)
        return self._finished(values)

    def column_arrivals(self, columns: Mapping[FeatureName, np.ndarray]) -> list[Arrival]:
        """The new features and texts of columns (n,), as if rows came one by one; all values are checked."""
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


def _slots_of(arrival: Arrival, counts: dict[FeatureName, int], met: Collection[Slot]) -> list[Slot]:
    """The slots of a feature or of a value of a text; `counts` says how many values texts have."""
    name = arrival.name
    kind = arrival.kind
    if HOLDINGS[kind].parts:
        return [Slot(name, kind, part) for part in HOLDINGS[kind].parts]
    slot = Slot(name, kind, str(arrival.value))
    if slot not in met:
        if counts.get(name, 0) >= MOST_VALUES:
            return [Slot(name, kind)]
        counts[name] = counts.get(name, 0) + 1
    return [slot]


def _no_dict(x: object) -> CredoError:
    return CredoError(f"x must be a dict of features; got {type(x).__name__}.", field="x")
