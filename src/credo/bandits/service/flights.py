"""Decisions on their way from the context that was taken in to their line in the log."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

__all__ = ["Flights"]


class Flights:
    """The threads that are between a context and its line; who must not find one there waits until all have
    landed, and lets none start. A thread never waits for itself, as in a handler of a signal.
    """

    def __init__(self, lock: threading.RLock) -> None:
        self._changed = threading.Condition(lock)
        self._flying: set[int] = set()
        self._holders: list[int] = []

    def start(self) -> None:
        """Begin a flight of this thread."""
        own = threading.get_ident()
        with self._changed:
            if self._holders:
                self._changed.wait_for(lambda: set(self._holders) <= {own})
            self._flying.add(own)

    def land(self) -> None:
        """End it."""
        with self._changed:
            self._flying.discard(threading.get_ident())
            if self._holders:  # who waits for the flights
                self._changed.notify_all()

    @contextlib.contextmanager
    def none(self) -> Iterator[None]:
        """A time in which no other thread flies."""
        own = threading.get_ident()
        with self._changed:
            self._holders.append(own)
            self._changed.wait_for(lambda: self._flying <= {own})
        try:
            yield
        finally:
            with self._changed:
                self._holders.remove(own)
                self._changed.notify_all()
