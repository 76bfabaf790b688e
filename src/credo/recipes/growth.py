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
    """How many classes a network has room for.

    Arguments:
        first: how many classes the first rows showed; 0 where the classes are fixed.
        classes: how many there are now.

    Example:
        >>> [slots(3, classes) for classes in (3, 4, 7, 8, 12)], slots(0, 5)
        ([3, 7, 7, 11, 16], 5)
    """
    room = first or classes
    while room < classes:
        room += max(_AT_LEAST, room // 2)
    return room
