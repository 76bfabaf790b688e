"""The opening of tables: files, standard input and DataFrames, which are read once and in chunks."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from credo.core.errors import DataError, require_choice, require_integer
from credo.tables.chunks import BadRow, Chunk, ChunkSize
from credo.tables.live import LiveText, Pipe
from credo.tables.opening import (
    FORMATS,
    ByteStream,
    Format,
    NoRows,
    Source,
    format_of_name,
    is_archive,
    member_name,
    open_bytes,
    sniff,
)
from credo.tables.readers import csv_chunks, jsonl_chunks, unique_names

__all__ = ["TableSource", "from_frame", "open_table"]


class TableSource:
    """A table that is read once, from its first row to its last, in chunks.

    Arguments:
        name: its name in messages.
        format: "csv", "tsv", "jsonl", "parquet" or "frame".
        chunks: its chunks. The first with a row is read at once: a file that cannot be read fails here.
        close: the function that `close` calls.
        share: the function that `share` calls.
        rows: how many rows it has, if that is known before they are read.

    Raises:
        DataError: the table has no usable row.

    Example:
        >>> with open_table(io.StringIO("a,b\\n1,2\\n")) as source:
        ...     source.columns, [chunk.columns for chunk in source]
        (('a', 'b'), [{'a': ('1',), 'b': ('2',)}])
    """

    def __init__(
        self,
        name: str,
        format: str,
        chunks: Iterator[Chunk],
        close: Callable[[], None] = lambda: None,
        share: Callable[[], float | None] = lambda: None,
        rows: int | None = None,
    ) -> None:
        self.name = name
        self.rows = rows
        self.format = format
        self._chunks = chunks
        self._close = close
        self._share = share
        self._ahead_rows = self._given_rows = 0
        self._ahead: list[Chunk] = []
        self._begun = False
        try:
            first = self.peek(1)
        except BaseException:
            close()
            raise
        if not sum(map(len, first)):
            close()
            bad: list[BadRow] = [row for chunk in first for row in chunk.bad]
            if bad:
                raise DataError(f"{name} has no usable row: {bad[0]}.")
            what = "no row" if format == "jsonl" else "column names but no rows"
            raise NoRows(f"{name} has {what}.")
        self.columns: tuple[str, ...] = first[-1].names

    def peek(self, rows: int = 1000) -> tuple[Chunk, ...]:
        """Look at the first chunks without consuming them.

        Arguments:
            rows: how many rows to read, unless the table ends earlier.

        Returns:
            The chunks, which iteration yields again.

        Raises:
            DataError: iteration has begun.
        """
        if self._begun:
            raise DataError(f"{self.name} is being read already; peek before iterating.")
        while sum(map(len, self._ahead)) < rows:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._ahead.append(chunk)
            self._ahead_rows += len(chunk)
        return tuple(self._ahead)

    def __iter__(self) -> Iterator[Chunk]:
        if self._begun:
            raise DataError(f"{self.name} was read already; open it again to read it twice.")
        self._begun = True
        return self._iterate()

    def _iterate(self) -> Iterator[Chunk]:
        try:
            while self._ahead:
                self._given_rows += len(self._ahead[0])
                yield self._ahead.pop(0)
            for chunk in self._chunks:
                self._given_rows += len(chunk)
                yield chunk
        finally:
            self.close()

    def share(self) -> float | None:
        """The share of the table that was given out, by bytes; None if its length is not known."""
        share = self._share()
        if share is None:
            return None
        return share * min(1.0, self._given_rows / max(self._ahead_rows, 1))

    def close(self) -> None:
        """Close the file behind the table."""
        self._close()

    def __enter__(self) -> TableSource:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def open_table(
    source: Source,
    *,
    format: Format | None = None,
    chunk_rows: int | ChunkSize = 1000,
    delimiter: str | None = None,
    strict: bool = False,
) -> TableSource:
    """Open a CSV, TSV, JSON lines or parquet table that need not fit in memory.

    Arguments:
        source: a path, "-" for standard input, or a stream; .gz of text and a .zip of one file are unpacked.
        format: "csv", "tsv", "jsonl" or "parquet"; None asks the suffix, or a stream's first line.
        chunk_rows: the number of rows in a chunk; with a `credo.tables.chunks.ChunkSize` they grow.
        delimiter: what separates cells of a CSV; None guesses comma, semicolon, tab or bar.
        strict: whether a row that cannot be split into cells raises instead of being reported in `Chunk.bad`.

    Returns:
        The table, which can be iterated over once. Its first chunk has already been read.

    Raises:
        DataError: the source cannot be read, is not what its suffix says, is cut off, or has no usable row.

    Example:
        >>> source = open_table(io.StringIO("a,b\\n1,x\\n2\\n3,z\\n"))
        >>> chunk = next(iter(source))
        >>> chunk.columns["b"], chunk.lines, str(chunk.bad[0])
        (('x', 'z'), array([2, 4]), 'line 3 has 1 cell where the header names 2')
    """
    if format is not None:
        require_choice("format", format, FORMATS)
    if not isinstance(chunk_rows, ChunkSize):
        require_integer("chunk_rows", chunk_rows, 1)
        chunk_rows = ChunkSize(chunk_rows)
    size = chunk_rows
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
        raise DataError(f"delimiter must be one character; got {delimiter!r}.")
    promised = format
    path = os.fspath(source) if isinstance(source, str | os.PathLike) and source != "-" else None
    if path is not None and os.path.isfile(path):
        packed = is_archive(path)
        promised, _ = format_of_name(f"{path}/{member_name(path)}" if packed else path, format)
        if promised == "parquet" and packed:
            raise DataError(f"{path} holds parquet data, which must be unpacked from its archive first.")
    stream = open_bytes(source)
    try:
        kind = sniff(stream.head(), stream.name, promised)
        if kind == "parquet":
            chunks = _parquet(source, path, stream, size)
            name = stream.name
            return TableSource(name, kind, chunks, stream.close, rows=_parquet_rows(path))
        stream.text = True
        buffered = io.BufferedReader(stream, 1 << 16)
        pipe = source if isinstance(source, Pipe) and stream.stream is source else None
        kind_of_text = io.TextIOWrapper if pipe is None else LiveText
        text = kind_of_text(buffered, encoding="utf-8-sig", newline="" if kind != "jsonl" else None)
        if pipe is not None and isinstance(text, LiveText):
            text.pipe = pipe
        if kind == "jsonl":
            chunks = jsonl_chunks(text, stream.name, size, strict)
        else:
            between = delimiter or ("\t" if kind == "tsv" else None)
            chunks = csv_chunks(text, stream.name, between, size, strict)
        return TableSource(stream.name, kind, chunks, text.close, stream.share)
    except BaseException:
        stream.close()
        raise


def _parquet_rows(path: str | None) -> int | None:
    """The number of rows by the metadata of a file; None if it cannot be read, which its rows will say."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return None
    with contextlib.suppress(OSError, pa.ArrowException):
        if path is None:
            return None
        return int(pq.read_metadata(path).num_rows)
    return None


