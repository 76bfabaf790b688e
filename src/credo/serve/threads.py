"""Threads of a service, none of which may end unnoticed, and what waits for them."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

__all__ = ["Inbox", "Worker"]

T = TypeVar("T")


def _nobody(name: str, error: BaseException) -> None:
    """Tell nobody, before a service has said whom to tell."""


class Worker(threading.Thread):
    """A thread that works until it is told to end.

    If it ends in another way, requests would wait for ever for what it does. So `failed` is called, with its
    name and what ended it, and the service stops: what was acknowledged is in the journal, and comes back at
    the next start.

    Arguments:
        name: the name of the thread.

    Attributes:
        failed: what is called, in this thread, if it ends before it was told to.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.failed: Callable[[str, BaseException], None] = _nobody

    @abstractmethod
    def work(self) -> None:
        """Work until the end."""

    def run(self) -> None:
        """Work, and say if that failed."""
        try:
            self.work()
        except BaseException as error:
            self.failed(self.name, error)


class Inbox(Generic[T]):
    """Things for one thread, which others put in, and which it takes in their order, until the end.

    `turn` is the lock under which both happen, and `size` says how much a thing is. `busy` is held from
    before things are taken until they are done: by the thread, or by one that borrows its work.
    """

    def __init__(self, size: Callable[[T], int] = lambda thing: 1) -> None:
        self._size = size
        # one lock for both: that something came, and that nothing is left
        lock = threading.RLock()
        self.turn = threading.Condition(lock)
        self._empty = threading.Condition(lock)
        self.busy = threading.Lock()
        self.ending = False
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

    def run(self, do: Callable[[list[T]], None], seconds: float, most: int | None = None) -> None:
        """Do what waits, at most so much at once unless the first thing is more, until the end; and nothing
        where nothing came within so many seconds.
        """
        while True:
            with self.turn:
                if not self._things and not self.ending:
                    self.turn.wait(seconds)
            # only then may things be taken: another thread that does this one's work was there before them
            self.busy.acquire()
            things = self.take(most)
            if self.ending and not things:
                self.busy.release()
                return
            do(things)
            # not released by an error: nobody knows what is done then, and nobody may go on
            self.busy.release()

    def take(self, most: int | None = None) -> list[T]:
        """Take what waits, by one that holds `busy`."""
        with self.turn:
            taken = list[T]()
            size = 0
            while self._things:
                size += self._size(self._things[0])
                if most is not None and taken and size > most:
                    break
                taken.append(self._things.popleft())
            if not self._things:
                self._empty.notify_all()
            return taken

    def wait_until_empty(self, seconds: float) -> None:
        """Wait until the thread has taken all that was put in, at most so long."""
        with self.turn:
            if self._things:
                self._empty.wait(seconds)

    def borrow(self) -> bool:
        """Hold `busy`, to do what the thread would do, if it does nothing and nothing waits; whether that is
        so. It goes on when `busy` is released.
        """
        if not self.busy.acquire(blocking=False):
            return False
        if self._things or self.ending:
            self.busy.release()
            return False
        return True
