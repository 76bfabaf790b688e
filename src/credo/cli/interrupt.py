"""Ctrl-C and other requests to stop, which let the rows at hand be learned and everything be saved."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TypeAlias

from credo.tables.live import Pipe

__all__ = ["Interruptible"]

_Handler: TypeAlias = Callable[[int, FrameType | None], object] | int | None

_OTHERS = ("SIGTERM", "SIGHUP")


class Interruptible:
    """A context in which the first Ctrl-C, SIGTERM or SIGHUP asks to stop, and a second one stops at once.

    Set `busy` while the state is between two rows and must not be torn: the first request then only sets
    `stopped`. Otherwise it raises KeyboardInterrupt, unless rows come from a `pipe`, which is ended instead,
    so that the rows at hand are still learned. `rest` says what is still done then; the exit `status` of a
    run that was stopped is 128 and the number of the signal.
    """

    def __init__(self, rest: str = "rows") -> None:
        self.rest = rest
        self.busy = False
        self.stopped = False
        self.pipe: Pipe | None = None
        self.status = 128 + signal.SIGINT
        self._before: dict[int, _Handler] = {}

    def __enter__(self) -> Interruptible:
        if threading.current_thread() is threading.main_thread():
            others = [getattr(signal, name) for name in _OTHERS if hasattr(signal, name)]
            # a signal that was to be ignored (nohup) is still ignored
            for number in (
                signal.SIGINT,
                *(one for one in others if signal.getsignal(one) != signal.SIG_IGN),
            ):
                self._before[number] = signal.signal(number, self._stop)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def stop_quietly(self) -> None:
        """Stop without a failure, since nobody reads the output any more."""
        self.stopped = True
        self.status = 0
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def _stop(self, number: int, frame: FrameType | None) -> None:
        again = self.stopped
        self.stopped = True
        self.status = 128 + number
        if again or not (self.busy or self.pipe is not None):
            raise KeyboardInterrupt
        if self.pipe is not None:
            self.pipe.end()
        print(
            f"\ncredo: stopping after the {self.rest} at hand; press Ctrl-C again to stop at once.",
            file=sys.stderr,
            flush=True,
        )
