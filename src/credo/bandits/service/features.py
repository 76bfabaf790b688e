"""Contexts by name as vectors of fixed length, whose places are taken as names are first seen."""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from credo.core.errors import CredoError, FormatError, require_integer, require_positive
from credo.core.records import record, static_field
from credo.tables.column_moments import ColumnMoments

__all__ = ["Encoding", "FeatureEncoder", "Features"]

Encoding: TypeAlias = dict[str, Any]
"""The state of an encoder, as JSON data."""

_LARGEST = 10**300
"""Larger whole numbers count as infinite."""


@record
class Features:
    """How contexts by name, such as `{"age": 31, "device": "phone"}`, become vectors of fixed length.

    A name takes free places of the vector when it is first seen. A number takes one, where it stands in
    standard deviations from the mean of the contexts before it, cut off at min(clip, sqrt(contexts before)),
    and 0 until two different values were seen; an absurd one counts as missing, and none can ruin the moments
    (`credo.tables.Moments`). A truth value is 1 or -1. A text takes two: one for its
    value, and one for other values; each further value takes one more, until `categories` of them or the
    places are used up. A list of numbers takes one a number. What is missing (None, NaN, or left out) is 0,
    and the first place is 1 where anything that was seen before is missing. A name for which no place is left
    shares one, which a hash of it chooses (of name and value for a text), and a warning says so once.

    Arguments:
        slots: how many places the vector has.
        categories: how many values of a text have a place of their own.
        standardise: whether numbers are standardised; otherwise they stand as they are.
        clip: the largest size of a standardised number.

    Raises:
        CredoError: a number is out of range.

    Example:
        >>> encoder = FeatureEncoder(Features(slots=6))
        >>> for age in (20.0, 40.0, 60.0):
        ...     x = encoder.encode({"age": age, "device": "phone"})
        >>> x.round(2).tolist(), encoder.names
        ([0.0, 1.41, 0.0, 1.0, 0.0, 0.0], ('missing', 'age', 'device: other', 'device: phone'))
    """

    slots: int = static_field(default=32)
    categories: int = static_field(default=16)
    standardise: bool = static_field(default=True)
    clip: float = static_field(default=8.0)

    def __post_init__(self) -> None:
        require_integer("slots", self.slots, 2)
        require_integer("categories", self.categories, 1)
        require_positive("clip", self.clip)


@dataclass(slots=True)
class _Number:
    """The place of a number, and the moments of what was seen."""

    slot: int
    moments: ColumnMoments = field(default_factory=ColumnMoments)


@dataclass(slots=True)
class _Text:
    """The places of the values of a text: the first is that of other values."""

    other: int
    slots: dict[str, int]


