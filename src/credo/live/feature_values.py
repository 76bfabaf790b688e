"""The values of features: numbers, truth values, times and texts, and which of them a row lacks."""

from __future__ import annotations

import datetime as dt
import math
import numbers
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from credo.core.errors import CredoError
from credo.tables.cells import LARGEST
from credo.tables.hashing import hash_words
from credo.tables.infer import WORD_SLOTS, is_text
from credo.tables.schema import ColumnSpec
from credo.tables.times import read_times, to_times

__all__ = [
    "FARTHEST",
    "HOLDINGS",
    "FeatureKind",
    "FeatureName",
    "absent",
    "kind_of",
    "number_of",
    "origin_of",
    "read_features",
    "text_of",
]

FARTHEST = LARGEST
"""The largest distance of a number from its origin; what is farther counts as missing."""

OUTLYING = 1e15
"""The size above which a number counts as missing where numbers are standardised."""

FeatureName: TypeAlias = Hashable
"""The name of a feature: any key of a dict."""

FeatureKind: TypeAlias = Literal["number", "boolean", "text", "time", "words"]
"""The kind of a feature, decided by its first value: a text is a category, unless it has several words."""

_TIMES = ColumnSpec("", "datetime")
_WORDS = ColumnSpec("", "text", slots=WORD_SLOTS)


def absent(value: object) -> bool:
    """Whether a cell has no value: None, NaN, or what pandas puts in its place."""
    if value is None:
        return True
    if isinstance(value, str):
        return False
    if isinstance(value, float | np.floating):
        return bool(value != value)
    return type(value).__name__ in ("NAType", "NaTType")


def kind_of(name: FeatureName, value: object) -> FeatureKind:
    """The kind of a feature, by its first value; a CredoError if that is none of these."""
    if isinstance(value, bool | np.bool_):
        return "boolean"
    if isinstance(value, numbers.Real):
        return "number"
    if isinstance(value, str | dt.date | np.datetime64):
        if _is_time(value):
            return "time"
        if isinstance(value, str):
            if is_text([value]):
                return "words"
            return "text"
    raise CredoError(
        f"feature {name!r} must hold numbers, truth values, times or texts; got {type(value).__name__}.",
        field="x",
    )


def read_features(
    name: FeatureName, kind: FeatureKind, cells: Sequence[object], values: np.ndarray, place: int
) -> None:
    """Fill the inputs (n, D) of a feature of times or words from `place` on, NaN if it has no value; times
    are in seconds since 1970, and a CredoError refuses what is none.
    """
    parts = slice(place, place + len(HOLDINGS[kind].parts))
    cells = [None if absent(cell) else cell for cell in cells]
    if kind == "words":
        lost = hash_words(_WORDS, [None if cell is None else text_of(cell) for cell in cells], values, place)
    else:
        seconds, wrong = read_times(_TIMES, cells, values, place)
        if wrong.any():
            time_of(name, cells[int(np.argmax(wrong))])
        values[:, place] = seconds
        lost = np.isnan(seconds)
    values[lost, parts] = np.nan


def time_of(name: FeatureName, value: object) -> float:
    """A time in seconds since 1970; NaN for an empty text. A CredoError refuses what is no time."""
    seconds, _, wrong = to_times([value])
    if wrong[0]:
        raise CredoError(f"feature {name!r} holds times; got {_shown(value)}.", field="x")
    return float(seconds[0])


def _is_time(value: object) -> bool:
    """Whether a value is a time; a text of digits alone is none, although it may be read as a date."""
    digits = isinstance(value, str) and value.strip().isdecimal()
    return not digits and not math.isnan(to_times([value])[0][0])


def number_of(name: FeatureName, value: object) -> float:
    """A number; infinity if it is larger than any. A CredoError refuses what is no number."""
    if isinstance(value, np.bool_):
        return float(value)
    if not isinstance(value, numbers.Real):
        raise CredoError(f"feature {name!r} holds numbers; got {_shown(value)}.", field="x")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def origin_of(first: float) -> float:
    """From where the numbers of a column are counted: the first of them, or 0 if it counts as missing."""
    if abs(first) <= OUTLYING:
        return first
    return 0.0


def sign_of(name: FeatureName, value: object) -> float:
    """1 for true and 1, -1 for false and 0; a CredoError refuses anything else."""
    if isinstance(value, numbers.Real | np.bool_) and value in (0, 1):
        if value:
            return 1.0
        return -1.0
    raise CredoError(f"feature {name!r} holds truth values; got {_shown(value)}.", field="x")


class Holding(NamedTuple):
    """The way in which a kind of values becomes inputs: what they stand for, several where `read_features`
    fills them; the number of a value, if it has one; whether it is standardised; and whether it is counted
    from the first value even where numbers pass as they come.
    """

    parts: tuple[str | None, ...] = (None,)
    read: Callable[[FeatureName, object], float] = lambda name, value: 0.0
    scaled: bool = False
    counted: bool = False


HOLDINGS: Mapping[FeatureKind, Holding] = {
    "number": Holding(read=number_of, scaled=True),
    "boolean": Holding(read=sign_of),
    "time": Holding((None, *(name.replace(" ", "") for name in _TIMES.features[1:])), time_of, True, True),
    "words": Holding(tuple(name.removeprefix("=") for name in _WORDS.features)),
    "text": Holding(()),  # its inputs come with its values
}
"""The way to read each kind."""


def text_of(value: object) -> str:
    """A value of a text feature: a text, or a number or truth value as it is written."""
    if type(value) is str:
        return value
    return str(value)


def _shown(value: object) -> str:
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    if isinstance(value, numbers.Number):
        return f"{value!r}"
    return type(value).__name__
