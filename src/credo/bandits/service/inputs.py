"""From the contexts that callers pass, and the features of arms, to the inputs of an agent.

Contexts by name become vectors of fixed length, whose places are taken as names are first seen.
"""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np

from credo.bandits.designs import DesignName
from credo.bandits.service.arms import Arms
from credo.bandits.service.features import (
    LARGEST,
    WORDS,
    Cell,
    ContextFeature,
    Features,
    Moment,
    Phrase,
    as_texts,
    cells_of,
    texts_of,
)
from credo.core.errors import CredoError, FormatError, require_integer
from credo.live.feature_values import HOLDINGS, kind_of
from credo.tables.hashing import find_words
from credo.tables.moments import ColumnMoments

__all__ = ["Encoding", "FeatureEncoder", "Inputs", "as_features"]


Encoding: TypeAlias = dict[str, Any]
"""The state of an encoder, as JSON data."""

LISTED = 1000
"""Of how many names without a place of their own it is known which place they share."""

_YEAR = 365.2425 * 86400.0
"""The seconds of a year, the unit of times where numbers are not standardised."""


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
        return {self.slot + place: f"{name}: words {place + 1}" for place in range(WORDS.slots)}

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
        cells, new = self._cells(context)
        if learn and new:
            self._admit(cells)
        vector = np.zeros(self.size)
        found = 0
        for name, value in cells.items():
            entry = self._known.get(name)
            if value is None:
                continue
            if entry is None:
                self._share_all(vector, name, value, learn)
                continue
            found += 1
            if isinstance(entry, _Text):
                for text in (value,) if type(value) is str else as_texts(value):
                    vector[entry.slots.get(text, entry.other)] = 1.0
                    if self.features.spare and text not in entry.slots:
                        self._share(vector, name, text, learn)
            elif isinstance(entry, _Words):
                vector[entry.slot : entry.slot + WORDS.slots] = value.places
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

    def _cells(self, context: Mapping[str, object]) -> tuple[dict[str, Any], bool]:
        """The values by name: floats, truth values, times, texts and tags, and None if one is missing; and
        whether a name or a text among them may be new.
        """
        cells: dict[str, Any] = {}
        new = False
        for name, value in context.items():
            entry = self._known.get(name)
            if type(value) is int and abs(value) < LARGEST:
                value = float(value)
            if type(value) is float or type(value) is bool:
                same = type(entry) is _Number and math.isfinite(value)
            elif type(value) is str:
                same = type(entry) is _Text and value in entry.slots
            else:
                same = value is None
            if same and type(name) is str and name not in cells:  # as most are
                cells[name] = value
                continue
            new = True
            for label, cell in cells_of(name, value, self.what):
                if label in cells:
                    raise CredoError(
                        f"{self.what} must have different names; {label!r} comes twice.", field=self.what
                    )
                cells[label] = self._read(label, cell)
        return cells, new

    def _read(self, name: str, cell: Cell) -> Any:
        """A value as what its name holds: what it held before, or what this one, its first, says."""
        if cell is None or cell != cell:
            return None
        if isinstance(cell, float) and math.isinf(cell):
            raise CredoError(
                f"{self.what} must be finite, or None where a value is missing; got {cell} for {name!r}.",
                field=self.what,
            )
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
            self._known[name] = self._entry(value)
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

    def _wanted(self, value: Any) -> int:
        """The number of places that a new name with this value takes."""
        if isinstance(value, Moment):
            return len(HOLDINGS["time"].parts)
        if isinstance(value, Phrase):
            return WORDS.slots
        if isinstance(value, str | tuple):
            return 2
        return 1

    def _has_room(self, value: Any) -> bool:
        """Whether a new name with this value has places of its own."""
        return self._used + self._wanted(value) <= self._own

    def _share_all(self, vector: np.ndarray, name: str, value: Any, learn: bool) -> None:
        """Add a value under a name that has no place of its own, unless it only has not been taken yet."""
        if not self._has_room(value):
            for one in _sharing(value):
                self._share(vector, name, one, learn)

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
            encoder._known[name] = entry
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