class FeatureEncoder:
    """Encodes contexts by name as vectors (slots,), and learns on; sentences call a context `what`."""

    def __init__(self, features: Features, what: str = "context") -> None:
        self.features, self.what, self.size = features, what, features.slots
        self._known: dict[str, _Number | _Text] = {}
        self._used = 1
        self._shared: dict[int, ColumnMoments] = {}  # of the numbers that share a place

    @property
    def names(self) -> tuple[str, ...]:
        """What stands in the places that are taken."""
        names = {0: "missing"}
        for name, entry in self._known.items():
            if isinstance(entry, _Number):
                names[entry.slot] = name
            else:
                names[entry.other] = f"{name}: other"
                names |= {slot: f"{name}: {value}" for value, slot in entry.slots.items()}
        return tuple(names[slot] for slot in range(self._used))

    def encode(self, context: Mapping[str, object], learn: bool = True) -> np.ndarray:
        """The vector (slots,) of a context. With `learn`, names, values and moments are taken in; otherwise
        what is new counts as missing or as another value. A CredoError refuses others, and takes in nothing.
        """
        cells = self._cells(context)
        if learn:
            self._admit(cells)
        vector = np.zeros(self.size)
        found = 0
        for name, value in cells.items():
            entry = self._known.get(name)
            if value is not None and entry is None and not self._has_room(value):
                self._share(vector, name, value, learn)
            if value is None or entry is None:
                continue
            found += 1
            if isinstance(entry, _Text):
                vector[entry.slots.get(_text(value), entry.other)] = 1.0
            elif isinstance(value, bool) or not self.features.standardise:
                vector[entry.slot] = 2.0 * value - 1.0 if isinstance(value, bool) else value
            else:
                scale = entry.moments.take if learn else entry.moments.z
                vector[entry.slot] = scale(value, self.features.clip)
        vector[0] = float(found < len(self._known))
        return vector

    def _cells(self, context: Mapping[str, object]) -> dict[str, Any]:
        """The values by name: floats, truth values and texts, and None where one is missing."""
        cells: dict[str, Any] = {}
        for name, value in context.items():
            if not isinstance(name, str):
                raise CredoError(f"{self.what} must have texts for names; got {name!r}.", field=self.what)
            for label, cell in self._spread(name, value):
                if cell is None or (type(cell) is float and cell != cell):
                    cells[label] = None
                    continue
                entry = self._known.get(label)
                if isinstance(cell, str) and isinstance(entry, _Number):
                    raise CredoError(
                        f"{self.what} must have a number for {label!r}, as before; got {cell!r}.",
                        field=self.what,
                    )
                if isinstance(cell, float) and math.isinf(cell):
                    raise CredoError(
                        f"{self.what} must be finite, or None where a value is missing; got {cell} for "
                        f"{label!r}.",
                        field=self.what,
                    )
                cells[label] = cell
        return cells

    def _spread(self, name: str, value: object) -> Iterator[tuple[str, bool | float | str | None]]:
        """A value as one or several cells."""
        if value is None or isinstance(value, bool | str | float):
            yield name, value
            return
        if isinstance(value, int):
            yield name, float(value) if abs(value) < _LARGEST else math.inf
            return
        to_list = getattr(value, "tolist", None)
        plain = value if to_list is None else to_list()
        if isinstance(plain, list | tuple) and not any(isinstance(cell, list | str) for cell in plain):
            for place, cell in enumerate(plain):
                yield from self._spread(f"{name}[{place}]", cell)
        elif plain is not value:
            yield from self._spread(name, plain)
        else:
            raise CredoError(
                f"{self.what} must hold numbers, truth values, texts and lists of numbers; got a "
                f"{type(value).__name__} for {name!r}.",
                field=self.what,
            )

    def _admit(self, cells: Mapping[str, Any]) -> None:
        """Give places to what is new, as long as there are some."""
        for name, value in cells.items():
            if value is None or name in self._known or not self._has_room(value):
                continue
            if isinstance(value, str):
                self._known[name] = _Text(self._used, {value: self._used + 1})
                self._used += 2
            else:
                self._known[name] = _Number(self._used)
                self._used += 1
        for name, value in cells.items():
            entry = self._known.get(name)
            if value is None or not isinstance(entry, _Text):
                continue
            full = len(entry.slots) >= self.features.categories or self._used >= self.size
            if not full and _text(value) not in entry.slots:
                entry.slots[_text(value)] = self._used
                self._used += 1

    def _has_room(self, value: object) -> bool:
        """Whether a new name with this value has a place of its own."""
        return self._used + (2 if isinstance(value, str) else 1) <= self.size

    def _share(self, vector: np.ndarray, name: str, value: bool | float | str, learn: bool) -> None:
        """Add a value without a place of its own to that of others."""
        label = f"{name}={value}" if isinstance(value, str) else name
        place = 1 + zlib.crc32(label.encode()) % (self.size - 1)
        if not self._shared and learn:
            warnings.warn(
                f"there are more names in {self.what} than the {self.size} places, and {name!r} shares one "
                "with others; set more slots.",
                stacklevel=2,
            )
        moments = self._shared.setdefault(place, ColumnMoments()) if learn else self._shared.get(place)
        if isinstance(value, str):
            vector[place] += 1.0
        elif isinstance(value, bool) or not self.features.standardise:
            vector[place] += 2.0 * value - 1.0 if isinstance(value, bool) else value
        elif moments is not None:
            vector[place] += (moments.take if learn else moments.z)(value, self.features.clip)

    def to_dict(self) -> Encoding:
        """The state, as JSON data, from which `restore` goes on bit by bit."""
        known: dict[str, list[Any]] = {}
        for name, entry in self._known.items():
            if isinstance(entry, _Number):
                known[name] = [entry.slot, entry.moments.state()]
            else:
                known[name] = [entry.other, entry.slots]
        settings = {name: getattr(self.features, name) for name in Features.__dataclass_fields__}
        shared = {str(place): moments.state() for place, moments in self._shared.items()}
        own = {"settings": settings, "used": self._used, "known": known}
        return own | {"shared": shared} if shared else own

    @classmethod
    def restore(cls, saved: Encoding, what: str = "context") -> FeatureEncoder:
        """The encoder that `to_dict` described; a FormatError where its places cannot be."""
        encoder = cls(Features(**saved["settings"]), what)
        taken = {0}
        for name, (place, *parts) in saved["known"].items():
            if len(parts) == 1 and isinstance(parts[0], dict):
                slots = {str(value): int(slot) for value, slot in parts[0].items()}
                encoder._known[name] = _Text(int(place), slots)
                taken |= {int(place), *slots.values()}
                continue
            encoder._known[name] = _Number(int(place), ColumnMoments.restore(parts[0]))
            taken.add(int(place))
        for shared, state in saved.get("shared", {}).items():
            if not 0 < int(shared) < encoder.size:
                raise FormatError(f"the shared places of a saved {what} must be 1 to {encoder.size - 1}.")
            encoder._shared[int(shared)] = ColumnMoments.restore(state)
        encoder._used = int(saved["used"])
        places = list(range(len(taken)))  # as many as there are, however many the file claims
        if sorted(taken) != places or len(taken) != encoder._used or encoder._used > encoder.size:
            raise FormatError(f"the places of a saved {what} must be 0 to {encoder._used - 1}.", field=what)
        return encoder

    def copy(self) -> FeatureEncoder:
        """An encoder in the same state."""
        return FeatureEncoder.restore(self.to_dict(), self.what)


def _text(value: object) -> str:
    """A value of a text, which may also be a number."""
    return f"{value:g}" if type(value) is float else str(value)
