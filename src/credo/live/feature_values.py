"""The values of features: numbers, truth values and texts, and which of them a row lacks."""

from __future__ import annotations

import math
import numbers
from collections.abc import Hashable
from typing import Literal, TypeAlias

import numpy as np

from credo.core.errors import CredoError

__all__ = [
    "FARTHEST",
    "FeatureKind",
    "FeatureName",
    "absent",
    "kind_of",
    "number_of",
    "origin_of",
    "sign_of",
    "text_of",
]

FARTHEST = float(np.finfo(np.float32).max)
"""The largest size of a number; what is farther from its origin counts as missing."""

OUTLYING = 1e15
"""The size above which a number counts as missing where numbers are standardised."""

FeatureName: TypeAlias = Hashable
"""The name of a feature: any key of a dict."""

FeatureKind: TypeAlias = Literal["number", "boolean", "text"]
"""What a feature holds, decided by its first value."""


def absent(value: object) -> bool:
    """Whether a cell has no value: None, NaN, or what pandas puts in its place.

    Example:
        >>> [absent(value) for value in (None, float("nan"), np.float32("nan"), 0.0, "", False)]
        [True, True, True, False, False, False]
    """
    if value is None:
        return True
    if isinstance(value, str):
        return False
    if isinstance(value, float | np.floating):
        return bool(value != value)
    return type(value).__name__ in ("NAType", "NaTType")


def kind_of(name: FeatureName, value: object) -> FeatureKind:
    """What a feature holds, by its first value.

    Raises:
        CredoError: it is no number, truth value or text.
    """
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool | np.bool_):
        return "boolean"
    if isinstance(value, numbers.Real):
        return "number"
    raise CredoError(
        f"feature {name!r} must hold numbers, truth values or texts; got {type(value).__name__}.", field="x"
    )


def number_of(name: FeatureName, value: object) -> float:
    """A number; infinity where it is larger than any.

    Raises:
        CredoError: it is no number.
    """
    if isinstance(value, np.bool_):
        return float(value)
    if not isinstance(value, numbers.Real):
        raise CredoError(f"feature {name!r} holds numbers; got {_shown(value)}.", field="x")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def origin_of(first: float) -> float:
    """From where the numbers of a column are counted: the first of them, or 0 where it counts as missing.

    Arguments:
        first: the first number.
    """
    return first if abs(first) <= OUTLYING else 0.0


def sign_of(name: FeatureName, value: object) -> float:
    """1 for true, and -1 for false; 1 and 0 mean the same.

    Raises:
        CredoError: it is neither.
    """
    if isinstance(value, numbers.Real | np.bool_) and value in (0, 1):
        return 1.0 if value else -1.0
    raise CredoError(f"feature {name!r} holds truth values; got {_shown(value)}.", field="x")


def text_of(value: object) -> str:
    """A value of a text feature: a text, or a number or truth value as it is written."""
    return value if type(value) is str else str(value)


def _shown(value: object) -> str:
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    if isinstance(value, numbers.Number):
        return f"{value!r}"
    return type(value).__name__
