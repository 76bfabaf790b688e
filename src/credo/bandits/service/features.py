"""Contexts by name as vectors of fixed length, whose places are taken as names are first seen."""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from credo.core.errors import CredoError, FormatError, require_integer, require_positive
from credo.core.records import record, static_field
from credo.live.feature_values import HOLDINGS, kind_of, read_features
from credo.tables.hashing import find_words, hash_words
from credo.tables.moments import ColumnMoments
from credo.tables.schema import ColumnSpec

__all__ = ["ContextFeature", "Encoding", "FeatureEncoder", "Features"]


Cell: TypeAlias = bool | float | str | tuple[str, ...] | None
"""A number, a truth value, a text, tags, or nothing."""

LARGEST = 10**300
"""Larger whole numbers count as infinite."""

_PLAIN = frozenset((float, bool, str, type(None)))
"""The types of values that are cells."""

_DEEPEST = 20
"""The depth to which objects and lists may be nested."""

_WORDS = ColumnSpec("", "text", slots=16)
"""The places that the words of a text share."""

_YEAR = 365.2425 * 86400.0
"""The seconds of a year, the unit of times where numbers are not standardised."""


class Moment(NamedTuple):
    """A time in seconds since 1970, and the sines and cosines of its hour and its weekday."""

    seconds: float
    cycles: tuple[float, ...]

    @staticmethod
    def of(name: str, text: str) -> Moment:
        """The time that a text holds; a CredoError if it is none."""
        parts = np.zeros((1, len(HOLDINGS["time"].parts)))
        read_features(name, "time", [text], parts, 0)
        seconds, *cycles = parts[0].tolist()
        return Moment(seconds, tuple(cycles))


class Phrase(NamedTuple):
    """A text of several words."""

    text: str

    @property
    def places(self) -> list[float]:
        """The values of its words in the places that they share."""
        parts = np.zeros((1, _WORDS.slots))
        hash_words(_WORDS, [self.text], parts, 0)
        words: list[float] = parts[0].tolist()
        return words


def cells_of(context: Mapping[str, object], what: str) -> dict[str, Cell]:
    """The cells of a context, in which `user.age` is in an object, `x[0]` in a list of numbers, and a list
    with texts is one cell of tags. A CredoError refuses values of other kinds; sentences call it `what`.
    """
    cells: dict[str, Cell] = {}
    for name, value in context.items():
        if type(value) in _PLAIN and type(name) is str and name not in cells:  # as most are
            cells[name] = value  # type: ignore[assignment]
            continue
        for label, cell in _spread(_text_name(name, what), value, what, _DEEPEST):
            if label in cells:
                raise CredoError(f"{what} must have different names; {label!r} comes twice.", field=what)
            cells[label] = cell
    return cells


def texts_of(cell: Cell) -> tuple[str, ...] | None:
    """The texts of a cell, once each; None if it has none, as a number."""
    if isinstance(cell, str):
        return (cell,)
    if isinstance(cell, tuple):
        return tuple(dict.fromkeys(cell))
    return None


def as_texts(cell: Cell) -> tuple[str, ...]:
    """The texts of a cell, where a number is one, too."""
    texts = texts_of(cell)
    if texts is None:
        return (_word(cell),)
    return texts


def _word(cell: object) -> str:
    if type(cell) is float:
        return f"{cell:g}"
    return str(cell)


def _spread(name: str, value: object, what: str, deep: int) -> Iterator[tuple[str, Cell]]:
    """A value as one or several cells."""
    if value is None or isinstance(value, bool | str):
        yield name, value
        return
    if isinstance(value, float):
        yield name, float(value)  # those of NumPy are alike, but not equal to all
        return
    if isinstance(value, int):
        yield name, float(value) if abs(value) < LARGEST else math.inf
        return
    if isinstance(value, date):
        yield name, value.isoformat()
        return
    if deep == 0:
        raise CredoError(
            f"{what} must be at most {_DEEPEST} objects and lists deep; {name!r} lies deeper.", field=what
        )
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _spread(f"{name}.{_text_name(key, what)}", inner, what, deep - 1)
        return
    to_list = getattr(value, "tolist", None)
    plain = value if to_list is None else to_list()
    if isinstance(plain, list | tuple):
        if not plain or any(isinstance(cell, str) for cell in plain):
            yield name, tuple(_tag(name, cell, what) for cell in plain if cell is not None)
            return
        for place, cell in enumerate(plain):
            yield from _spread(f"{name}[{place}]", cell, what, deep - 1)
    elif plain is not value:
        yield from _spread(name, plain, what, deep - 1)
    else:
        raise _refusal(name, value, what)


