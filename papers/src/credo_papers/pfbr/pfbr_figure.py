"""The look of a method in every figure of these experiments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from credo.plots import PALETTE
from credo_papers.pfbr.pfbr_methods import METHODS

__all__ = ["LineStyle", "style_of"]

_COLOURS = ("blue", "orange", "green", "pink", "sky", "amber", "grey")
_LINES = ("-", "--", ":", "-.")


class LineStyle(TypedDict):
    """Settings of a line."""

    color: str
    linestyle: str
    linewidth: float


def style_of(name: str, names: Sequence[str] = tuple(METHODS)) -> LineStyle:
    """Return the line of a method: exact draws are black, and the others differ in colour or dashes.

    Arguments:
        name: the name of the method.
        names: the names of all methods that may be in the figure.
    """
    if name == "exact draws":
        return {"color": PALETTE["ink"], "linestyle": "-", "linewidth": 2.0}
    if name not in names:
        return {
            "color": PALETTE["grey"],
            "linestyle": "-" if name.endswith("refitted") else ":",
            "linewidth": 2.0,
        }
    place = names.index(name)
    colour = PALETTE[_COLOURS[place % len(_COLOURS)]]
    return {"color": colour, "linestyle": _LINES[place // len(_COLOURS) % len(_LINES)], "linewidth": 1.5}
