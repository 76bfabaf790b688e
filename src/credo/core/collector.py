"""Python's collector of garbage, and work that is better done without it."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

__all__ = ["without_collector"]


class _Pause:
    """The number of threads that want no collection, and whether there were collections before the first."""

    def __init__(self) -> None:
        # the collector is one for all threads: the first that wants none stops it, and the last starts it
        self.lock = threading.Lock()
        self.count = 0
        self.usual = True


_pause = _Pause()


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Work without collections of garbage, as a trace of a large program, whose objects are all in use.

    The collector looks through all of them again and again, which is a fifth of the time of a trace. What is
    not part of a circle is freed as always.
    """
    with _pause.lock:
        if not _pause.count:
            _pause.usual = gc.isenabled()
            gc.disable()
        _pause.count += 1
    try:
        yield
    finally:
        with _pause.lock:
            _pause.count -= 1
            if not _pause.count and _pause.usual:
                gc.enable()
