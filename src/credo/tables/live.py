"""Rows that are handed on as they come, from pipes whose reading can be ended, or that are prepared ahead."""

from __future__ import annotations

import io
import os
import queue
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

__all__ = ["LiveText", "Pipe", "is_prompt", "open_pipe", "read_ahead", "until_idle"]

T = TypeVar("T")
"""The type of the items."""

_BLOCK = 1 << 16
_AHEAD = 16
_LONGEST = 1 << 20
_TICK = 0.5


class Pipe(io.RawIOBase):
    """The bytes of a pipe, handed on in whole lines. At first it is `patient`: a chunk ends only where
    `least` rows have come and `patience` (seconds) is over, which makes it `slow`; then if no line is
    waiting. `on_wait` is called about twice a second while nothing comes; `taken` and `given` count lines.
    """

    def __init__(self, file: int, name: str, *, patience: float = 5.0, least: int = 20) -> None:
        self.name = name
        self.least = least
        self.patience = patience
        self.on_wait: Callable[[], None] = lambda: None
        self.taken = self.given = 0
        self.slow = self.ended = False
        self._file = file
        self._deadline = time.monotonic() + patience
        self.patient = True
        # a thread reads ahead, since a read cannot be interrupted; the queue is all that both threads touch
        self._blocks: queue.SimpleQueue[bytes | OSError | None] = queue.SimpleQueue()
        # the reader may be so many blocks ahead and no more: a pipe can be faster than a learner for hours
        self._room = threading.BoundedSemaphore(_AHEAD)
        self._ready: bytes | None = None
        threading.Thread(target=self._fill, daemon=True, name="credo-pipe").start()

    def _fill(self) -> None:
        """Read blocks, cut after their last whole line, until the pipe ends."""
        rest = b""
        while True:
            self._room.acquire()
            try:
                block = os.read(self._file, _BLOCK)
            except OSError as error:
                self._blocks.put(error)
                return
            rest += block
            cut = len(rest) if not block or len(rest) > _LONGEST else rest.rfind(b"\n") + 1
            if cut:
                self._blocks.put(rest[:cut])
                rest = rest[cut:]
            else:
                self._room.release()
            if not block:
                self._blocks.put(None)
                return

    def readable(self) -> bool:
        """True: it can be read."""
        return True

    def end(self) -> None:
        """End the pipe after the lines that were handed on; a signal handler may call this."""
        self.ended = True
        self._blocks.put(None)

    def gather(self) -> None:
        """Be patient for another time, since the rows so far were too few."""
        self.patient = True
        self.slow = False
        self._deadline = time.monotonic() + self.patience

    def prompt(self) -> None:
        """Be patient no longer."""
        self.patient = False

    def _waiting(self, seconds: float) -> bool:
        """Whether a block, or the end, is there after at most so many seconds."""
        if self._ready is None and not self.ended:
            try:
                block = self._blocks.get(timeout=seconds) if seconds > 0 else self._blocks.get_nowait()
            except queue.Empty:
                return False
            if isinstance(block, OSError):
                raise block
            if block is None:
                self.ended = True
            else:
                self._room.release()
                self._ready = block
        return True

    def read1(self, size: int = -1) -> bytes:
        """The next bytes, as soon as there are any; empty at the end."""
        while not self._waiting(_TICK):
            self.on_wait()
        data = self._ready or b""
        if 0 <= size < len(data):
            self._ready = data[size:]
            data = data[:size]
        else:
            self._ready = None
        self.given += data.count(b"\n")
        return data

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with the next bytes, and return their number: 0 at the end."""
        data = self.read1(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def idle(self) -> bool:
        """Whether a chunk should end here: all lines were taken, and no further one is there."""
        if self.taken < self.given:
            return False
        while self.patient:
            left = self._deadline - time.monotonic()
            enough = self.taken > self.least
            if self._waiting(min(_TICK, max(left, 0.0) if enough else _TICK)):
                return self._ready is None
            self.on_wait()
            if enough and left <= 0:
                self.patient = False
                self.slow = True
        return not self._waiting(0.0) or self._ready is None


class LiveText(io.TextIOWrapper):
    """The text of a pipe, whose lines are counted."""

    pipe: Pipe

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]  # as in TextIOWrapper
        """The next line; iteration calls this, too."""
        line = super().readline(size)
        self.pipe.taken += bool(line)
        return line


def until_idle(items: Iterable[T], text: io.TextIOWrapper) -> Iterator[T]:
    """The items read from a text, up to the first one after which a pipe has no further line to give."""
    if isinstance(text, LiveText):
        return _until_idle(items, text.pipe)
    return iter(items)


def _until_idle(items: Iterable[T], pipe: Pipe) -> Iterator[T]:
    for item in items:
        yield item
        if pipe.idle():
            return


def is_prompt(text: io.TextIOWrapper) -> bool:
    """Whether the text is that of a pipe whose rows come as they are."""
    return isinstance(text, LiveText) and not text.pipe.patient


def open_pipe(path: str) -> Pipe | None:
    """The pipe, where a path ("-" for standard input) is one, and not a file that can be read twice."""
    try:
        if path == "-":
            file = sys.stdin.fileno()
            regular = sys.stdin.seekable()
        else:
            regular = not stat.S_ISFIFO(os.stat(path).st_mode)
            file = -1 if regular else os.open(path, os.O_RDONLY)
    except (OSError, ValueError, AttributeError):
        return None
    if regular:
        return None
    return Pipe(file, "standard input" if path == "-" else path)


def read_ahead(
    items: Iterable[T], prepare: Callable[[T], T] = lambda item: item, depth: int = 2
) -> Iterator[T]:
    """The items in order, of which a thread has at most `depth` ready after `prepare`. What reading raises is
    raised here, after the items before it; waiting can be interrupted.
    """
    ready: queue.SimpleQueue[tuple[T | None, BaseException | None, bool]] = queue.SimpleQueue()
    room = threading.Semaphore(depth)
    # `finally` sets this before it makes room, so that a reader who waits for room sees it and ends
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
