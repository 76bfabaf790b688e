"""Room for classes that the first rows did not show.

Outputs are added several at a time, so that a program is compiled anew for few classes; those that no class
has taken have no probability (`OpenCategorical`), and begin at the prior. All that was learned stays, and a
stream without new classes has the results that it would have without any of this.
"""

from __future__ import annotations

__all__ = ["slots"]

_AT_LEAST = 4
"""The least number of outputs that are added at a time."""


def slots(first: int, classes: int) -> int:
    """How many classes there is room for, of which the first rows showed `first`, 0 where they are fixed."""
    room = first or classes
    while room < classes:
        room += max(_AT_LEAST, room // 2)
    return room
