"""Whether a value that was read from a file has the type that its field is annotated with."""

from __future__ import annotations

import collections.abc
import functools
import types
import typing
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import jax
import numpy as np

from credo.core.types import Array

__all__ = ["misfit"]

_NUMBERS = (jax.Array, np.ndarray, np.generic, int, float)


def misfit(cls: type, field: str, value: object) -> str:
    """The types that a field of a record allows, in words; empty if the value fits or nothing is known."""
    hint = _hints(cls).get(field, Any)
    if _fits(value, hint):
        return ""
    return _spell(hint)


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except (NameError, TypeError):  # a user's class may name what exists for the type checker only
        return {}


def _fits(value: object, hint: Any) -> bool:
    origin = get_origin(hint)
    args = get_args(hint)
    if isinstance(hint, TypeVar):
        return hint.__bound__ is None or _fits(value, hint.__bound__)
    if origin in (Union, types.UnionType):
        return any(_fits(value, arg) for arg in args)
    if origin is Literal:
        return any(value is arg or (isinstance(value, str) and value == arg) for arg in args)
    if origin is tuple:
        kinds = args[:1] * len(value) if args[-1:] == (...,) and isinstance(value, tuple) else args
        return isinstance(value, tuple) and len(kinds) == len(value) and all(map(_fits, value, kinds))
    if origin is collections.abc.Callable or hint is collections.abc.Callable:
        return callable(value)
    if origin is collections.abc.Sequence:
        return isinstance(value, list | tuple) and all(_fits(item, args[0]) for item in value)
    kind = origin or hint
    if hint is None or kind is type(None):
        return value is None
    if not isinstance(kind, type):
        return True
    return _is_a(value, kind)


def _is_a(value: object, kind: type) -> bool:
    if kind in (Array, np.ndarray, np.number, complex):
        return isinstance(value, _NUMBERS) and not isinstance(value, str)
    if kind in (int, float):
        number = isinstance(value, int) or (kind is float and isinstance(value, float))
        return number and not isinstance(value, bool)
    try:
        return isinstance(value, kind)
    except TypeError:  # a protocol that cannot be asked
        return True


def _spell(hint: Any) -> str:
    args = get_args(hint)
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_spell(arg) for arg in args))
    if get_origin(hint) is Literal:
        return f"one of {', '.join(map(str, args))}"
    if hint in (None, type(None)):
        return "None"
    kind = get_origin(hint) or hint
    if kind in (Array, np.ndarray, np.number, complex):
        return "an array"
    return getattr(kind, "__name__", str(hint))
