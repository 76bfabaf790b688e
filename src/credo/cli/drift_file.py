"""`drift.csv`: what was reported about changes, row by row."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TextIO

import numpy as np

from credo.core.errors import DataError
from credo.sessions import ChangeTally, Steps

__all__ = ["DriftFile"]


class DriftFile:
    """The file, as a context.

    Arguments:
        path: the file.
        tally: the tally of the drift; None writes nothing.
        row: how many rows were learned from before.
    """

    def __init__(self, path: Path, tally: ChangeTally | None, row: int) -> None:
        self.path, self.tally, self.row = path, tally, row
        self.file: TextIO | None = None

    def __enter__(self) -> DriftFile:
        if self.tally is not None:
            heads = ["row", "line"]
            if self.tally.kind == "mixture":
                heads += self.tally.experts
            else:
                heads += ["change", "run_length", "likeliest_run_length", "alarm"]
            try:
                self.file = self.path.open("w", newline="")
            except OSError as error:
                raise self._refusal(error) from None
            self._write([heads])
        return self

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
    probs, lengths = np.asarray(steps.probs), np.maximum(np.asarray(steps.lengths), 0)
    expected = (probs * lengths).sum(axis=1)
    likeliest = lengths[np.arange(len(lengths)), probs.argmax(axis=1)]
    columns = (np.asarray(steps.change), expected, likeliest, np.asarray(steps.alarm))
    return [
        [f"{change:.6g}", f"{mean:.6g}", str(int(top)), str(int(alarm))]
        for change, mean, top, alarm in zip(*columns, strict=True)
    ]
