"""Checks of what a file holds: JSON data of the form that type annotations say, sizes and numbers in bounds.

All of it is checked before anything is built of it.
"""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, Union, get_args, get_origin

import numpy as np

from credo.core.errors import FormatError
from credo.core.integers import LARGEST_SEED

__all__ = [
    "LARGEST_COUNT",
    "LARGEST_LOOP",
    "LARGEST_SIZE",
    "Loop",
    "Name",
    "Seed",
    "Size",
    "require_bounded",
    "require_form",
    "require_sizes",
]

# The largest count of a file, the largest size that something in it may have, and how often it may ask for
# something to be done again.
LARGEST_COUNT = 2**53
LARGEST_SIZE = 2**20
LARGEST_LOOP = 2**14

_LARGEST_INTEGER = 2**31 - 1
_LARGEST_AXIS = 2**24
_LOOPS = ("iterations", "steps", "stages")
_LARGEST: dict[str, float] = {"float64": 1e150, "float32": 1e18, "bfloat16": 1e18}
"""The largest numbers of a belief, whose squares are finite with room to spare."""

Size: TypeAlias = Annotated[int, LARGEST_SIZE]
"""A size, for which memory is taken."""

Loop: TypeAlias = Annotated[int, LARGEST_LOOP]
"""The number of times that something is done again."""

Seed: TypeAlias = Annotated[int, LARGEST_SEED]
"""A seed."""

Name: TypeAlias = str | int | float
"""The name of a feature or class."""

_WORDS: dict[object, str] = {
    int: "a whole number at least 0",
    float: "a finite number",
    str: "text",
    bool: "true or false",
    None: "nothing",
    types.NoneType: "nothing",
}


def require_form(value: object, form: Any, field: str) -> None:  # noqa: C901 - a case after the other
    """Refuse JSON data that have not the form of an annotation, by a `FormatError` that names the place.

    A whole number is at least 0, and at most `LARGEST_COUNT` or the number with which it is `Annotated`; a
    number is finite. A record is a dict with its fields, of which those with a default may be absent, and a
    named tuple a list. A `TypedDict` may have more keys. `Any` is not looked at.
    """
    origin = get_origin(form)
    args = get_args(form)
    if form is Any or form is object:
        return
    if origin is NotRequired:
        return require_form(value, args[0], field)
    if origin is Annotated:
        require_form(value, args[0], field)
        if not isinstance(value, int) or value > args[1]:
            raise FormatError.must_be(field, f"a whole number from 0 to {args[1]:,}", value)
    elif origin in (Union, types.UnionType):
        _require_one_of(value, args, field)
    elif origin is Literal:
        if not any(value == one and type(value) is type(one) for one in args):
            raise FormatError.must_be(field, f"one of {', '.join(map(str, args))}", value)
    elif isinstance(origin, type) and issubclass(origin, tuple):
        _require_tuple(value, args, field)
    elif isinstance(origin, type) and issubclass(origin, Sequence):
        _require_list(value, [args[0]] * len(_listed(value, field)), field)
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        for name, child in _dict(value, field).items():
            require_form(child, args[1], f"{field}.{name}")
    elif typing.is_typeddict(form):
        hints = typing.get_type_hints(form, include_extras=True)
        needed = {name for name, hint in hints.items() if get_origin(hint) is not NotRequired}
        _require_keys(value, needed, hints, field)
    elif dataclasses.is_dataclass(form) and isinstance(form, type):
        _require_record(value, form, field)
    elif isinstance(form, type) and issubclass(form, tuple):
        hints = typing.get_type_hints(form, include_extras=True)
        least = len(hints) - len(getattr(form, "_field_defaults", {}))
        most = list(hints.values())
        _require_list(value, most[: max(least, len(_listed(value, field)))], field)
    else:
        _require_plain(value, form, field)


