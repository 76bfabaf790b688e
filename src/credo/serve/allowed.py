"""The limits of JSON fields: msgspec checks them and writes the document, and refusals are in our words."""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from credo.core.errors import CredoError, suggest

__all__ = ["require_fields", "require_known", "says", "whole"]

_WORDS: dict[Any, str] = {str: "a text", list: "a list", tuple: "a list", dict: "an object"}


def says(words: str, **limits: Any) -> msgspec.Meta:
    """The limits of a field, and what is allowed in words, which a refusal and the document say."""
    return msgspec.Meta(description=words, **limits)


def whole(low: int, high: int) -> msgspec.Meta:
    """The limits of a whole number."""
    return says(f"a whole number in {low}..{high}", ge=low, le=high)


def require_known(what: str, content: Iterable[str], known: Sequence[str]) -> None:
    """Refuse a name that is no field of what is meant."""
    for name in content:
        if name not in known:
            sentence = (
                f"{name:.60} is no field of {what}; they are {', '.join(known)}. {suggest(name, known)}"
            )
            raise CredoError(sentence.strip(), field=name)


def require_fields(content: Mapping[str, Any], record: type) -> None:
    """Refuse values that the fields of a record may not have; of a list or an object, the part is named."""
    for name, value in content.items():
        _require(name, value, _hints(record)[name])


@functools.cache
def _hints(record: type) -> dict[str, Any]:
    return get_type_hints(record, include_extras=True)


def _require(field: str, value: Any, hint: Any) -> None:
    choices = list(_choices(hint))
    for kind, _ in choices:
        inner = get_args(kind)
        if isinstance(value, dict) and get_origin(kind) is dict:
            for name, part in value.items():
                _require(f"{field}.{name}", part, inner[1])
        if isinstance(value, list) and get_origin(kind) in (list, tuple):
            for place, part in enumerate(value):
                _require(f"{field}.{place}", part, inner[0])
    if not _fits(value, hint):
        raise CredoError.must_be(field, choices[0][1], value)


def _choices(hint: Any, words: str = "") -> Iterator[tuple[Any, str]]:
    """The types among which a value chooses, each with what it may be in words."""
    inner = get_args(hint)
    if get_origin(hint) is Annotated:
        yield from _choices(inner[0], words or inner[1].description)
    elif get_origin(hint) in (Union, types.UnionType):
        for one in inner:
            yield from _choices(one, words)
    elif get_origin(hint) is Literal:
        yield hint, words or f"one of {', '.join(inner)}"
    else:
        yield hint, words or _WORDS.get(get_origin(hint) or hint, "nothing")


def _fits(value: Any, hint: Any) -> bool:
    try:
        msgspec.convert(value, hint)
    except msgspec.ValidationError:
        return False
    return hint is Any or not isinstance(value, float) or math.isfinite(value)
