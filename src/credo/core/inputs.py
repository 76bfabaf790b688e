"""Words for what a caller passed in place of numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import numpy as np

from credo.core.errors import CredoError, require_representable, shown
from credo.core.types import PyTree

__all__ = ["of_numbers", "require_finite", "require_narrow", "require_numbers", "shapes_of"]

T = TypeVar("T")


def require_numbers(field: str, tree: PyTree) -> None:
    """Refuse a tree that holds text, a frame of another library, or anything else that is not numeric."""
    hint = ": number the classes, from 0" if field in ("y", "ys") else ""
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        name = field + jax.tree_util.keystr(path)
        room = type(leaf).__module__.split(".")[0]
        if room in ("pandas", "polars"):
            raise CredoError(
                f"{name} must be an array; got a {room}.{type(leaf).__name__}: pass {name}.to_numpy(), or "
                "learn from tables with credo.sessions.Session.",
                field=field,
            )
        if isinstance(leaf, str | bytes):
            raise CredoError(f"{name} must be a number; got {leaf!r}{hint}.", field=field)
        if isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind not in "biufcV":
            kind = "text" if leaf.dtype.kind in "US" else f"dtype {leaf.dtype}"
            raise CredoError(f"{name} must be an array of numbers; got {kind}{hint}.", field=field)
        if not hasattr(leaf, "dtype") and not isinstance(leaf, bool | int | float | complex):
            raise CredoError(f"{name} must be an array; got a {type(leaf).__name__}.", field=field)
        require_representable(name, leaf)
        require_narrow(name, leaf)


def of_numbers(method: Callable[..., T], *fields: str) -> Callable[..., T]:
    """A method that refuses a number that no array can hold, in its first arguments of these names."""

    @functools.wraps(method)
    def checked(self: Any, *arguments: Any, **named: Any) -> T:
        for field, value in (*zip(fields, arguments, strict=False), *named.items()):
            if field in fields:
                require_representable(field, value)
        return method(self, *arguments, **named)

    return checked


def require_narrow(field: str, value: object) -> None:
    """Refuse integers that JAX, if it has 32 bits, would wrap around without a word."""
    if isinstance(value, np.ndarray | np.generic):
        wide = value.dtype.kind in "iu" and value.dtype.itemsize == 8 and value.size > 0
        extremes = [int(value.min()), int(value.max())] if wide else []
    else:
        extremes = [value] if type(value) is int else []
    beyond = [number for number in extremes if not _LEAST <= number <= _LARGEST]
    if beyond and jax.dtypes.canonicalize_dtype(np.int64).itemsize < 8:
        raise CredoError(
            f"{field} must fit into 32 bits; got {shown(beyond[0])}: pass floats, or enable 64 bits.",
            field=field,
        )


def require_finite(field: str, array: np.ndarray) -> None:
    """Refuse an array with an entry that is not finite, and show the first of these."""
    good = np.isfinite(array)
    if not good.all():
        raise CredoError(f"{field} must be finite; got {array[~good][0]}.", field=field)


_LEAST = -(2**31)
_LARGEST = 2**31 - 1


def shapes_of(tree: PyTree) -> str:
    """The shapes of a tree of arrays, for the sentences of errors."""
    if tree is None:
        return "None"
    return str(jax.tree.map(np.shape, tree))
