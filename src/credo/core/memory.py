"""Memory that a process no longer needs, and goes back to the system."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

__all__ = ["give_back"]


def give_back() -> None:
    """Give the system what was freed and is kept for later, such as 80 MB after a program was compiled.

    Only the C library of GNU keeps so much, and has a function for it; with another one nothing happens.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@functools.cache
def _trim() -> Callable[[int], int] | None:
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    return trim