def require_sizes(record: type[Any], values: Mapping[str, object], place: str = "") -> None:
    """Refuse whole numbers that no field of a record may have: a static one is a size, or says how often
    something is done; another is a number of a compiled program. `place` comes before the field's name.
    """
    for one in dataclasses.fields(record):
        _require_within(values.get(one.name), _most_of(one), f"{place}{one.name}")


def _most_of(one: dataclasses.Field[Any]) -> int:
    """The largest whole number that a field may have."""
    if not one.metadata.get("static", False):
        return _LARGEST_INTEGER
    if one.name == "seed":
        return LARGEST_SEED
    if one.name in _LOOPS:
        return LARGEST_LOOP
    return _LARGEST_AXIS


def _require_within(value: object, most: int, field: str) -> None:
    if isinstance(value, list | tuple):
        for item in value:
            _require_within(item, most, field)
    elif isinstance(value, int) and abs(value) > most:
        raise FormatError.must_be(field, f"a whole number of at most {most:,}", value)


def require_bounded(array: np.ndarray, field: str) -> None:
    """Refuse numbers that are not finite, or so large that what is computed of them would not be."""
    most = _LARGEST.get(str(array.dtype))
    if not np.isfinite(array).all():
        raise FormatError(f"{field} must be finite.", field=field)
    if most is not None and (np.abs(array) > most).any():
        raise FormatError(f"{field} must be at most {most:g} in size.", field=field)


def _require_plain(value: object, form: Any, field: str) -> None:
    if form is int:
        fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_COUNT
    elif form is float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        fits = number and abs(value) <= sys.float_info.max  # type: ignore[arg-type]
    elif form in (None, types.NoneType):
        fits = value is None
    else:
        fits = isinstance(value, form)
    if not fits:
        raise FormatError.must_be(field, _WORDS.get(form, f"a {getattr(form, '__name__', form)}"), value)


def _require_one_of(value: object, forms: Sequence[Any], field: str) -> None:
    """Refuse a value that fits no form, with the sentence of the form of its kind, or one that names all."""
    said: list[FormatError] = []
    for form in forms:
        try:
            require_form(value, form, field)
        except FormatError as error:
            said.append(error)
        else:
            return
    inner = [error for error in said if error.field != field]
    if inner:
        raise inner[0]
    words = (error.allowed for error in said)
    raise FormatError.must_be(field, " or ".join(dict.fromkeys(words)), value)


def _listed(value: object, field: str) -> Sequence[object]:
    if not isinstance(value, list | tuple):
        raise FormatError.must_be(field, "a list", value)
    return value


def _dict(value: object, field: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise FormatError.must_be(field, "named parts", value)
    return value


def _require_tuple(value: object, args: Sequence[Any], field: str) -> None:
    items = _listed(value, field)
    _require_list(items, [args[0]] * len(items) if args[-1:] == (...,) else args, field)


def _require_list(value: object, forms: Sequence[Any], field: str) -> None:
    items = _listed(value, field)
    if len(items) != len(forms):
        raise FormatError.must_be(field, f"a list of {len(forms)}", value)
    for place, (item, form) in enumerate(zip(items, forms, strict=True)):
        require_form(item, form, f"{field}.{place}")


def _require_record(value: object, form: type[Any], field: str) -> None:
    fields = dataclasses.fields(form)
    needed = {one.name for one in fields if one.default is one.default_factory is dataclasses.MISSING}
    unknown = sorted(set(_dict(value, field)) - {one.name for one in fields})
    if unknown:
        raise FormatError.must_be(field, f"a {form.__name__}, which has no {unknown[0]!r}", value)
    _require_keys(value, needed, typing.get_type_hints(form, include_extras=True), field)


def _require_keys(value: object, needed: set[str], hints: Mapping[str, Any], field: str) -> None:
    parts = _dict(value, field)
    absent = sorted(needed - set(parts))
    if absent:
        raise FormatError(f"{field} has no {absent[0]!r}.", field=field)
    for name, hint in hints.items():
        if name in parts:
            require_form(parts[name], hint, f"{field}.{name}")
