"""Text of users, as it may be shown: its control characters are spelled, and never reach a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = ["aligned", "visible"]

_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""All but tabulators and line ends: what a terminal obeys, what turns the order of letters, and halves."""


def visible(text: str) -> str:
    r"""The text with its control characters as Python spells them.

    >>> visible("red \x1b[31m")
    'red \\x1b[31m'
    """
    if text.isprintable():
        return text
    return _CONTROL.sub(_spelled, text)


def _spelled(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def aligned(rows: Iterable[Sequence[str]], words: int) -> list[str]:
    """The lines of a table: the first `words` columns stand at the left, and the others, of numbers, right.

    >>> aligned([("name", "rows"), ("a", "10")], words=1)
    ['name  rows', 'a       10']
    """
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    places = [str.ljust] * words + [str.rjust] * (len(widths) - words)
    return [
        "  ".join(place(cell, width) for place, cell, width in zip(places, row, widths, strict=True)).rstrip()
        for row in table
    ]
