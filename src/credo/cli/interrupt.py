"""Ctrl-C, which finishes the current chunk before it stops, so that the saved state is between two rows."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TypeAlias

__all__ = ["Interruptible"]

_Handler: TypeAlias = Callable[[int, FrameType | None], object] | int | None


class Interruptible:
    """A context in which the first Ctrl-C sets `stopped` while rows are learned, and raises while waiting.

    Set `busy` while the state is between two rows and must not be torn; a second Ctrl-C raises in any case.
    """

    def __init__(self) -> None:
        self.busy = False
        self.stopped = False
        self.before: _Handler = None

    def __enter__(self) -> Interruptible:
        if threading.current_thread() is threading.main_thread():
            self.before = signal.signal(signal.SIGINT, self._stop)
        return self

    def __exit__(self, *error: object) -> None:
        if self.before is not None:
            signal.signal(signal.SIGINT, self.before)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self.stopped or not self.busy:
            self.stopped = True
            raise KeyboardInterrupt
        self.stopped = True
        print(
            "\ncredo: stopping after the rows at hand; press Ctrl-C again to stop at once.",
            file=sys.stderr,
            flush=True,
        )
