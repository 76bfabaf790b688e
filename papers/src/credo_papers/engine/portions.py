"""Progress functions, which are called with the share of an experiment that is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

__all__ = ["Progress", "portion", "silent"]

Progress: TypeAlias = Callable[[float, str], None]
"""A function that is called with the share of the work that is done, from 0 to 1, and what comes next."""


def silent(share: float, text: str) -> None:
    """A progress function that does nothing."""


def portion(progress: Progress, start: float, end: float, prefix: str = "") -> Progress:
    """Return a progress function for a part of the work: 0 to 1 of the part is `start` to `end` of the whole.

    Arguments:
        progress: the progress function of the whole.
        start, end: the share of the whole at the start and end of the part, from 0 to 1.
        prefix: the words before the text.

    Example:
        >>> portion(lambda share, text: print(f"{share:.2f}", text), 0.5, 1.0, "second: ")(0.5, "halfway")
        0.75 second: halfway
    """
    return lambda share, text: progress(start + (end - start) * share, prefix + text)
