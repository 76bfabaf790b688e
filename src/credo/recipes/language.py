"""The small language in which settings are written: NAME, or NAME:PART,PART,..."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from credo.core.errors import CredoError, suggest

__all__ = ["choose", "split"]

Name = TypeVar("Name", bound=str)


def split(text: str) -> tuple[str, str]:
    """Split NAME or NAME:REST. Capitals and underscores do not matter.

    >>> split("low-rank:10"), split("Low_Rank")
    (('low-rank', '10'), ('low-rank', ''))
    """
    name, _, rest = text.strip().lower().partition(":")
    return name.replace("_", "-"), rest


def choose(setting: str, text: str, name: str, allowed: Sequence[Name], forms: str) -> Name:
    """The name among those that the language has.

    Arguments:
        setting: the setting, such as "drift".
        text: the text that was written.
        name: the name in that text.
        allowed: the allowed names.
        forms: how they are written, for the message.

    Raises:
        CredoError: the language has no such name.
    """
    for choice in allowed:
        if choice == name:
            return choice
    hint = suggest(name, allowed)
    tail = f" ({hint})." if hint else "."
    raise CredoError(f"{setting} must be {forms}; got {text!r}{tail}", field=setting)