Marked: TypeAlias = tuple[FeatureEncoder, FeatureEncoder | None, tuple[int, ...] | None]
"""The encoders of contexts and of features of arms, and the shape of contexts."""


def as_features(field: str, value: int | Features | None) -> Features:
    """The settings of an encoder: a number stands for that many places, None for the defaults."""
    if value is None or isinstance(value, Features):
        return value or Features()
    require_integer(field, value, 2)
    return Features(slots=value)


class Inputs:
    """Contexts and features of arms, as the inputs of an agent of one design. With "actions", an arm with
    features has the row (context, features), or with `products` (context, features, context x features), and
    arms without take theirs from the context, (arms, d). `shape` is that of a context, None at first.
    """

    def __init__(
        self, design: DesignName, contexts: FeatureEncoder, actions: FeatureEncoder | None, products: bool
    ) -> None:
        self.design = design
        self.contexts = contexts
        self.actions = actions
        self.products = products
        self.shape: tuple[int, ...] | None = None
        self._kind = np.dtype(jnp.result_type(float))

    @property
    def size(self) -> int:
        """The length of the inputs where contexts come by name."""
        context = self.contexts.size
        if self.actions is None:
            return context
        own = self.actions.size
        return context + own + (context * own if self.products else 0)

    def context(self, value: Any, learn: bool = True, arms: Arms | None = None) -> np.ndarray | None:
        """A context as a finite array, of the shape before and with the rows of `arms`, or None; else a
        CredoError, and no change.
        """
        array: np.ndarray | None
        if isinstance(value, Mapping):
            if self.shape != (self.contexts.size,):
                self._require_shape((self.contexts.size,), value)
            array = self.contexts.encode(value, learn)
        else:
            array = None if value is None else _numbers(value)
            self._require_shape((-1,) if array is None else array.shape, value)
        if arms is not None and self.design == "actions":
            self._require_rows(array, arms)
        return array

    def pin(self, context: np.ndarray | None) -> None:
        """Take the shape of a context for that of all later ones."""
        self.shape = (-1,) if context is None else context.shape

    def _require_shape(self, shape: tuple[int, ...], value: Any) -> None:
        rows = self.design == "actions" and self.actions is None and len(shape) == 2
        same = self.shape is None or (self.shape[1:] == shape[1:] if rows else self.shape == shape)
        if not same:
            words = ["no context" if one == (-1,) else f"the shape {one}" for one in (self.shape, shape)]
            raise CredoError(f"context must have {words[0]}, as before; got {words[1]}.", field="context")

    def of(self, context: np.ndarray | None, arms: Arms, rows: np.ndarray | None) -> np.ndarray | None:
        """The agent's inputs, with features by slot (K, e) or None; a CredoError if rows do not fit."""
        if self.design != "actions":
            if context is None:
                return context
            return context.astype(self._kind)
        slots = len(arms.slots)
        if rows is None:
            self._require_rows(context, arms)
            assert context is not None
            if arms.named is None:
                return context.astype(self._kind)
            table = np.zeros((slots, context.shape[1]), self._kind)
            table[arms.named] = context
            return table
        shared = np.zeros(0) if context is None else context.reshape(-1)
        parts = [np.broadcast_to(shared, (slots, shared.size)), rows]
        if self.products:
            parts.append((shared[None, :, None] * rows[:, None, :]).reshape(slots, -1))
        return np.concatenate(parts, axis=1).astype(self._kind)

    def _require_rows(self, context: np.ndarray | None, arms: Arms) -> None:
        """Refuse a context without a row for each arm, where arms have no features of their own."""
        if self.actions is not None:
            return
        if context is None or context.ndim != 2 or len(context) != len(arms.names):
            what = "None" if context is None else f"the shape {context.shape}"
            raise CredoError(
                f"context must have a row for each of the {len(arms.names)} arms, as they have no features; "
                f"got {what}.",
                field="context",
            )

    def features(self, name: str, value: Any) -> np.ndarray | None:
        """The features of an arm as a vector, None if arms have none; a CredoError if this one differs."""
        if self.actions is None:
            if value is not None:
                raise CredoError(
                    f"features of the arm {name!r} need an agent with design='actions' whose first arms have "
                    "features, too.",
                    field="features",
                )
            return None
        if not isinstance(value, Mapping):
            raise CredoError(
                f"features of the arm {name!r} must be given by name, as the other arms' are; got {value!r}.",
                field="features",
            )
        return self.actions.encode(value)

    def table(self, told: Mapping[str, Any], slots: int) -> np.ndarray:
        """The features of arms as rows, one a slot (K, e), which are taken in; a CredoError, and no change,
        if there are none. They come by name, or all of them as arrays of e numbers.
        """
        names = list(told)
        rows = list(told.values())
        if self.actions is None:
            self.features(names[0], rows[0] or {})
        assert self.actions is not None
        if not all(type(row) is dict or isinstance(row, Mapping) for row in rows):
            size = self.actions.size
            kinds = "biuf"
            plain = all(type(row) is np.ndarray and row.shape == (size,) for row in rows)
            values = np.stack(rows) if plain else np.zeros(0, object)
            if values.dtype.kind not in kinds or not np.isfinite(values).all():
                values = np.stack([self._array(name, row) for name, row in told.items()])
        else:
            values = self.actions.encode_rows(rows)
        return np.concatenate([values, np.zeros((slots - len(rows), self.actions.size))])

    def _array(self, name: str, value: Any) -> np.ndarray:
        assert self.actions is not None
        row = None if isinstance(value, Mapping) else _numbers(value)
        if row is None or row.shape != (self.actions.size,):
            raise CredoError(
                f"features of the arm {name!r} must be by name, or an array of {self.actions.size} numbers, "
                f"and the same for all arms; got {_short(value)}.",
                field="features",
            )
        return row

    def mark(self, *, features: bool) -> Marked:
        """A mark for `back` to take back what was taken in: contexts, and with `features` those of arms."""
        actions = self.actions.copy() if features and self.actions is not None else None
        return self.contexts.copy(), actions, self.shape

    def back(self, mark: Marked) -> None:
        """Take back what was taken in since."""
        self.contexts, actions, self.shape = mark
        self.actions = self.actions if actions is None else actions

    def to_dict(self) -> dict[str, Any]:
        """The state, as JSON data."""
        return {
            "contexts": self.contexts.to_dict(),
            "actions": None if self.actions is None else self.actions.to_dict(),
            "products": self.products,
            "shape": None if self.shape is None else list(self.shape),
        }

    @classmethod
    def restore(cls, design: DesignName, saved: Mapping[str, Any]) -> Inputs:
        """The inputs that `to_dict` described."""
        actions = saved["actions"]
        encoder = None if actions is None else FeatureEncoder.restore(actions, "features")
        contexts = FeatureEncoder.restore(saved["contexts"])
        inputs = cls(design, contexts, encoder, bool(saved["products"]))
        shape = saved["shape"]
        inputs.shape = None if shape is None else tuple(map(int, shape))
        return inputs


def _numbers(value: Any) -> np.ndarray:
    """An array of finite numbers."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        array = np.asarray(None)
    if array.dtype.kind not in "biuf" and str(array.dtype) != "bfloat16":
        raise CredoError(
            f"context must be None, an array of numbers, or numbers and texts by name; got {_short(value)}.",
            field="context",
        )
    numbers = array.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise CredoError(f"context must be finite; got {_short(value)}.", field="context")
    return numbers


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    if len(text) <= 60:
        return text
    return text[:57] + "..."
