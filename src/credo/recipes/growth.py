"""Room for classes that the first rows did not show.

A new class gets an output of the network. Outputs are added several at a time, so that a program is compiled
anew for few of the classes; those that no class has taken yet have no probability (`OpenCategorical`). All
that was learned stays, and the parameters of the new outputs begin at the prior. So a stream without new
classes has the network, the belief and the results that it would have without any of this.
"""

from __future__ import annotations

__all__ = ["slots"]

_AT_LEAST = 4
"""The least number of outputs that are added at a time."""


def slots(first: int, classes: int) -> int:
    """How many classes a network has room for, of which the first rows showed `first`, 0 where they are
    fixed.
    """
    room = first or classes
    while room < classes:
        room += max(_AT_LEAST, room // 2)
    return room
