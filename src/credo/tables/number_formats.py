"""Numbers as people write them: decimal points and commas, marks between thousands, signs of currencies."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, TypeAlias

__all__ = ["Mark", "decimal_mark", "decorated", "join_plain", "plain"]

Mark: TypeAlias = Literal[".", ","]
"""The decimal mark of a column."""

_SIGNS = r"(?P<before>[-+])? ?[$€£¥₹]? ?(?P<after>[-+])?(?P<digits>{digits}) ?[%$€£¥₹]?"
_FORMS: dict[Mark, re.Pattern[str]] = {
    ".": re.compile(_SIGNS.format(digits=r"(?:[1-9]\d{0,2}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+")),
    ",": re.compile(
        _SIGNS.format(
            digits=r"(?:[1-9]\d{0,2}(?:[. '\u2019\u00a0\u202f]\d{3})+|\d+)(?:,\d*)?(?:[eE][-+]?\d+)?|,\d+"
        )
    ),
}
_PLAIN: dict[Mark, dict[int, int | None]] = {
    ".": str.maketrans("", "", ", $€£¥₹%"),
    ",": str.maketrans(",", ".", ". '\u2019\u00a0\u202f$€£¥₹%"),
}


def decorated(text: str, mark: Mark) -> float | None:
    """The number of a text with this decimal mark, with marks between thousands, or signs of a currency or of
    percent; None if it is none.
    """
    match = _FORMS[mark].fullmatch(text.strip())
    if match is None:
        return None
    return float(f"{match['before'] or match['after'] or ''}{plain(match['digits'], mark)}")


def plain(digits: str, mark: Mark) -> str:
    """Digits with this decimal mark, as Python writes them."""
    return digits.translate(_PLAIN[mark])


def join_plain(texts: list[str], mark: Mark) -> list[float] | None:
    """The numbers of texts that are all written so, at less cost than one by one; None if some is not."""
    if not all(map(_FORMS[mark].fullmatch, texts)):
        return None
    try:
        return list(map(float, plain("\n".join(texts), mark).split("\n")))
    except ValueError:  # a blank behind a sign, or two signs
        return None


def _reads(text: str, mark: Mark) -> bool:
    """Whether a text is a number with this decimal mark."""
    if mark == ".":
        try:
            float(text)
        except ValueError:
            pass
        else:
            return True
    return _FORMS[mark].fullmatch(text.strip()) is not None


def decimal_mark(cells: Iterable[object], semicolons: bool) -> tuple[Mark, str, str]:
    """The decimal mark of the texts of a column, with an example of a number that is one with a comma only,
    and one with a point only; both are there where the column mixes them, and most decide.

    1,234 and 1.234 may be numbers with either. The rest of the column decides, or if it does not, that cells
    are parted by `semicolons`, which is done where the comma is the decimal mark; otherwise it is the point.
    """
    commas = list[str]()
    points = list[str]()
    either = False
    for cell in cells:
        if isinstance(cell, str) and ("," in cell or "." in cell):
            comma = _reads(cell, ",")
            point = _reads(cell, ".")
            either |= comma and point and "," in cell
            if comma != point:
                (commas if comma else points).append(cell)
    mark: Mark = "," if len(commas) > len(points) or (semicolons and either and not points) else "."
    return mark, commas[0] if commas else "", points[0] if points else ""
