"""`--keep`: columns of a file that are copied beside its predictions, as they stand in the file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from credo.core.errors import CredoError, DataError, suggest
from credo.tables import Chunk
from credo.tables.cells import to_list

__all__ = ["KeptColumns"]


class KeptColumns:
    """The cells of some columns, from when their rows are read until these are predicted.

    Arguments:
        file: what the file is called in messages.
        names: the names of the columns.
        heads: the columns of the predictions, which must have other names.
    """

    def __init__(self, file: str, names: Sequence[str], heads: Sequence[str]) -> None:
        self.file = file
        self.names = tuple(dict.fromkeys(names))
        taken = [name for name in names if name in heads]
        if taken:
            raise CredoError(f"--keep must name columns that the predictions do not have; got {taken[0]!r}.")
        self._waiting: dict[int, tuple[str, ...]] = {}

    def note(self, chunk: Chunk) -> None:
        """Remember the cells of the rows of a chunk; a DataError if it lacks a column."""
        if not self.names:
            return
        absent = [name for name in self.names if name not in chunk.columns and not chunk.loose]
        if absent:
            hint = suggest(absent[0], chunk.columns) or f"its columns are {', '.join(chunk.columns)}."
            raise DataError(f"--keep must name columns of {self.file}; got {absent[0]!r}: {hint}")
        columns = (_texts(chunk, name) for name in self.names)
        self._waiting |= zip(chunk.lines.tolist(), zip(*columns, strict=True), strict=True)

    def take(self, lines: np.ndarray) -> dict[str, list[str]]:
        """The cells in the rows at some lines, by column; the lines up to the last are forgotten."""
        if not self.names:
            return {}
        rows = [self._waiting[line] for line in lines.tolist()]
        last = int(lines.max(initial=0))
        for line in [line for line in self._waiting if line <= last]:
            del self._waiting[line]
        if rows:
            return dict(zip(self.names, map(list, zip(*rows, strict=True)), strict=True))
        return {}


def _texts(chunk: Chunk, name: str) -> list[str]:
    """The cells of a column as text; what is missing is empty."""
    if name not in chunk.columns:
        return [""] * len(chunk)
    values = to_list(chunk.columns[name])
    return ["" if value is None or value != value else str(value) for value in values]
