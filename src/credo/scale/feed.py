"""The rows of a source become batches of arrays with keys, standardised by the rows before them.

A batch can be cut into the parts that belong to shards.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from credo.core.errors import DataError, Named, marked
from credo.live.encoding import Block, TableEncoding
from credo.live.passes import EncodedRows
from credo.live.runner import standardised
from credo.live.targets import SCALER
from credo.streams.keyed.naming import salt
from credo.tables import BadRow, Chunk, Moments
from credo.tables.cells import Cells, cell_text, is_missing, to_list, to_numbers
from credo.tables.times import to_times

__all__ = ["Batch", "Feed", "FileEnd", "Marks", "are_dates"]


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
        location, scale: the mean and spread of the targets before each row (n,), 0 and 1 where `y` is in its
            own units.
        known: whether the units were known (n,), so that forecasts are scored.
        times: the times of the rows (n,); None if each row is one step.
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
    times: np.ndarray | None = None

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


_DAY = 86_400.0


@dataclass(frozen=True)
class Marks:
    """The meaning of the columns that are neither inputs nor targets.

    Attributes:
        key: the column of the keys.
        time: that of the times, or None.
        dates: whether times are ISO dates, which are counted in days, and otherwise numbers.
        own: whether numbers are standardised for each key, so that they pass as they are.
    """

    key: str
    time: str | None = None
    dates: bool = False
    own: bool = False


class FileEnd(NamedTuple):
    """A file of a folder: its size, its last line in the folder, and `Feed.read` up to there."""

    name: str
    size: int
    line: int
    read: tuple[int, int]


class Feed:
    """Turns the chunks of a source into batches.

    Arguments:
        encoding: how rows become arrays; it goes on with the rows.
        marks: the columns of keys and times.
        size: the number of rows of a batch.
        scaler: the moments of the targets so far.
        line: the line up to which rows were read.
        read: what `passed` gives for them.
        files: the files of a folder that were read.
        strict: whether a row that cannot be used is an error.

    Attributes:
        bad: the number of rows that could not be used, and a few of them.
    """

    def __init__(
        self,
        encoding: TableEncoding,
        marks: Marks,
        size: int,
        scaler: Moments | None = None,
        *,
        line: int = 0,
        read: tuple[int, int] = (0, 0),
        files: Iterable[FileEnd] = (),
        strict: bool = False,
    ) -> None:
        self.encoding = encoding
        self.marks = marks
        self.size = size
        self.line = line
        self.strict = strict
        self.read = read
        self.files = list(files)
        self._ends = deque[FileEnd]()
        self.scaler = SCALER.initial() if scaler is None else scaler
        self.bad_rows = 0
        self.bad = list[BadRow]()
        encoding.admit = lambda classes: False  # a class that comes later would change the size of beliefs

    def batches(self, chunks: Iterable[Chunk | None]) -> Iterator[Batch | None]:
        """The batches; the state of the feed is that after the latest one. None, where no more rows have
        come yet, is handed on after the rows before it.
        """
        parts: list[Chunk] = []
        have = 0
        for chunk in chunks:
            if chunk is None:
                if parts:
                    yield self._batch(parts)
                    parts = []
                    have = 0
                yield None
                continue
            start = 0
            while start < len(chunk) or (start == 0 and chunk.bad):
                stop = min(len(chunk), start + self.size - have)
                parts.append(chunk.part(start, stop))
                have += stop - start
                if have == self.size:
                    yield self._batch(parts)
                    parts = []
                    have = 0
                if stop == start:
                    break
                start = stop
        if parts:
            yield self._batch(parts)

    def end_file(self, name: str, size: int, line: int) -> None:
        """A file of a folder, of so many bytes, ends at a line; it is one of `files` once that was read."""
        self._ends.append(FileEnd(name, size, line, (0, 0)))
        self._settle()

    def _settle(self) -> None:
        while self._ends and self._ends[0].line <= self.line:
            self.files.append(self._ends.popleft()._replace(read=self.read))

    def state(self) -> tuple[dict[str, object], dict[str, Mapping[str, np.ndarray]]]:
        """The state from which `Feed` continues, as JSON data and arrays."""
        meta: dict[str, object] = {
            "encoding": self.encoding.to_dict(),
            "marks": dataclasses.asdict(self.marks),
            "line": self.line,
            "read": self.read,
            "files": self.files,
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
        before = self.line
        encoded = [self._encode(chunk) for chunk in parts]
        keys = [key for one, _ in encoded for key in one]
        arrays: list[Any] = [
            None if columns[0] is None else np.concatenate(columns)
            for columns in zip(*(each for _, each in encoded), strict=True)
        ]
        return Batch(before, self.line, keys, *arrays)

    def _encode(self, chunk: Chunk) -> tuple[list[str], tuple[np.ndarray | None, ...]]:
        self.read = self.passed(chunk, self.read)
        cells = self._keys(chunk)
        times = self._times(chunk)
        why = {} if times is None else dict(times[1])
        why |= {
            row: f"has no key: {self.marks.key!r} is missing"
            for row, cell in enumerate(cells)
            if is_missing(cell)
        }
        useless = [BadRow(int(chunk.lines[row]), reason, chunk.unit) for row, reason in sorted(why.items())]
        bad = [*chunk.bad, *useless]
        self.line = max([self.line, *(row.line for row in bad), *chunk.lines[-1:].tolist()])
        self._settle()
        rows = np.arange(len(chunk))
        if why:
            rows = np.setdiff1d(rows, list(why))
            columns = {name: [cell[row] for row in rows.tolist()] for name, cell in chunk.columns.items()}
            weights = None if chunk.weights is None else chunk.weights[rows]
            chunk = dataclasses.replace(chunk, columns=columns, lines=chunk.lines[rows], weights=weights)
        prepared = self.encoding.encoder.prepare(chunk)
        block = self.encoding.encode(prepared, learn=True)
        bad += [row for row in block.bad if row not in chunk.bad]
        if self.strict and bad:
            raise DataError(f"{marked(str(bad[0]))} ({Named('strict')} stops at the first bad row).")
        self.bad_rows += len(bad)
        self.bad += bad[: 3 - len(self.bad)]
        kept = np.searchsorted(chunk.lines, block.lines)
        keys = [cell_text(cells[row]) for row in rows[kept].tolist()]
        clock = None if times is None else times[0][rows[kept]]
        return keys, (*self._numbers(block, prepared.numbers[kept]), clock)

    def _numbers(self, block: Block, raw: np.ndarray) -> tuple[np.ndarray, ...]:
        """The lines, x, y, weights, location, scale and known units of encoded rows."""
        count = len(block)
        x = block.x
        ones = np.ones(count)
        zeros = np.zeros(count)
        weights = ones if block.weights is None else block.weights
        if self.marks.own:
            x[:, self.encoding.encoder.places[: raw.shape[1]]] = raw
        if self.marks.own or self.encoding.classes:
            return block.lines, x, block.y, weights, zeros, ones, np.ones(count, bool)
        self.scaler, scaling = SCALER.encode(self.scaler, block.y, weights=block.weights)
        known = scaling.known
        rows = standardised(EncodedRows(x, block.y, weights=block.weights), scaling)
        weights = np.where(known, 1.0 if rows.weights is None else rows.weights, 0.0)
        return block.lines, x, rows.y, weights, scaling.location, scaling.scale, known

    def _keys(self, chunk: Chunk) -> list[object]:
        return to_list(self._column(chunk, self.marks.key, "keys"))

    def _times(self, chunk: Chunk) -> tuple[np.ndarray, dict[int, str]] | None:
        """The times of rows (n,), and why some have none, by row."""
        name = self.marks.time
        if name is None:
            return None
        cells = self._column(chunk, name, "times")
        times, wrong = _clock(cells, self.marks.dates)
        why = {
            row: f"holds {cell_text(cells[row])[:40]!r} in the times {name!r}"
            if wrong[row]
            else f"has no time: {name!r} is missing"
            for row in np.flatnonzero(np.isnan(times)).tolist()
        }
        return times, why

    def _column(self, chunk: Chunk, name: str, what: str) -> Cells:
        if name in chunk.columns:
            return chunk.columns[name]
        if chunk.loose:
            return [None] * len(chunk)
        raise DataError(
            f"the column {name!r} of the {what} is gone; there are {', '.join(chunk.names[:20])}."
        )


def _clock(cells: Cells, dates: bool) -> tuple[np.ndarray, np.ndarray]:
    """Times (n,), NaN if there is none, and which cells hold something else (n,)."""
    if dates:
        seconds, _, wrong = to_times(cells)
        return seconds / _DAY, wrong
    return to_numbers(cells)


def are_dates(name: str, cells: Cells) -> bool:
    """Whether the first cells of a column of times are ISO dates; numbers otherwise, or a refusal."""
    readings = [_clock(cells, dates) for dates in (False, True)]
    numbers, dates = (int(np.isfinite(times).sum()) for times, _ in readings)
    if not numbers and not dates:
        shown = next((cell_text(cell)[:40] for cell in to_list(cells) if not is_missing(cell)), "")
        raise DataError(
            f"time must be a column of numbers, or of ISO dates such as 2024-05-01T12:30; {name!r} holds "
            f"{shown!r}.",
            field="time",
        )
    return dates > numbers
