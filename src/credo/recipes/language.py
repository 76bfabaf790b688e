"""The small language in which settings are written: NAME, or NAME:PART,PART,..."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from credo.core.errors import CredoError, suggest

__all__ = ["choose", "numbers", "split"]

Name = TypeVar("Name", bound=str)
Number = TypeVar("Number", int, float)


def split(text: str) -> tuple[str, str]:
    """Split NAME or NAME:REST, "Low_Rank:10" as "low-rank", "10". Capitals and underscores do not matter."""
    name, _, rest = text.strip().lower().partition(":")
    return name.replace("_", "-"), rest


def choose(setting: str, text: str, name: str, allowed: Sequence[Name], forms: str) -> Name:
    """The name in the text of a setting; a CredoError shows the `forms` if it is none of those allowed."""
    for choice in allowed:
        if choice == name:
            return choice
    raise CredoError.must_be(setting, forms, text, suggest(name, allowed))


def numbers(
    setting: str, text: str, parts: Sequence[str], read: Callable[[str], Number], forms: str
) -> tuple[Number, ...]:
    """The numbers in the text of a setting; a CredoError shows the `forms` if a part is none."""
    try:
        return tuple(read(part) for part in parts)
    except ValueError:
        raise CredoError.must_be(setting, forms, text) from None
