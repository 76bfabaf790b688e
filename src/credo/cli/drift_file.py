"""`drift.csv`: what was reported about changes, row by row."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TextIO

import numpy as np

from credo.core.errors import DataError
from credo.core.files import write_atomically
from credo.sessions import ChangeTally, Steps

__all__ = ["DriftFile"]


class DriftFile:
    """The file, as a context. A resumed run takes the rows so far from the file beside its belief."""

    def __init__(self, path: Path, tally: ChangeTally | None, row: int, resumed: Path | None = None) -> None:
        self.path = path
        self.tally = tally
        self.row = row
        self.resumed = resumed
        self.file: TextIO | None = None

    def __enter__(self) -> DriftFile:
        if self.tally is not None:
            heads = ["row", "line"]
            if self.tally.kind == "mixture":
                heads += self.tally.experts
            else:
                heads += ["change", "run_length", "likeliest_run_length", "alarm"]
            try:
                before = self._before(heads)
                write_atomically(self.path, before.encode())
                self.file = self.path.open("a", newline="")
            except OSError as error:
                raise self._refusal(error) from None
            if not before:
                self._write([heads])
        return self

    def _before(self, heads: list[str]) -> str:
        """The lines up to the place from which the run goes on; empty if they are not there."""
        beside = None if self.resumed is None else self.resumed.parent / self.path.name
        if beside is None or not beside.is_file():
            return ""
        lines = beside.read_text().splitlines(keepends=True)[: self.row + 1]
        whole = [f"{number}," for number in range(1, self.row + 1)]
        if len(lines) <= self.row or lines[0] != ",".join(heads) + "\n" or not lines[-1].endswith("\n"):
            return ""
        if all(map(str.startswith, lines[1:], whole)):
            return "".join(lines)
        return ""

    def flush(self) -> None:
        """Bring what was written to the disk."""
        if self.file is not None:
            self.file.flush()
            os.fsync(self.file.fileno())

    def __exit__(self, *error: object) -> None:
        if self.file is not None:
            self.file.close()

    def add(self, lines: np.ndarray, steps: Steps | None) -> None:
        """Write the rows that came from these lines."""
        if steps is None or self.tally is None:
            return
        rows = self.row + 1 + np.arange(len(lines))
        self.row += len(lines)
        cells = _weights(steps) if self.tally.kind == "mixture" else _run_lengths(steps)
        self._write([int(row), int(line), *rest] for row, line, rest in zip(rows, lines, cells, strict=True))

    def _write(self, rows: Iterable[Sequence[object]]) -> None:
        assert self.file is not None
        try:
            csv.writer(self.file, lineterminator="\n").writerows(rows)
        except OSError as error:
            raise self._refusal(error) from None

    def _refusal(self, error: OSError) -> DataError:
        return DataError(f"cannot write {self.path.name}: {(error.strerror or str(error)).lower()}.")


def _weights(steps: Steps) -> list[list[str]]:
    return [[f"{share:.6g}" for share in shares] for shares in np.asarray(steps.probs)]


def _run_lengths(steps: Steps) -> list[list[str]]:
    probs = np.asarray(steps.probs)
    lengths = np.maximum(np.asarray(steps.lengths), 0)
    expected = (probs * lengths).sum(axis=1)
    likeliest = lengths[np.arange(len(lengths)), probs.argmax(axis=1)]
    columns = (np.asarray(steps.change), expected, likeliest, np.asarray(steps.alarm))
    return [
        [f"{change:.6g}", f"{mean:.6g}", str(int(top)), str(int(alarm))]
        for change, mean, top, alarm in zip(*columns, strict=True)
    ]
