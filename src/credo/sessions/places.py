"""The place in a source up to which a session has learned, and how the source is known again.

A place has a digest of all rows up to it. A file that begins with the same rows is the same source, whatever
its name; one that only begins alike was changed. A named data set is known by its name and order.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from credo.tables import open_table
from credo.tables.cells import Cells, to_list
from credo.tables.opening import open_bytes

__all__ = ["Found", "Prefix", "Progress", "find_place"]

HEAD = 20
"""Lines that two files must have in common to count as versions of one."""

_BLOCK = 1 << 20


@dataclasses.dataclass
class Progress:
    """The place in a source up to which a session has learned.

    Attributes:
        source: the source.
        line: the latest line that was read.
        interrupted: whether the run was stopped there.
        order: the order of the rows of a named data set; empty for a file.
        head, digest: what tells the first lines, and all up to `line`; empty if it cannot be read twice.
        forecast_bytes, forecast_tail: how much of a file of forecasts is of these rows, and its end.

    Example:
        >>> Progress("prices.csv", line=100, interrupted=True).line
        100
    """

    source: str = ""
    line: int = 0
    interrupted: bool = False
    order: str = ""
    head: str = ""
    digest: str = ""
    forecast_bytes: int = 0
    forecast_tail: str = ""


class Prefix:
    """Digests of the beginnings of a file, plain or gzip, each longer than the last; no more is read."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.line = 0
        self._hash = hashlib.blake2b(digest_size=16)
        self._end = ord("\n")
        self._blocks = self._read()
        self._rest = b""

    def upto(self, line: int) -> str:
        """The digest of all lines up to a later one (of a Parquet file, rows); a DataError if unreadable."""
        while self.line < line:
            block = self._rest or next(self._blocks, b"")
            if not block:
                break
            ends = np.flatnonzero(np.frombuffer(block, np.uint8) == self._end)[: line - self.line]
            cut = int(ends[-1]) + 1 if self.line + len(ends) == line else len(block)
            self._hash.update(block[:cut])
            self._rest = block[cut:]
            self.line += len(ends)
        return self._hash.hexdigest()

    def _read(self) -> Iterator[bytes]:
        """The bytes of the file. Every line has an end, also the last one, and of one byte."""
        stream = open_bytes(self.path)
        with stream:
            head = stream.head()
            if not head.startswith(b"PAR1"):
                if b"\r" in head and b"\n" not in head:
                    self._end = ord("\r")
                last = b""
                end = bytes([self._end])
                while block := stream.read(_BLOCK):
                    if piece := block if end == b"\r" else block.replace(b"\r", b""):
                        yield piece
                    last = block[-1:]
                if last != end:
                    yield end
                return
        with open_table(self.path) as table:
            for chunk in table:
                rows = zip(*map(_plain, chunk.columns.values()), strict=True)
                yield "".join(json.dumps(row, default=str) + "\n" for row in rows).encode()


def _plain(cells: Cells) -> list[object]:
    """Cells as Python objects; whole numbers as floats, which they are in a column with gaps."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "iuf":
        cells = cells.astype(float)
    return to_list(cells)


class Found(NamedTuple):
    """The place up to which a belief has learned from a file, or None, and whether it knows a changed one."""

    place: Progress | None
    changed: bool


def find_place(path: str, places: Sequence[Progress]) -> Found:
    """Find the place of a file by its rows, among those of a session; a DataError if it cannot be read."""
    place = None
    changed = False
    known = [one for one in places if one.digest]
    if known:
        prefix = Prefix(path)
        heads = {line: prefix.upto(line) for line in range(1, HEAD + 1)}
        for one in sorted(known, key=lambda one: one.line):
            alike = heads[min(one.line, HEAD)] == one.head
            if alike and (heads[one.line] if one.line <= HEAD else prefix.upto(one.line)) == one.digest:
                place = one
                changed = False
            elif alike:
                changed = True
    return Found(place, changed)
