"""The rows that a session accepts: DataFrames, lists of dicts, dicts of columns, chunks and images."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from credo.core.errors import DataError, require_representable
from credo.live.encoding import Block, Encoding, Images
from credo.recipes import defaults
from credo.tables import Chunk, from_frame

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

__all__ = ["Rows", "blocks_of", "chunks_of", "first_chunks", "segments"]

_Columns: TypeAlias = Mapping[str, Sequence[object] | np.ndarray]

Rows: TypeAlias = "IntoFrame | Sequence[Mapping[str, object]] | _Columns | Chunk | Images | Block"
"""Rows of a table: a DataFrame (pandas, Polars, PyArrow, ...), a list of dicts, a dict of columns or a
`Chunk`; or `Images`; or a `Block` that was encoded before."""

_FRAME_ROWS = 1000


def chunks_of(rows: Rows) -> Iterable[Chunk | Images]:
    """The rows in pieces, counted from 1 if they have no lines; a DataError refuses what are no rows."""
    if isinstance(rows, list | tuple):
        return [_records(rows)] if rows else []
    if isinstance(rows, Chunk | Images):
        return [rows]
    if isinstance(rows, Block):
        raise DataError("rows must be as they were read; got a block that is encoded already.")
    if isinstance(rows, Mapping):
        return [_columns(rows)]
    return from_frame(rows, chunk_rows=_FRAME_ROWS)


def first_chunks(rows: Rows) -> list[Chunk]:
    """The first rows of a table in pieces, to infer a schema from; a DataError if there are none."""
    chunks: list[Chunk] = []
    for chunk in chunks_of(rows):
        if not isinstance(chunk, Chunk):
            raise DataError("rows must be those of a table; got images.")
        chunks.append(chunk)
        if sum(map(len, chunks)) >= defaults.SCHEMA_ROWS:
            break
    return chunks


def blocks_of(
    rows: Rows,
    encoding: Encoding,
    *,
    learn: bool,
    need_target: bool = True,
    weights: ArrayLike | None = None,
    times: np.ndarray | None = None,
) -> Iterator[Block]:
    """Encoded rows, a `Block` unchanged; with `need_target` a row without a target is bad."""
    if isinstance(rows, Block):
        return iter([rows])
    chunks = chunks_of(rows) if weights is None and times is None else _completed(rows, weights, times)
    if learn:  # a chunk is encoded when the one before it was learned
        return itertools.chain.from_iterable(map(encoding.learned, chunks))
    return (encoding.encode(chunk, learn=False, need_target=need_target) for chunk in chunks)


def _completed(rows: Rows, weights: ArrayLike | None, times: np.ndarray | None) -> Iterator[Chunk | Images]:
    """`chunks_of` with the weights and times (n,) of the rows; a DataError if these cannot be."""
    require_representable("weights", weights)
    every = None if weights is None else np.asarray(weights, float)
    start = 0
    if every is not None and (every.ndim != 1 or not (np.isfinite(every) & (every > 0)).all()):
        raise DataError("weights must be finite numbers above 0, one a row.", field="weights")
    chunks = list(chunks_of(rows))
    count = sum(map(len, chunks))
    for name, column in (("weights", every), ("times", times)):
        if column is not None and len(column) != count:
            raise DataError(f"{name} must be as many as the rows, {count}; got {len(column)}.", field=name)
    for chunk in chunks:
        if isinstance(chunk, Images):
            name = "times" if weights is None else "weights"
            raise DataError(f"{name} are for rows of a table; got images.", field=name)
        part = slice(start, start + len(chunk))
        start = start + len(chunk)
        own, clock = (None if one is None else one[part] for one in (every, times))
        own = None if own is None or (own == 1.0).all() else own
        yield dataclasses.replace(chunk, weights=own, times=clock)


def segments(
    rows: Rows, encoding: Encoding, weights: ArrayLike | None = None, times: np.ndarray | None = None
) -> Iterator[Block]:
    """Encoded rows to learn from, those of `blocks_of`, and between them blocks of rows without a usable
    target, to be forecast: these are encoded twice, by the rows before them, and change no statistics.
    """
    if isinstance(rows, Block):
        yield rows
        return
    plain = weights is None and times is None
    for chunk in chunks_of(rows) if plain else _completed(rows, weights, times):
        if isinstance(chunk, Images):
            yield encoding.encode(chunk, learn=True)
            continue
        if chunk.lines.size == 1:
            yield from _lone(chunk, encoding)
            continue
        blank = ~encoding.observed(chunk)
        if not blank.any():
            yield from encoding.learned(chunk)
            continue
        ends = [*(np.flatnonzero(np.diff(blank)) + 1).tolist(), len(chunk)]
        for start, stop in zip([0, *ends], ends, strict=False):
            some = chunk.part(start, stop)
            lines = []
            for learned in encoding.learned(some):
                lines += learned.lines.tolist()
                yield learned
            if len(some) and blank[start]:
                forecast = encoding.encode(some, learn=False, need_target=False)
                yield _without(forecast, np.array(lines, int))


def _lone(chunk: Chunk, encoding: Encoding) -> Iterator[Block]:
    """`segments` of one row: whether it has a target matters if it was not learned from."""
    count = 0
    for learned in encoding.learned(chunk):
        count += learned.lines.size
        yield learned
    if not count and not encoding.observed(chunk).all():
        forecast = encoding.encode(chunk, learn=False, need_target=False)
        yield dataclasses.replace(forecast, labelled=False)


def _without(block: Block, lines: np.ndarray) -> Block:
    """The rows of a block to forecast, less those that were learned from since they had a new class."""
    rest = ~np.isin(block.lines, lines)
    x = block.x[rest]
    y = block.y[rest]
    times = None if block.times is None else block.times[rest]
    return dataclasses.replace(block, x=x, y=y, lines=block.lines[rest], labelled=False, times=times)


def _columns(columns: Mapping[str, Sequence[object] | np.ndarray]) -> Chunk:
    lengths = {name: len(cells) for name, cells in columns.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{name} has {count}" for name, count in lengths.items())
        raise DataError(f"all columns must have one cell a row; {counts}.")
    count = next(iter(lengths.values()), 0)
    return Chunk(dict(columns), np.arange(1, count + 1), unit="row")


def _records(rows: Sequence[Mapping[str, object]]) -> Chunk:
    """The columns of rows given as dicts, where a cell whose key is absent is missing."""
    kinds = set(map(type, rows))
    if kinds != {dict} and not all(issubclass(kind, Mapping) for kind in kinds):
        number, row = next((n, row) for n, row in enumerate(rows, 1) if not isinstance(row, Mapping))
        raise DataError(f"every row must be a dict of cells by column; row {number} is {row!r:.40}.")
    if len(rows) == 1:
        cells = zip(rows[0].values())
        return Chunk(dict(zip(rows[0], map(list, cells), strict=True)), np.array([1]), unit="row", loose=True)
    columns = _alike(rows) if kinds == {dict} else None
    if columns is None:
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns = {name: [row.get(name) for row in rows] for name in names}
    return Chunk(columns, np.arange(1, len(rows) + 1), unit="row", loose=True)


def _alike(rows: Sequence[Mapping[str, object]]) -> dict[str, list[object]] | None:
    """The columns of plain dicts that have the same keys, as most have; None for other rows."""
    names = list(rows[0])
    if len(names) < 2 or set(map(len, rows)) != {len(names)}:
        return None
    try:
        cells = zip(*map(itemgetter(*names), rows), strict=True)
    except KeyError:
        return None
    return dict(zip(names, map(list, cells), strict=True))
