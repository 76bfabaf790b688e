"""The pieces of a table: chunks of raw cells, and the rows that could not be used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np

from credo.core.errors import DataError, Sentence, marked
from credo.tables.cells import Cells

__all__ = ["BadRow", "Chunk", "ChunkSize", "DriftWatch"]


Unit: TypeAlias = Literal["line", "row"]
"""The unit in which the place of a row in its source is counted."""


@dataclass(frozen=True)
class BadRow:
    """A row that was skipped, and why.

    Arguments:
        line: its place in the source, from 1: a line of a text file, or a row of a parquet file or DataFrame.
        reason: what is wrong with the row, without a full stop.
        unit: what `line` counts, "line" or "row".

    Example:
        >>> str(BadRow(17, "has 3 cells where the header names 4"))
        'line 17 has 3 cells where the header names 4'
    """

    line: int
    reason: str
    unit: Unit = "line"

    def __str__(self) -> str:
        return Sentence(f"{self.unit} {self.line} {marked(self.reason)}")


@dataclass(frozen=True)
class Chunk:
    """Some consecutive rows of a table, as raw cells by column.

    Arguments:
        columns: for each column name, n raw cells (any sequence or one-dimensional array of any type).
        lines: the place of each row in the source, (n,) int64, from 1.
        bad: the rows among these that could not be split into cells; they are not in `columns`.
        unit: what `lines` counts, "line" or "row".
        loose: whether a column may be absent from a chunk (JSON lines), so that its cells are missing.
        ignored: the names in these rows that no column has (JSON keys that came late), with their counts.
        semicolons: whether semicolons part the cells, as they do where the comma is the decimal mark.
        weights: how many equal rows each row counts as (n,); None if each counts once.
        times: when each row was observed (n,), None if rows have no times.

    Example:
        >>> chunk = Chunk({"a": ["1", "x"]}, np.array([2, 3]))
        >>> len(chunk), chunk.names
        (2, ('a',))
    """

    columns: Mapping[str, Cells]
    lines: np.ndarray
    bad: list[BadRow] = field(default_factory=list)
    unit: Unit = "line"
    loose: bool = False
    ignored: dict[str, int] = field(default_factory=dict)
    semicolons: bool = False
    weights: np.ndarray | None = None
    times: np.ndarray | None = None

    def __len__(self) -> int:
        return int(self.lines.size)

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in the source's order."""
        return tuple(self.columns)

    def part(self, start: int, stop: int) -> Chunk:
        """Rows start..stop. The bad rows belong to the part with the row before them.

        Arguments:
            start, stop: the places of the first row and of the one after the last.

        Example:
            >>> Chunk({"a": [1, 2, 3]}, np.array([2, 3, 4])).part(1, 3).columns
            {'a': [2, 3]}
        """
        if start == 0 and stop >= len(self):
            return self
        rows = slice(start, stop)
        after = int(self.lines[start]) if start else -1
        upto = int(self.lines[stop]) if stop < len(self) else 1 << 62
        bad = [row for row in self.bad if after < row.line < upto]
        columns = {name: cells[rows] for name, cells in self.columns.items()}
        weights, times = (None if one is None else one[rows] for one in (self.weights, self.times))
        return replace(self, columns=columns, lines=self.lines[rows], bad=bad, weights=weights, times=times)


class ChunkSize:
    """The number of rows to read next: `rows` at first, up to `most` later, as whole columns are cheaper and
    small chunks show progress. The cuts depend on the number of rows alone, and nothing may depend on them.
    """

    def __init__(self, rows: int, most: int | None = None) -> None:
        self.rows = rows
        self.most = max(rows, most or rows)
        self._before = 0

    def next(self) -> int:
        """The number of rows of the next chunk."""
        size = self.rows
        while size < self.most and self._before >= 20 * size:
            size *= 2
        size = min(size, self.most)
        self._before += size
        return size


class DriftWatch:
    """Tell a few bad rows from a table that has changed for good: over half of 20 to 50 recent rows bad."""

    WINDOW = 50
    LEAST = 20

    def __init__(self, name: str, complaint: str) -> None:
        self._name = name
        self._complaint = complaint
        self._recent: list[int] = []

    def good(self, rows: int = 1) -> None:
        """Note good rows."""
        self._recent = (self._recent + [0] * min(rows, self.WINDOW))[-self.WINDOW :]

    def bad(self, line: int) -> None:
        """Note a bad row; refuse where more than half of the recent ones are."""
        self._recent = [*self._recent, line][-self.WINDOW :]
        wrong = [at for at in self._recent if at]
        if len(self._recent) >= self.LEAST and 2 * len(wrong) > len(self._recent):
            raise DataError(
                f"{self._name} changes at line {wrong[0]}: {len(wrong)} of the {len(self._recent)} rows "
                f"up to line {line} {self._complaint}."
            )
