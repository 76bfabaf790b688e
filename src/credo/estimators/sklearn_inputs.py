"""The rows that estimators of scikit-learn take: arrays, sparse matrices, DataFrames and dicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from credo.core.errors import DataError, shown
from credo.recipes.defaults import SCHEMA_ROWS
from credo.tables import Chunk, ColumnSpec, Dropped, Encoder, Schema, TargetSpec
from credo.tables.cells import Cells, cell_text, to_list, to_numbers
from credo.tables.infer_column import Remarks, infer_column
from credo.tables.readers import unique_names

__all__ = [
    "Matrix",
    "Table",
    "by_name",
    "numeric_schema",
    "read_table",
    "table_schema",
    "text_cell",
    "within_floats",
]

BUCKET = 1024
"""How many rows are encoded, and of a sparse matrix made dense, at a time."""

MOST_CATEGORIES = 50
TARGET = TargetSpec("(target)", "regression")
"""The target of a schema, whose cells come apart from the rows."""


@dataclass(frozen=True)
class Matrix:
    """Rows of numbers (n, D) float64, dense or in scipy's CSR format; NaN if missing."""

    numbers: Any

    def __len__(self) -> int:
        return int(self.numbers.shape[0])

    def where(self, keep: np.ndarray) -> Matrix:
        """The rows that are kept."""
        return Matrix(self.numbers[keep])

    def chunks(self, encoder: Encoder) -> Iterator[Chunk]:
        """The rows in buckets, each made dense."""
        for start in range(0, len(self), BUCKET):
            part = self.numbers[start : start + BUCKET]
            yield encoder.prepare_numbers(part if isinstance(part, np.ndarray) else part.toarray())


@dataclass(frozen=True)
class Table:
    """Rows of cells of any kind, by column, and which columns hold numbers by their type."""

    columns: Mapping[str, Cells]
    numeric: tuple[str, ...]
    count: int

    def __len__(self) -> int:
        return self.count

    def where(self, keep: np.ndarray) -> Table:
        """The rows that are kept."""
        if keep.all():
            return self
        rows = np.flatnonzero(keep)
        columns = {
            name: cells[rows] if isinstance(cells, np.ndarray) else [cells[int(row)] for row in rows]
            for name, cells in self.columns.items()
        }
        return Table(columns, self.numeric, len(rows))

    def chunks(self, encoder: Encoder) -> Iterator[Chunk]:
        """The rows in buckets."""
        whole = Chunk(self.columns, np.arange(1, self.count + 1), unit="row")
        for start in range(0, self.count, BUCKET):
            yield encoder.prepare(whole.part(start, start + BUCKET))


def read_table(rows: Any, *, mixed: bool | None) -> Table | None:
    """Rows by column, None for numbers alone; `mixed` says whether rows before were a table, if any."""
    import narwhals as nw

    if mixed is False or isinstance(rows, np.ndarray):
        return None
    names = [str(name) for name in getattr(rows, "columns", ())]
    if len(set(names)) < len(names):
        unique_names(names, "X")  # which says what two columns have one name
    frame = nw.from_native(rows, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        types = {str(name): kind for name, kind in frame.schema.items()}
        numeric = tuple(name for name, kind in types.items() if kind.is_numeric())
        if mixed is None and len(numeric) == len(types):
            return None
        columns = {str(name): frame[name].to_numpy() for name in frame.columns}
        return Table(columns, numeric, len(frame))
    if not by_name(rows):
        return None
    if isinstance(rows, Mapping):
        return _of_columns(rows)
    return _of_columns({name: [row.get(name) for row in rows] for name in dict.fromkeys(chain(*rows))})


def by_name(rows: Any) -> bool:
    """Whether rows are a dict of columns, or a list of dicts."""
    if isinstance(rows, Mapping):
        return not hasattr(rows, "tocsr")  # a sparse matrix may be a dict
    return isinstance(rows, list | tuple) and len(rows) > 0 and all(isinstance(row, Mapping) for row in rows)


def _of_columns(columns: Mapping[Any, Cells]) -> Table:
    lengths = {len(cells) for cells in columns.values()}
    if len(lengths) > 1:
        counts = ", ".join(f"{name!r} has {len(cells)}" for name, cells in columns.items())
        raise DataError(f"X must have one cell a row in each column; {counts}.", field="X")
    named = {str(name): cells for name, cells in columns.items()}
    return Table(named, (), lengths.pop() if lengths else 0)


def numeric_schema(names: Sequence[str]) -> Schema:
    """The schema of columns of numbers. They share one feature that says that a value is missing."""
    return Schema(TARGET, tuple(ColumnSpec(name, "numeric") for name in names))


def table_schema(table: Table) -> Schema:
    """The schema of a table as `credo learn` infers it, with all columns of numbers; a DataError for none."""
    columns: list[ColumnSpec] = []
    dropped: list[Dropped] = []
    notes: list[str] = []
    for name, cells in table.columns.items():
        column = infer_column(name, to_list(cells[:SCHEMA_ROWS]), False, MOST_CATEGORIES, Remarks(notes, []))
        if isinstance(column, ColumnSpec):
            columns.append(column)
        elif name in table.numeric:
            columns.append(ColumnSpec(name, "numeric"))
        else:
            dropped.append(column)
    if not columns:
        reasons = "; ".join(map(str, dropped)) or "it has none"
        raise DataError(f"X has no column to learn from: {reasons}.", field="X")
    return Schema(TARGET, tuple(columns), tuple(dropped), tuple(notes))


@contextmanager
def within_floats(**given: Any) -> Iterator[None]:
    """What is read inside becomes floats; a number that no float can hold is refused with its name."""
    try:
        yield
    except OverflowError:
        for field, values in given.items():
            for entry in np.asarray(values, dtype=object).flat:
                if _is_beyond(entry):
                    words = f"{field} must be numbers that a float can hold; got {shown(entry)}."
                    raise DataError(words, field=field) from None
        raise


def _is_beyond(entry: Any) -> bool:
    try:
        float(entry)
    except OverflowError:
        return True
    except (TypeError, ValueError):
        return False
    return False


def text_cell(rows: Any, names: Sequence[str] | None) -> str | None:
    """A sentence about the first text in rows that must be numbers; None if there is none."""
    try:
        cells = np.asarray(rows, dtype=object)
    except ValueError:
        return None
    if cells.ndim != 2:
        return None
    for place in range(cells.shape[1]):
        column = cells[:, place].tolist()
        texts = [row for row, cell in enumerate(column) if isinstance(cell, str | bytes)]
        wrong = to_numbers([cell_text(column[row]) for row in texts])[1] if texts else np.zeros(0, bool)
        if wrong.any():
            row = texts[int(np.argmax(wrong))]
            name = f"x{place}" if names is None else names[place]
            shown = cell_text(column[row])[:40]
            return f"X must hold numbers; row {row + 1} holds {shown!r} in column {name!r}."
    return None