def _parquet(source: Source, path: str | None, stream: ByteStream, size: ChunkSize) -> Iterator[Chunk]:
    name = stream.name
    handle: Any = sys.stdin.buffer if source == "-" else source
    if not (handle if path is None else stream.stream).seekable():
        raise DataError(
            f"{name} holds parquet data, which cannot be read as a stream; save it and name the file."
        )
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise DataError(f"{name} is parquet, which needs pyarrow: pip install pyarrow.") from None
    if path is not None:
        with open(path, "rb") as end:
            end.seek(-min(4, os.path.getsize(path)), os.SEEK_END)
            if end.read() != b"PAR1" or os.path.getsize(path) < 12:
                raise DataError(
                    f"{name} is cut: it does not end in PAR1, as parquet files do; copy it again."
                )
    else:
        handle.seek(0)
    row = 0
    try:
        file = pq.ParquetFile(handle)
        names = unique_names(file.schema_arrow.names, name)
        for batch in file.iter_batches(batch_size=size.most):
            cells = [_arrow_cells(column, pa) for column in batch.columns]
            start = 0
            while start < batch.num_rows:
                stop = min(start + size.next(), batch.num_rows)
                columns = dict(zip(names, (column[start:stop] for column in cells), strict=True))
                yield Chunk(columns, np.arange(row + start + 1, row + stop + 1), unit="row")
                start = stop
            row += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        first = str(error).strip().splitlines()[0].rstrip(".")
        raise DataError(f"{name} is damaged parquet data after row {row} ({first}).") from None


def _arrow_cells(column: Any, pa: Any) -> Any:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_timestamp(kind):
        return column.to_numpy(zero_copy_only=False)
    return column.to_pylist()


def from_frame(frame: Any, *, chunk_rows: int = 1000, name: str = "the DataFrame") -> TableSource:
    """Read a DataFrame (pandas, Polars, PyArrow, or any other that narwhals knows) as a table.

    Arguments:
        frame: the DataFrame. A lazy one is collected, and a pandas index is left out.
        chunk_rows: the largest number of rows in a chunk.
        name: its name in messages.

    Returns:
        The table, which can be iterated over once. Rows are counted from 1.

    Raises:
        DataError: the frame is not a DataFrame, has no rows, or has two columns of one name.

    Example:
        >>> import pandas as pd
        >>> next(iter(from_frame(pd.DataFrame({"a": [1, 2]})))).columns
        {'a': array([1, 2])}
    """
    import narwhals as nw

    require_integer("chunk_rows", chunk_rows, 1)
    unique_names(
        list(getattr(frame, "columns", ())) if type(frame).__module__.startswith("pandas") else [], name
    )
    try:
        table = nw.from_native(frame)
        table = table.collect() if isinstance(table, nw.LazyFrame) else table
    except (TypeError, ValueError) as error:
        if isinstance(error, TypeError):
            raise DataError(f"{name} must be a DataFrame; got {type(frame).__name__}.") from None
        raise DataError(f"{name} cannot be read ({str(error).splitlines()[0].rstrip('.')}).") from None
    return TableSource(name, "frame", _frame_chunks(table, chunk_rows, name))


def _frame_chunks(table: Any, chunk_rows: int, name: str) -> Iterator[Chunk]:
    names = unique_names(list(table.columns), name)
    for start in range(0, len(table), chunk_rows):
        part = table[start : start + chunk_rows]
        cells = [part[column].to_numpy() for column in table.columns]
        yield Chunk(
            dict(zip(names, cells, strict=True)), np.arange(start + 1, start + len(part) + 1), unit="row"
        )
