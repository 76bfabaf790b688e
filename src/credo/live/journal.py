"""A file of lines that are appended as things happen, from which they can be done again after a crash."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict

from credo.core import locking
from credo.core.errors import DataError

__all__ = ["Journal", "Mark"]

SEEN = 4096
"""The number of bytes before a place which tell that a file is the one that had them."""


class Mark(TypedDict):
    """A place in a journal: how many bytes lie before it, and the SHA-256 of the last of them."""

    at: int
    digest: str


class Journal:
    """Appends lines to a file, which is begun if it is missing and locked until it is closed.

    A line that `append` wrote outlives the process; once `sync` returned it is on the disk and outlives the
    machine. `what` names the file in refusals, which are DataErrors.
    """

    def __init__(self, path: str | os.PathLike[str], what: str) -> None:
        self.path = Path(path)
        self.what = what
        # two locks, so that lines are written while others are flushed; the next flush takes many at once
        self._writing = threading.Lock()
        self._flushing = threading.Lock()
        self._waits = False
        self._failure = ""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115  # open until `close`
            self._claim()
            if self._file.tell() and self._read(self._file.tell() - 1) != b"\n":
                self._file.write(b"\n")  # a crash left it within a line
            # the content first, then the name: a name without its content would be an empty journal
            _flush(self._file.fileno())
            _flush_folder(self.path.parent)
            self._durable = self._file.tell()
        except OSError as error:
            raise self._refusal(error) from None

    def _claim(self) -> None:
        """Keep every other writer away until `close`, or until this process ends.

        The lines of two writers would alternate, and neither could be done again from such a file. A device,
        such as /dev/null, belongs to all of the machine, and is not locked.
        """
        number = self._file.fileno()
        if not stat.S_ISREG(os.fstat(number).st_mode) or locking.lock_open(number):
            return
        self._file.close()
        raise DataError(
            f"another one writes the {self.what} {self.path} just now, in this process or in another: close "
            f"it first, or give this one a {self.what} of its own.",
            field=self.what,
        )

    def _refusal(self, error: OSError) -> DataError:
        return DataError(
            f"cannot write the {self.what} {self.path}: {error.strerror or error}.", field=self.what
        )

    def _read(self, start: int, stop: int | None = None) -> bytes:
        with open(self.path, "rb") as file:
            file.seek(start)
            if stop is None:
                return file.read()
            return file.read(stop - start)

    def append(self, lines: Sequence[bytes]) -> None:
        """Write lines, all of them or none, by one call of the system."""
        data = b"".join(line + b"\n" for line in lines)
        with self._writing:
            self._require_sound()
            try:
                before = self._file.tell()
                if self._file.write(data) != len(data):
                    with contextlib.suppress(OSError):
                        self._file.truncate(before)
                        self._file.seek(before)
                    raise OSError("only a part could be written")
            except OSError as error:
                raise self._refusal(error) from None

    def sync(self) -> None:
        """Return once all lines so far are on the disk. Threads that wait at the same time share one flush.

        If the disk fails nobody knows what is on it, so that all later calls are refused.
        """
        if self._waits:
            return
        end = self._file.tell()
        with self._flushing:
            self._require_sound()
            if self._durable >= end:
                return
            # asked again under the lock: what came while this thread waited is flushed with it
            end = self._file.tell()
            try:
                _flush(self._file.fileno())
            except OSError as error:
                self._failure = error.strerror or str(error)
                raise self._refusal(error) from None
            self._durable = end

    def _require_sound(self) -> None:
        if self._failure:
            raise DataError(
                f"cannot write the {self.what} {self.path}: an earlier flush failed ({self._failure}), so "
                "that nobody knows what is on the disk.",
                field=self.what,
            )

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """A context in which `sync` waits for the end, where one flush takes all lines; for one thread."""
        self._waits = True
        try:
            yield
        finally:
            self._waits = False
        self.sync()

    @property
    def empty(self) -> bool:
        """Whether there is no line yet."""
        return self._file.tell() == 0

    def mark(self) -> Mark:
        """The place after the latest line."""
        return self._mark_at(self._file.tell())

    def _mark_at(self, at: int) -> Mark:
        return Mark(at=at, digest=hashlib.sha256(self._read(max(0, at - SEEN), at)).hexdigest())

    def holds(self, mark: Mark) -> bool:
        """Whether a place is one of this file, and not of another file of the same name."""
        return mark["at"] <= self._file.tell() and self._mark_at(mark["at"]) == mark

    def since(self, mark: Mark | None) -> Iterator[tuple[int, bytes]]:
        """The lines after a place, or all of them, without their ends, and where each ends; empty ones are
        left out.
        """
        at = 0 if mark is None else mark["at"]
        with open(self.path, "rb") as file:
            file.seek(at)
            for line in file:
                at += len(line)
                if line.strip():
                    yield at, line.rstrip(b"\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _flush(file: int) -> None:
    """Bring a file to the disk, if it is on one: a device or some network drives know no such thing."""
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise


def _flush_folder(path: Path) -> None:
    """See to it that the name of a new file is on the disk, where the system can."""
    if os.name == "posix":
        folder = os.open(path, os.O_RDONLY)
        try:
            _flush(folder)
        finally:
            os.close(folder)
