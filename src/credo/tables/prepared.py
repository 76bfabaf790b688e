"""Chunks whose cells are read, and read into all that does not depend on the rows before them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from credo.core.errors import DataError
from credo.tables.cells import LARGEST, Cells, cell_text, to_number_columns, to_numbers
from credo.tables.chunks import Chunk
from credo.tables.hashing import hash_words, one_hot
from credo.tables.readers import LineColumns
from credo.tables.schema import ColumnSpec, Schema
from credo.tables.times import read_times

__all__ = ["Preparation", "Prepared", "cells_of"]


@dataclass(frozen=True)
class Prepared(Chunk):
    """A chunk of n rows whose cells are read: features `x` (n, D) float32, those of numbers and times still
    0, which stand in `numbers` (n, K), NaN if missing; masks (n,) by column; and why rows cannot be used,
    by place. Of its columns, the target's and late ones are left.
    """

    x: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    numbers: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    missing: dict[str, np.ndarray] = field(default_factory=dict)
    unseen: dict[str, np.ndarray] = field(default_factory=dict)
    why: dict[int, str] = field(default_factory=dict)

    def part(self, start: int, stop: int) -> Prepared:
        """Rows start..stop."""
        chunk = super().part(start, stop)
        rows = slice(start, stop)
        assert isinstance(chunk, Prepared)
        return replace(
            chunk,
            x=self.x[rows],
            numbers=self.numbers[rows],
            missing={name: lost[rows] for name, lost in self.missing.items()},
            unseen={name: other[rows] for name, other in self.unseen.items()},
            why={row - start: why for row, why in self.why.items() if start <= row < stop},
        )


class Preparation:
    """Reads the cells of chunks, ahead if wished: it has no state. `scaled` columns stand at `places`."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.width = schema.width
        self._first_width = schema.first_width
        self._first = _layout(schema.columns, 0, 0)
        self._first_scaled = sum(one.column.scaled for one in self._first)
        self._late = _layout(schema.late, self._first_width, self._first_scaled)
        scaled = [one for one in (*self._first, *self._late) if one.column.scaled]
        self.scaled = [one.column.name for one in scaled]
        self.places = [one.at for one in scaled]
        self._clean = [one.number for one in self._first if one.pointed]
        self._numeric = [self.scaled[place] for place in self._clean]
        self._others = [one for one in self._first if not one.pointed]
        never = {column.name for column in schema.dropped if column.only is None}
        self._read = {column.name for column in schema.columns} | never | {schema.target.name}

    def prepare(self, chunk: Chunk) -> Prepared:
        """Read the cells of a chunk but those of late columns; a DataError if it lacks a column."""
        if isinstance(chunk, Prepared):
            return chunk
        clean, columns = self._read_clean(chunk)
        if not self._read.issuperset(chunk.columns):
            columns |= {name: chunk.columns[name] for name in chunk.columns if name not in self._read}
        rest = (
            chunk.lines,
            chunk.bad,
            chunk.unit,
            chunk.loose,
            chunk.ignored,
            chunk.semicolons,
            chunk.weights,
            chunk.times,
        )
        count = chunk.lines.size
        blank = np.zeros((count, self._first_width), np.float32)
        every = count == 1 and len(self._clean) == self._first_scaled
        own = clean if every and clean is not None else np.empty((count, self._first_scaled))
        rows = Prepared(columns, *rest, blank, own)
        if clean is not None and own is not clean:
            own[:, self._clean] = clean
        whole = clean is not None and not np.count_nonzero(np.isnan(clean))
        _read_cells(rows, self._others if whole else self._first, chunk, clean is not None)
        return rows

    def complete(self, chunk: Chunk) -> Prepared:
        """Read the cells of a chunk, late columns among them; a DataError if it lacks a column."""
        rows = self.prepare(chunk)
        if not self.schema.room:
            return rows
        late = len(self.scaled) - self._first_scaled
        whole = replace(
            rows,
            x=np.pad(rows.x, ((0, 0), (0, self.width - self._first_width))),
            numbers=np.pad(rows.numbers, ((0, 0), (0, late))),
            missing=dict(rows.missing),
            unseen=dict(rows.unseen),
            why=dict(rows.why),
        )
        _read_cells(whole, self._late, replace(whole, loose=True), False)
        return whole

    def prepare_numbers(self, numbers: np.ndarray) -> Prepared:
        """Read rows (n, K) float64 by column, NaN if missing, for a schema of numeric columns only."""
        with np.errstate(invalid="ignore"):
            clean = np.where(np.abs(numbers) <= LARGEST, numbers, np.nan)
        x = np.zeros((len(clean), self._first_width), np.float32)
        lost = np.isnan(clean)
        if lost.any():
            x[lost.any(axis=1), -1] = 1.0  # the feature that all columns share
        return Prepared({}, np.arange(1, len(clean) + 1), unit="row", x=x, numbers=clean)

    def _read_clean(self, chunk: Chunk) -> tuple[np.ndarray | None, dict[str, Cells]]:
        """The numbers of all numeric columns at once (n, K), NaN if missing, or None if some cell is no
        number; and the cells of the target."""
        columns = chunk.columns
        count = len(self._numeric)
        if not isinstance(columns, LineColumns):
            some = [columns[name] if name in columns else cells_of(chunk, name) for name in self._numeric]
            return to_number_columns(some) if some else None, self._target_of(columns)
        target = self.schema.target
        number = not target.kind.classed and target.decimal == "." and target.name in columns
        values = columns.numbers([*self._numeric, target.name] if number else self._numeric)
        if values is None:
            return None, self._target_of(columns)
        with np.errstate(invalid="ignore"):
            clean = np.where(np.abs(values[:, :count]) <= LARGEST, values[:, :count], np.nan)
        last: dict[str, Cells] = {target.name: values[:, -1]} if number else self._target_of(columns)
        return clean if count else None, last

    def _target_of(self, columns: Mapping[str, Cells]) -> dict[str, Cells]:
        name = self.schema.target.name
        if name in columns:
            return {name: columns[name]}
        return {}


