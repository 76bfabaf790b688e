"""The inbox of a thread, which takes things in their order, until the end."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

__all__ = ["Inbox"]

T = TypeVar("T")


class Inbox(Generic[T]):
    """Things for one thread, which others put in. `turn` is the lock under which both happen, and `size` says
    how much a thing is. While the thread waits, another one may `borrow` its work.
    """

    def __init__(self, size: Callable[[T], int] = lambda thing: 1) -> None:
        self._size = size
        # one lock for both: whether the thread waits, and whether anything is left, change together
        lock = threading.RLock()
        self.turn = threading.Condition(lock)
        self._empty = threading.Condition(lock)
        self.ending = False
        self._waiting = self._lent = self._late = False
        self._things: deque[T] = deque()

    def __len__(self) -> int:
        return len(self._things)

    def put(self, things: Iterable[T]) -> None:
        """Add things, which wait for their turn."""
        with self.turn:
            self._things.extend(things)
            self.turn.notify()

    def end(self) -> None:
        """End the thread, once it has taken what waits."""
        with self.turn:
            self.ending = True
            self.turn.notify()

    def take(self, seconds: float | None, most: int | None = None) -> list[T] | None:
        """Take what waits, at most so much unless the first thing is more; nothing if nothing came within so
        many seconds, and None at the end.
        """
        with self.turn:
            self._waiting = True
            if not self._things and not self.ending:
                self.turn.wait(seconds)
            # another thread does this one's work: to take things now would be to do them out of their order
            while self._lent:
                self._late = True
                self.turn.wait()
            self._waiting = self._late = False
            taken = list[T]()
            size = 0
            while self._things:
                size += self._size(self._things[0])
                if most is not None and taken and size > most:
                    break
                taken.append(self._things.popleft())
            if not self._things:
                self._empty.notify_all()
            if self.ending and not taken:
                return None
            return taken

    def wait_until_empty(self, seconds: float) -> None:
        """Wait until the thread has taken all that was put in, at most so long."""
        with self.turn:
            if self._things:
                self._empty.wait(seconds)

    def borrow(self) -> bool:
        """Whether the thread waits and has nothing to do. Then it takes nothing until `give_back`, and the
        caller may do what it would do.
        """
        with self.turn:
            free = self._waiting and not (self._things or self.ending or self._lent)
            self._lent = self._lent or free
            return free

    def give_back(self) -> None:
        """Resume the thread after `borrow`."""
        with self.turn:
            self._lent = False
            if self._late or self._things or self.ending:
                self.turn.notify()
