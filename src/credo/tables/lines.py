"""Columns of delimited lines without quotation marks: numbers in one pass, or cells on request."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat

import numpy as np

from credo.tables.cells import Cells

__all__ = ["LineColumns", "is_plain"]

_DELIMITERS = ",;\t|"
_LONGEST = csv.field_size_limit()


class LineColumns(Mapping[str, Cells]):
    """The columns of some plain lines, which are split into cells only where cells are asked for."""

    def __init__(self, lines: Sequence[str], names: Sequence[str], delimiter: str) -> None:
        self.lines = lines
        self.names = list(names)
        self.delimiter = delimiter
        self._cells: dict[str, Cells] | None = None
        self._numbers: tuple[tuple[str, ...], np.ndarray | None] | None = None

    def __getitem__(self, name: str) -> Cells:
        if self._cells is None:
            self._cells = dict(zip(self.names, self._split(), strict=True))
        return self._cells[name]

    def _split(self) -> Iterator[tuple[str, ...]]:
        """The cells of each column, as the csv module would split the lines with `skipinitialspace`."""
        text = self._text()
        cells = text.replace("\n", self.delimiter).split(self.delimiter)
        if text.startswith(" ") or "\n " in text or f"{self.delimiter} " in text:
            cells = [cell.lstrip(" ") for cell in cells]
        width = len(self.names)
        return (tuple(cells[place::width]) for place in range(width))

    def _text(self) -> str:
        text = "".join(self.lines)
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        return text.removesuffix("\n")

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return repr(dict(self))

    def numbers(self, names: Sequence[str]) -> np.ndarray | None:
        """The columns of these names that exist, as numbers (n, K); None if a cell is no number."""
        wanted = tuple(names)
        if self._numbers is None or self._numbers[0] != wanted:
            self._numbers = wanted, self._read(wanted)
        return self._numbers[1]

    def _read(self, names: tuple[str, ...]) -> np.ndarray | None:
        if not names or not all(name in self.names for name in names):
            return None
        places = None if list(names) == self.names else [self.names.index(name) for name in names]
        try:
            values = np.loadtxt(self.lines, delimiter=self.delimiter, comments=None, usecols=places, ndmin=2)
        except ValueError:
            return None
        if values.shape == (len(self.lines), len(names)):
            return values
        return None


def is_plain(lines: Sequence[str], header: Sequence[str], delimiter: str) -> bool:
    """Whether, at a glance, each line is one row of as many cells as the header, and none is that again."""
    if len(header) < 2 or delimiter not in _DELIMITERS:
        return False
    text = "".join(lines)
    return (
        '"' not in text
        and set(map(str.count, lines, repeat(delimiter))) == {len(header) - 1}
        and max(map(len, lines)) < _LONGEST
        and (max(header, key=len) not in text or not _all_named(lines, header))
    )


def _all_named(lines: Sequence[str], header: Sequence[str]) -> bool:
    """Whether there is a line with all names of the header somewhere in it."""
    for name in sorted(header, key=len, reverse=True):
        lines = [line for line in lines if name in line]
    return bool(lines)