def _text_name(name: object, what: str) -> str:
    if not isinstance(name, str):
        raise CredoError(f"{what} must have texts for names; got {name!r}.", field=what)
    return name


def _tag(name: str, cell: object, what: str) -> str:
    if not isinstance(cell, str | int | float):
        raise _refusal(name, cell, what)
    return _word(cell)


def _refusal(name: str, value: object, what: str) -> CredoError:
    return CredoError(
        f"{what} must hold numbers, truth values, times, texts, and objects and lists of them; got a "
        f"{type(value).__name__} for {name!r}.",
        field=what,
    )


Encoding: TypeAlias = dict[str, Any]
"""The state of an encoder, as JSON data."""

LISTED = 1000
"""Of how many names without a place of their own it is known which place they share."""


@record
class Features:
    """The encoding of contexts by name, such as `{"age": 31, "device": "phone"}`, as vectors of fixed length.

    A name takes free places of the vector when it is first seen. A number takes one, where it stands in
    standard deviations from the mean of the contexts before it, cut off at min(clip, sqrt(contexts before)),
    and 0 until two different values were seen; an absurd one counts as missing, and none can ruin the moments
    (`credo.tables.Moments`). A truth value is 1 or -1. A text takes two: one for its value, and one for other
    values; each further value takes one more, until `categories` of them or the places are used up. A list
    with texts is a list of tags, each of which is such a value. A time (a date, a datetime, or a text like
    "2026-11-29T08:30") takes five: one for itself, like a number, and sine and cosine of its hour and of its
    weekday. A text of three words or more takes sixteen, to which its words are hashed. What a name holds is
    said by its first value. A list of numbers takes one place a number. Objects may lie in objects:
    `{"user": {"age": 31}}` is `user.age`. What is
    missing (None, NaN, or left out) is 0, and the first place is 1 if anything that was seen before is
    missing.

    No new name or value is refused. A name for which no place is left shares one, which a hash of it chooses
    (of name and value for a text), and a warning says so once. With `spare` places these are the last ones,
    which no name has for itself, so that names that come late disturb no others; a value of a text without a
    place of its own has one there, too.

    Arguments:
        slots: how many places the vector has.
        categories: how many values of a text have a place of their own.
        standardise: whether numbers are standardised; otherwise they stand as they are.
        clip: the largest size of a standardised number.
        spare: how many of the places are left for what comes when the others are taken; with 0 it shares any.

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
    spare: int = static_field(default=0)

    def __post_init__(self) -> None:
        require_integer("slots", self.slots, 2)
        require_integer("categories", self.categories, 1)
        require_positive("clip", self.clip)
        require_integer("spare", self.spare, 0, self.slots - 2)


class ContextFeature(NamedTuple):
    """The encoding of the values under one name, in contexts or in the features of arms.

    Attributes:
        name: the name, such as "user.age".
        kind: "number" (a truth value is one), "time", "words" (a text of several), or "text", of which tags
            are several.
        places: where it stands in the vector; the first place of a text is that of other values.
        values: the values of a text that have a place of their own, in the order of the others.
        numbers: how many of them, or of times, were taken in; 0 if they are not standardised.
        mean, sd: their mean and standard deviation; those of times in seconds, from 1970 on.

    Example:
        >>> encoder = FeatureEncoder(Features(slots=6))
        >>> _ = encoder.encode({"user": {"age": 31}, "tags": ["new", "mobile"]})
        >>> [(one.name, one.kind, one.places, one.values) for one in encoder.seen]
        [('user.age', 'number', (1,), ()), ('tags', 'text', (2, 3, 4), ('new', 'mobile'))]
    """

    name: str
    kind: str
    places: tuple[int, ...]
    values: tuple[str, ...] = ()
    numbers: int = 0
    mean: float = 0.0
    sd: float = 0.0


@dataclass(slots=True)
class _Number:
    """The place of a number, and the moments of what was seen."""

    slot: int
    moments: ColumnMoments = field(default_factory=ColumnMoments)

    def parts(self, name: str) -> dict[int, str]:
        """The names of its places."""
        return {self.slot: name}

    def feature(self, name: str) -> ContextFeature:
        """The encoding of its values."""
        moments = self.moments
        return ContextFeature(name, "number", (self.slot,), (), moments.count, moments.mean, moments.sd)


@dataclass(slots=True)
class _Time:
    """The first place of a time, the first one, from which they are counted, and the moments of these."""

    slot: int
    origin: float
    moments: ColumnMoments = field(default_factory=ColumnMoments)

    def parts(self, name: str) -> dict[int, str]:
        """The names of its places."""
        cycles = HOLDINGS["time"].parts[1:]
        return {self.slot: name} | {
            self.slot + place: f"{name}: {cycle}" for place, cycle in enumerate(cycles, 1)
        }

    def feature(self, name: str) -> ContextFeature:
        """The encoding of its values."""
        moments = self.moments
        mean = self.origin + moments.mean
        return ContextFeature(name, "time", tuple(self.parts(name)), (), moments.count, mean, moments.sd)


@dataclass(slots=True)
class _Words:
    """The first place of the words of a text."""

    slot: int

    def parts(self, name: str) -> dict[int, str]:
        """The names of its places."""
        return {self.slot + place: f"{name}: words {place + 1}" for place in range(_WORDS.slots)}

    def feature(self, name: str) -> ContextFeature:
        """The encoding of its values."""
        return ContextFeature(name, "words", tuple(self.parts(name)))


@dataclass(slots=True)
class _Text:
    """The places of the values of a text: the first is that of other values."""

    other: int
    slots: dict[str, int]

    def parts(self, name: str) -> dict[int, str]:
        """The names of its places."""
        values = {slot: f"{name}: {value}" for value, slot in self.slots.items()}
        return {self.other: f"{name}: other"} | values

    def feature(self, name: str) -> ContextFeature:
        """The encoding of its values."""
        return ContextFeature(name, "text", (self.other, *self.slots.values()), tuple(self.slots))


_Entry: TypeAlias = _Number | _Time | _Words | _Text
"""The encoding of the values under a name."""


class FeatureEncoder:
    """Encodes contexts by name as vectors (slots,), and learns on; sentences call a context `what`."""

    def __init__(self, features: Features, what: str = "context") -> None:
        self.features = features
        self.what = what
        self.size = features.slots
        self._known: dict[str, _Entry] = {}
        self._read_names: set[str] = set()  # of times and words, whose values must be read
        self._used = 1
        self._own = features.slots - features.spare  # the places that names may have for themselves
        self._shared: dict[int, ColumnMoments] = {}  # of the numbers that share a place
        self._hashed: dict[str, int] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the places that are taken."""
        names = {0: "missing"}
        for name, entry in self._known.items():
            names |= entry.parts(name)
        return tuple(names[slot] for slot in range(self._used))

    @property
    def seen(self) -> tuple[ContextFeature, ...]:
        """The encodings of the names, in the order in which they came."""
        return tuple(entry.feature(name) for name, entry in self._known.items())

    @property
    def shared(self) -> dict[int, tuple[str, ...]]:
        """The names in places that are shared, by place: who has it, and who came later."""
        names = self.names
        found = dict[int, tuple[str, ...]]()
        for label, place in self._hashed.items():
            before = found.get(place) or ((names[place],) if place < len(names) else ())
            found[place] = (*before, label)
        return found

    @property
    def free(self) -> int:
        """The number of places that are left for new names."""
        return self._own - self._used

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
                for one in _sharing(value):
                    self._share(vector, name, one, learn)
            if value is None or entry is None:
                continue
            found += 1
            if isinstance(entry, _Text):
                for text in as_texts(value):
                    vector[entry.slots.get(text, entry.other)] = 1.0
                    if self.features.spare and text not in entry.slots:
                        self._share(vector, name, text, learn)
            elif isinstance(entry, _Words):
                vector[entry.slot : entry.slot + _WORDS.slots] = value.places
            elif isinstance(entry, _Time):
                vector[entry.slot] = self._time(entry, value.seconds, learn)
                vector[entry.slot + 1 : entry.slot + len(HOLDINGS["time"].parts)] = value.cycles
            elif isinstance(value, bool) or not self.features.standardise:
                vector[entry.slot] = 2.0 * value - 1.0 if isinstance(value, bool) else value
            else:
                scale = entry.moments.take if learn else entry.moments.z
                vector[entry.slot] = scale(value, self.features.clip)
        vector[0] = float(found < len(self._known))
        return vector

    def _time(self, entry: _Time, seconds: float, learn: bool) -> float:
        """A time as a number, standardised, or in years from the first one where numbers are not."""
        since = seconds - entry.origin
        if not self.features.standardise:
            return since / _YEAR
        if learn:
            return entry.moments.take(since, self.features.clip)
        return entry.moments.z(since, self.features.clip)

    def encode_rows(self, rows: Sequence[Mapping[str, object]]) -> np.ndarray:
        """The vectors (n, slots) of several contexts, one after the other; of plain ones, in which nothing is
        new, by columns. A CredoError may leave the encoder with what came before the one that it refuses.
        """
        table = self._by_columns(rows)
        if table is None:
            return np.stack([self.encode(row) for row in rows])
        return table

    def _by_columns(self, rows: Sequence[Mapping[str, object]]) -> np.ndarray | None:
        """The same vectors, where all rows have the same names with values like those before; else None."""
        names = rows[0].keys()
        if self.features.standardise or not all(row.keys() == names for row in rows):
            return None
        table = np.zeros((len(rows), self.size))
        for name in names:
            entry = self._known.get(name)
            column = [row[name] for row in rows]
            kinds = set(map(type, column))
            if isinstance(entry, _Number) and kinds <= {float, int}:
                numbers = np.array(column, object if int in kinds else float)
                if not (np.abs(numbers) < LARGEST).all():  # NaN is none
                    return None
                table[:, entry.slot] = numbers
            elif isinstance(entry, _Text) and kinds == {str}:
                places = [entry.slots.get(str(text)) for text in column]
                if None in places:
                    return None
                table[np.arange(len(rows)), np.array(places)] = 1.0
            else:
                return None
        table[:, 0] = float(len(names) < len(self._known))
        return table

    def _cells(self, context: Mapping[str, object]) -> dict[str, Any]:
        """The values by name: floats, truth values, times, texts and tags, and None if one is missing."""
        cells: dict[str, Any] = {}
        for label, cell in cells_of(context, self.what).items():
            plain = type(cell) is float and math.isfinite(cell)
            if plain and label not in self._read_names:  # as most are
                cells[label] = cell
                continue
            if cell is None or (type(cell) is float and cell != cell):
                cells[label] = None
                continue
            if isinstance(cell, float) and math.isinf(cell):
                raise CredoError(
                    f"{self.what} must be finite, or None where a value is missing; got {cell} for "
                    f"{label!r}.",
                    field=self.what,
                )
            cells[label] = self._read(label, cell)
        return cells

    def _read(self, name: str, cell: Cell) -> Any:
        """A value as what its name holds: what it held before, or what this one, its first, says."""
        entry = self._known.get(name)
        if isinstance(entry, _Text):
            return cell
        if isinstance(entry, _Words):
            return Phrase(" ".join(as_texts(cell)))
        kind = kind_of(name, cell) if isinstance(cell, str) else "tags"
        if isinstance(entry, _Number) and isinstance(cell, str | tuple):
            raise self._not_as_before(name, "number", cell)
        if isinstance(entry, _Time) and kind != "time":
            raise self._not_as_before(name, "time", cell)
        if isinstance(cell, str) and kind == "time":
            return Moment.of(name, cell)
        if isinstance(cell, str) and kind == "words":
            return Phrase(cell)
        return cell

    def _not_as_before(self, name: str, what: str, cell: Cell) -> CredoError:
        return CredoError(
            f"{self.what} must have a {what} for {name!r}, as before; got {cell!r}.", field=self.what
        )

    def _admit(self, cells: Mapping[str, Any]) -> None:
        """Give places to what is new, as long as there are some."""
        for name, value in cells.items():
            if value is None or name in self._known:
                continue
            if value == () or not self._has_room(value):
                continue
            self._keep(name, self._entry(value))
            self._used += self._wanted(value)
        for name, value in cells.items():
            entry = self._known.get(name)
            if value is None or not isinstance(entry, _Text):
                continue
            for text in as_texts(value):
                full = len(entry.slots) >= self.features.categories or self._used >= self._own
                if not full and text not in entry.slots:
                    entry.slots[text] = self._used
                    self._used += 1

    def _entry(self, value: Any) -> _Entry:
        """The encoding of a name by its first value, from the first free place on."""
        if isinstance(value, Moment):
            return _Time(self._used, value.seconds)
        if isinstance(value, Phrase):
            return _Words(self._used)
        texts = texts_of(value)
        if texts is None:
            return _Number(self._used)
        return _Text(self._used, {texts[0]: self._used + 1})

    def _keep(self, name: str, entry: _Entry) -> None:
        self._known[name] = entry
        if isinstance(entry, _Time | _Words):
            self._read_names.add(name)

    def _wanted(self, value: Any) -> int:
        """The number of places that a new name with this value takes."""
        if isinstance(value, Moment):
            return len(HOLDINGS["time"].parts)
        if isinstance(value, Phrase):
            return _WORDS.slots
        if isinstance(value, str | tuple):
            return 2
        return 1

    def _has_room(self, value: Any) -> bool:
        """Whether a new name with this value has places of its own."""
        return self._used + self._wanted(value) <= self._own

    def _share(self, vector: np.ndarray, name: str, value: bool | float | str, learn: bool) -> None:
        """Add a value without a place of its own to that of others."""
        label = f"{name}={value}" if isinstance(value, str) else name
        first = self._own if self.features.spare else 1
        place = first + zlib.crc32(label.encode(errors="replace")) % (self.size - first)
        if learn and not self._shared and not self.features.spare:
            warnings.warn(
                f"there are more names in {self.what} than the {self.size} places, and {name!r} shares one "
                "with others; set more slots.",
                stacklevel=2,
            )
        if learn and len(self._hashed) < LISTED:
            self._hashed.setdefault(label, place)
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
            elif isinstance(entry, _Time):
                known[name] = [entry.slot, entry.moments.state(), entry.origin]
            elif isinstance(entry, _Words):
                known[name] = [entry.slot]
            else:
                known[name] = [entry.other, entry.slots]
        settings = {name: getattr(self.features, name) for name in Features.__dataclass_fields__}
        shared = {str(place): moments.state() for place, moments in self._shared.items()}
        own = {"settings": settings, "used": self._used, "known": known}
        if shared:
            return own | {"shared": shared, "hashed": dict(self._hashed)}
        return own

    @classmethod
    def restore(cls, saved: Encoding, what: str = "context") -> FeatureEncoder:
        """The encoder that `to_dict` described; a FormatError if its places cannot be."""
        encoder = cls(Features(**saved["settings"]), what)
        taken = {0}
        for name, (place, *parts) in saved["known"].items():
            entry = _restored(int(place), parts)
            encoder._keep(name, entry)
            taken.update(entry.parts(name))
        for shared, state in saved.get("shared", {}).items():
            if not 0 < int(shared) < encoder.size:
                raise FormatError(f"the shared places of a saved {what} must be 1 to {encoder.size - 1}.")
            encoder._shared[int(shared)] = ColumnMoments.restore(state)
        for label, shared in saved.get("hashed", {}).items():
            if not 0 < int(shared) < encoder.size:
                raise FormatError(f"the shared places of a saved {what} must be 1 to {encoder.size - 1}.")
            encoder._hashed[str(label)] = int(shared)
        encoder._used = int(saved["used"])
        places = list(range(len(taken)))  # as many as there are, however many the file claims
        if sorted(taken) != places or len(taken) != encoder._used or encoder._used > encoder._own:
            raise FormatError(f"the places of a saved {what} must be 0 to {encoder._used - 1}.", field=what)
        return encoder

    def copy(self) -> FeatureEncoder:
        """An encoder in the same state."""
        return FeatureEncoder.restore(self.to_dict(), self.what)


def _restored(place: int, parts: Sequence[Any]) -> _Entry:
    """The encoding of a name, from its first place and what else is saved of it."""
    if not parts:
        return _Words(place)
    if isinstance(parts[0], dict):
        return _Text(place, {str(value): int(slot) for value, slot in parts[0].items()})
    moments = ColumnMoments.restore(parts[0])
    if len(parts) == 1:
        return _Number(place, moments)
    origin = float(parts[1])
    if not math.isfinite(origin):
        raise FormatError(f"the first time of a saved context must be finite; got {origin}.")
    return _Time(place, origin, moments)


def _sharing(value: Any) -> Sequence[bool | float | str]:
    """The entries that a value without a place adds to places of others: a number, or each of its texts."""
    if isinstance(value, Moment):
        return (value.seconds,)
    if isinstance(value, Phrase):
        return tuple(dict.fromkeys(find_words(value.text)))
    texts = texts_of(value)
    if texts is None:
        return (value,)
    return texts
