"""Values of contexts by name, one by one, and the settings by which they become vectors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import date
from typing import NamedTuple, TypeAlias

import numpy as np

from credo.core.errors import CredoError, require_integer, require_positive
from credo.core.records import record, static_field
from credo.live.feature_values import HOLDINGS, read_features
from credo.tables.hashing import hash_words
from credo.tables.schema import ColumnSpec

__all__ = [
    "LARGEST",
    "WORDS",
    "Cell",
    "ContextFeature",
    "Features",
    "Moment",
    "Phrase",
    "as_texts",
    "cells_of",
    "texts_of",
]


Cell: TypeAlias = bool | float | str | tuple[str, ...] | None
"""A number, a truth value, a text, tags, or nothing."""

LARGEST = 10**300
"""Larger whole numbers count as infinite."""

_DEEPEST = 20
"""The depth to which objects and lists may be nested."""

WORDS = ColumnSpec("", "text", slots=16)
"""The places that the words of a text share."""


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
        parts = np.zeros((1, WORDS.slots))
        hash_words(WORDS, [self.text], parts, 0)
        words: list[float] = parts[0].tolist()
        return words


def cells_of(name: object, value: object, what: str) -> Iterator[tuple[str, Cell]]:
    """The cells of a value by name: `user.age` is in an object, `x[0]` in a list of numbers, and a list with
    texts is one cell of tags. A CredoError refuses values of other kinds; sentences call the context `what`.
    """
    return _spread(_text_name(name, what), value, what, _DEEPEST)


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
        >>> from credo.bandits.service.inputs import FeatureEncoder
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
        >>> from credo.bandits.service.inputs import FeatureEncoder
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
