"""Items that a thread prepares while earlier ones are worked on."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

__all__ = ["read_ahead"]

T = TypeVar("T")
"""What is iterated over."""


def read_ahead(
    items: Iterable[T], prepare: Callable[[T], T] = lambda item: item, depth: int = 2
) -> Iterator[T]:
    """The items in order, of which a thread has at most `depth` ready after `prepare`. What reading raises is
    raised here, after the items before it; waiting can be interrupted.
    """
    ready: queue.SimpleQueue[tuple[T | None, BaseException | None, bool]] = queue.SimpleQueue()
    room = threading.Semaphore(depth)
    ended = threading.Event()

    def fill() -> None:
        try:
            for item in items:
                prepared = prepare(item)
                room.acquire()
                if ended.is_set():
                    return
                ready.put((prepared, None, False))
        except BaseException as error:
            ready.put((None, error, True))
        else:
            ready.put((None, None, True))

    threading.Thread(target=fill, daemon=True, name="credo-ahead").start()
    try:
        while True:
            item, error, last = ready.get()
            if error is not None:
                raise error
            if last or item is None:
                return
            room.release()
            yield item
    finally:
        ended.set()
        room.release()
