"""The rows of a source as batches of arrays with keys, standardised by the rows before them."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from credo.core.errors import DataError
from credo.live.encoding import TableEncoding
from credo.live.passes import EncodedRows
from credo.live.runner import standardised
from credo.live.targets import SCALER
from credo.streams.keyed.naming import salt
from credo.tables import BadRow, Chunk, Moments
from credo.tables.cells import cell_text, is_missing, to_list

__all__ = ["Batch", "Feed"]


@dataclass(frozen=True)
class Batch:
    """Consecutive rows of a source, or those of them that belong to a shard.

    Attributes:
        before: the last line before these rows.
        last: their last line, good or bad.
        keys: the key of each row.
        lines: the line of each row (n,).
        x, y: inputs (n, D) float32, and what is learned (n,): class numbers, or standardised numbers.
        weights: the weights (n,), 0 while the units of the targets are not known.
        location, scale: the mean and spread of the targets before each row (n,), 0 and 1 for classes.
        known: whether the units were known (n,), so that forecasts are scored.
    """

    before: int
    last: int
    keys: list[str]
    lines: np.ndarray
    x: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    location: np.ndarray
    scale: np.ndarray
    known: np.ndarray

    def rows(self, some: np.ndarray) -> Batch:
        """Some of the rows, by their places."""
        arrays = {
            field.name: getattr(self, field.name)[some]
            for field in dataclasses.fields(self)
            if isinstance(getattr(self, field.name), np.ndarray)
        }
        return dataclasses.replace(self, keys=[self.keys[place] for place in some.tolist()], **arrays)

    def after(self, line: int) -> Batch:
        """The rows after a line."""
        if line <= self.before:
            return self
        part = self.rows(np.flatnonzero(self.lines > line))
        return dataclasses.replace(part, before=max(self.before, line))

    def shards(self, count: int) -> list[Batch]:
        """The rows of each of some shards, to which keys belong by a fixed hash."""
        if count == 1:
            return [self]
        shard = np.array([salt(key) % count for key in self.keys], np.int64)
        return [self.rows(np.flatnonzero(shard == number)) for number in range(count)]


class Feed:
    """Turns the chunks of a source into batches.

    Arguments:
        encoding: how rows become arrays; it goes on with the rows.
        key: the column of the keys.
        size: the number of rows of a batch.
        scaler: the moments of the targets so far.
        line: the line up to which rows were read.
        read: what `passed` gives for them.
        strict: whether a row that cannot be used is an error.

    Attributes:
        bad: the number of rows that could not be used, and a few of them.
    """

    def __init__(
        self,
        encoding: TableEncoding,
        key: str,
        size: int,
        scaler: Moments | None = None,
        line: int = 0,
        read: tuple[int, int] = (0, 0),
        strict: bool = False,
    ) -> None:
        self.encoding, self.key, self.size, self.line, self.strict = encoding, key, size, line, strict
        self.read = read
        self.scaler = SCALER.initial() if scaler is None else scaler
        self.bad_rows, self.bad = 0, list[BadRow]()
        encoding.admit = lambda classes: False  # a class that comes later would change the size of beliefs

    def batches(self, chunks: Iterable[Chunk]) -> Iterator[Batch]:
        """The batches; the state of the feed is that after the latest one."""
        parts: list[Chunk] = []
        have = 0
        for chunk in chunks:
            start = 0
            while start < len(chunk) or (start == 0 and chunk.bad):
                stop = min(len(chunk), start + self.size - have)
                parts.append(chunk.part(start, stop))
                have += stop - start
                if have == self.size:
                    yield self._batch(parts)
                    parts, have = [], 0
                if stop == start:
                    break
                start = stop
        if parts:
            yield self._batch(parts)

    def state(self) -> tuple[dict[str, object], dict[str, Mapping[str, np.ndarray]]]:
        """What `Feed` goes on from, as JSON data and arrays."""
        meta: dict[str, object] = {
            "encoding": self.encoding.to_dict(),
            "line": self.line,
            "read": self.read,
            "bad": self.bad_rows,
        }
        return meta, {"encoding": self.encoding.arrays(), "scaler": self.scaler.arrays()}

    def passed(self, chunk: Chunk, before: tuple[int, int]) -> tuple[int, int]:
        """The checksums of the keys and the targets of all rows so far, which do not depend on chunks.

        Arguments:
            chunk: the next rows.
            before: the checksums of those before it, (0, 0) for none.
        """
        targets = to_list(chunk.columns.get(self.encoding.target, [None] * len(chunk)))
        keys, ys = ("".join(f"{cell}\n" for cell in cells) for cells in (self._keys(chunk), targets))
        return zlib.crc32(keys.encode("utf-8", "replace"), before[0]), zlib.crc32(
            ys.encode("utf-8", "replace"), before[1]
        )

    def _batch(self, parts: list[Chunk]) -> Batch:
        before, encoded = self.line, [self._encode(chunk) for chunk in parts]
        keys = [key for one, _ in encoded for key in one]
        arrays: list[Any] = [
            np.concatenate(columns) for columns in zip(*(each for _, each in encoded), strict=True)
        ]
        return Batch(before, self.line, keys, *arrays)

    def _encode(self, chunk: Chunk) -> tuple[list[str], tuple[np.ndarray, ...]]:
        self.read = self.passed(chunk, self.read)
        cells = self._keys(chunk)
        keyless = [row for row, cell in enumerate(cells) if is_missing(cell)]
        why, unit = f"has no key: {self.key!r} is missing", chunk.unit
        bad = [*chunk.bad, *(BadRow(int(chunk.lines[row]), why, unit) for row in keyless)]
        self.line = max([self.line, *(row.line for row in bad), *chunk.lines[-1:].tolist()])
        if keyless:
            kept = np.setdiff1d(np.arange(len(chunk)), keyless)
            columns = {name: [cell[row] for row in kept] for name, cell in chunk.columns.items()}
            chunk = dataclasses.replace(chunk, columns=columns, lines=chunk.lines[kept])
            cells = [cells[row] for row in kept]
        places = {line: row for row, line in enumerate(chunk.lines.tolist())}
        block = self.encoding.encode(chunk, learn=True)
        bad += [row for row in block.bad if row not in chunk.bad]
        if self.strict and bad:
            raise DataError(f"{bad[0]} (`strict` stops at the first bad row).")
        self.bad_rows += len(bad)
        self.bad += bad[: 3 - len(self.bad)]
        keys = [cell_text(cells[places[line]]) for line in block.lines.tolist()]
        count = len(keys)
        if self.encoding.classes:
            ones, zeros = np.ones(count), np.zeros(count)
            return keys, (block.lines, block.x, block.y, ones, zeros, ones, np.ones(count, bool))
        self.scaler, scaling = SCALER.encode(self.scaler, block.y)
        known, rows = scaling.known, standardised(EncodedRows(block.x, block.y), scaling)
        weights = np.where(known, 1.0 if rows.weights is None else rows.weights, 0.0)
        return keys, (block.lines, block.x, rows.y, weights, scaling.location, scaling.scale, known)

    def _keys(self, chunk: Chunk) -> list[object]:
        if self.key in chunk.columns:
            return to_list(chunk.columns[self.key])
        if chunk.loose:
            return [None] * len(chunk)
        raise DataError(
            f"the column {self.key!r} of the keys is gone; there are {', '.join(chunk.names[:20])}."
        )
