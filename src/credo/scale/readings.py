"""The record of what a run has read of a topic, in its folder, so that its lines are the same ones again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from credo.core.errors import DataError
from credo.core.files import write_atomically

__all__ = ["Part", "Reading", "Readings"]


class Part(NamedTuple):
    """Consecutive messages of a partition: the offsets from `first` to before `end`, `messages` of them."""

    partition: int
    first: int
    end: int
    messages: int


class Reading(NamedTuple):
    """Messages that were read together, and the last line before them."""

    line: int
    parts: tuple[Part, ...]

    @property
    def last(self) -> int:
        """The line of the last of them."""
        return self.line + sum(part.messages for part in self.parts)


class Readings:
    """The readings of a run, in its folder. One is on the disk before its rows are learned: the brokers give
    messages of several partitions in another order each time, and lines must be the same ones again.

    Arguments:
        folder: the folder of the run.
        line: the line up to which it has learned; what was read up to there is cut down to where partitions
            go on.

    Attributes:
        again: the readings of which rows are to be learned again.
        line: the last line of all readings.
        ends: the offset at which each partition goes on.
    """

    def __init__(self, folder: Path, line: int) -> None:
        self._path = folder / "kafka.jsonl"
        found = list(self._read())
        done = [one for one in found if one.last <= line]
        self.again = found[len(done) :]
        self.line = found[-1].last if found else 0
        self.ends = _ends(found)
        if done:  # and the end of the file may be torn
            start = Reading(done[-1].last, tuple(Part(at, end, end, 0) for at, end in _ends(done).items()))
            write_atomically(self._path, "".join(map(_line, (start, *self.again))).encode())

    def note(self, parts: Sequence[Part]) -> None:
        """Write what is read next to the disk."""
        reading = Reading(self.line, tuple(parts))
        try:
            with self._path.open("ab") as file:
                file.write(_line(reading).encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise DataError(f"cannot write {self._path}: {error.strerror or error}.") from None
        self.line = reading.last
        self.ends |= _ends([reading])

    def _read(self) -> Iterator[Reading]:
        if not self._path.exists():
            return
        for line in self._path.read_bytes().split(b"\n")[:-1]:  # the last one may be torn, and has no rows
            found = json.loads(line)
            yield Reading(found["line"], tuple(Part(*part) for part in found["parts"]))


def _line(reading: Reading) -> str:
    return json.dumps({"line": reading.line, "parts": reading.parts}) + "\n"


def _ends(readings: Iterable[Reading]) -> dict[int, int]:
    return {part.partition: part.end for reading in readings for part in reading.parts}
