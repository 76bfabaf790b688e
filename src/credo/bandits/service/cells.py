"""Contexts by name as flat cells: nested objects, lists of numbers, and tags."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from credo.core.errors import CredoError

__all__ = ["LARGEST", "Cell", "as_texts", "cells_of", "texts_of"]

Cell: TypeAlias = bool | float | str | tuple[str, ...] | None
"""A number, a truth value, a text, tags, or nothing."""

LARGEST = 10**300
"""Larger whole numbers count as infinite."""

_PLAIN = frozenset((float, bool, str, type(None)))
"""The types of values that are cells."""

_DEEPEST = 20
"""How deep objects and lists may lie in one another."""


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
    return tuple(dict.fromkeys(cell)) if isinstance(cell, tuple) else None


def as_texts(cell: Cell) -> tuple[str, ...]:
    """The texts of a cell, where a number is one, too."""
    texts = texts_of(cell)
    return (_word(cell),) if texts is None else texts


def _word(cell: object) -> str:
    return f"{cell:g}" if type(cell) is float else str(cell)


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
        f"{what} must hold numbers, truth values, texts, and objects and lists of them; got a "
        f"{type(value).__name__} for {name!r}.",
        field=what,
    )
