"""A file of lines that are appended as things happen, from which they can be done again after a crash."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict

from credo.core.errors import DataError

__all__ = ["Journal", "Mark"]

SEEN = 4096
"""How many bytes before a place tell that a file is the one that had them."""


class Mark(TypedDict):
    """A place in a journal: how many bytes lie before it, and the SHA-256 of the last of them."""

    at: int
    digest: str


class Journal:
    """Appends lines to a file, which is begun where it is missing. What `append` returned from outlives the
    process, even one that is killed. `what` names the file in refusals, which are DataErrors.
    """

    def __init__(self, path: str | os.PathLike[str], what: str) -> None:
        self.path, self.what = Path(path), what
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115  # open until `close`
            if self._file.tell() and self._read(self._file.tell() - 1) != b"\n":
                self._file.write(b"\n")  # a crash left it within a line
        except OSError as error:
            raise self._refusal(error) from None

    def _refusal(self, error: OSError) -> DataError:
        return DataError(
            f"cannot write the {self.what} {self.path}: {error.strerror or error}.", field=self.what
        )

    def _read(self, start: int, stop: int | None = None) -> bytes:
        with open(self.path, "rb") as file:
            file.seek(start)
            return file.read() if stop is None else file.read(stop - start)

    def append(self, lines: Sequence[bytes]) -> None:
        """Write lines, all of them or none, by one call of the system."""
        data = b"".join(line + b"\n" for line in lines)
        try:
            before = self._file.tell()
            if self._file.write(data) != len(data):
                with contextlib.suppress(OSError):
                    self._file.truncate(before)
                raise OSError("only a part could be written")
        except OSError as error:
            raise self._refusal(error) from None

    def mark(self) -> Mark:
        """The place after the latest line."""
        return self._mark_at(self._file.tell())

    def _mark_at(self, at: int) -> Mark:
        return Mark(at=at, digest=hashlib.sha256(self._read(max(0, at - SEEN), at)).hexdigest())

    def holds(self, mark: Mark) -> bool:
        """Whether a place is one of this file, and not of another file of the same name."""
        return mark["at"] <= self._file.tell() and self._mark_at(mark["at"]) == mark

    def since(self, mark: Mark | None) -> Iterator[bytes]:
        """The lines after a place, or all of them, without their ends; empty ones are left out."""
        with open(self.path, "rb") as file:
            file.seek(0 if mark is None else mark["at"])
            for line in file:
                if line.strip():
                    yield line.rstrip(b"\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
