"""Objects that change, and that threads may share: their calls take turns."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

from credo.core.forks import require_threads

__all__ = ["Turns", "in_turn"]

M = TypeVar("M", bound=Callable[..., Any])
"""A method."""


class Turns:
    """A lock that one thread may take several times; a copy, or what a pickle gives back, has its own."""

    __slots__ = ("lock",)

    def __init__(self) -> None:
        # taken again by the same thread where one such method calls another
        self.lock = threading.RLock()

    def __reduce__(self) -> tuple[type[Turns], tuple[()]]:
        return Turns, ()


def in_turn(method: M) -> M:
    """A method whose calls on one object, and those of its other such methods, take turns by its `_turns`."""

    @functools.wraps(method)
    def taking_turns(self: Any, *args: Any, **kwargs: Any) -> Any:
        require_threads()  # before the lock, which another thread of the parent may have had
        with self._turns.lock:
            return method(self, *args, **kwargs)

    return cast(M, taking_turns)