class _Place(NamedTuple):
    """The place of a column: its first feature, the one that says that its cell is missing, and its number
    among the standardised columns (-1 for none); and whether it holds numbers as Python writes them.
    """

    column: ColumnSpec
    at: int
    missing: int
    number: int
    pointed: bool


def _layout(columns: Sequence[ColumnSpec], at: int, number: int) -> list[_Place]:
    """The places of columns, from this feature and this number on."""
    places = []
    for column in columns:
        end = at + len(column.features)
        scaled = column.scaled
        pointed = column.kind == "numeric" and column.decimal == "."
        missing = end - 1 if column.has_missing else -1  # the last one is shared by all
        places.append(_Place(column, at, missing, number if scaled else -1, pointed))
        at = end
        number = number + scaled
    return places


def _read_cells(rows: Prepared, layout: Sequence[_Place], chunk: Chunk, clean: bool) -> None:
    """Read the cells of some columns into prepared rows, where those of the clean may stand already."""
    x = rows.x
    for column, at, missing, number, pointed in layout:
        if clean and pointed:
            lost = np.isnan(rows.numbers[:, number])
        elif column.scaled:
            cells = cells_of(chunk, column.name)
            numeric = column.kind == "numeric"
            values, wrong = to_numbers(cells, column.decimal) if numeric else read_times(column, cells, x, at)
            rows.numbers[:, number] = values
            lost = np.isnan(values)
            for row in np.flatnonzero(wrong).tolist():
                shown = cell_text(cells[row])[:40]
                rows.why.setdefault(row, f"holds {shown!r} in the {column.kind} column {column.name!r}")
        elif column.kind == "text":
            lost = hash_words(column, cells_of(chunk, column.name), x, at)
        else:
            lost, other = one_hot(column, cells_of(chunk, column.name), x, at)
            if np.count_nonzero(other):
                rows.unseen[column.name] = other
        if np.count_nonzero(lost):
            rows.missing[column.name] = lost
            x[lost, missing] = 1.0


def cells_of(chunk: Chunk, name: str) -> Cells:
    """The cells of a column of a chunk; a DataError if it has none, and must have it."""
    if name in chunk.columns:
        return chunk.columns[name]
    if chunk.loose:
        return [None] * len(chunk)
    raise DataError(f"column {name!r} is not in the table; its columns are {', '.join(chunk.names[:30])}.")
