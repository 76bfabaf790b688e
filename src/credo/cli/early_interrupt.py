"""Ctrl-C while modules are imported: nothing was begun yet, so the program ends at once.

An exception raised there may come up in a callback of the import system, which ignores it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

__all__ = ["starting"]


@contextlib.contextmanager
def starting() -> Iterator[None]:
    """End the program at the first Ctrl-C within this context."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _leave(number: int, frame: FrameType | None) -> None:
    os.write(2, b"credo: interrupted; nothing was written.\n")
    os._exit(128 + number)
