"""Files of series: their rows in time order, and the encoding that gives them their lags."""

from __future__ import annotations

from credo.core.errors import DataError
from credo.live.encoding import Encoding
from credo.live.series import SeriesEncoding, SeriesOptions, infer_series
from credo.recipes import defaults
from credo.sessions.cutting import after_line, at_most
from credo.sessions.row_sources import ColumnOptions, RowSource
from credo.tables import open_table
from credo.tables.chunks import ChunkSize

__all__ = ["open_series"]


def open_series(
    path: str,
    columns: ColumnOptions,
    series: SeriesOptions | None,
    *,
    encoding: Encoding | None = None,
    chunk: int | None = None,
    limit: int | None = None,
    after: int = 0,
) -> RowSource:
    """Stream a file whose rows are a series in time. Its meaning is inferred from its first rows.

    Arguments:
        path: a CSV, TSV, JSON lines or Parquet file.
        columns: the task, what to leave out, and which columns are categories.
        series: the columns of times and targets, and the horizon; None with an encoding.
        encoding: the encoding of a session that goes on.
        chunk: the number of rows in a chunk.
        limit: the largest number of rows to learn from; 0 or None for all.
        after: the line up to which rows are left out.

    Returns:
        The rows, ready to learn from.

    Raises:
        DataError: the file cannot be read, its times have no common step, or the encoding is not that of a
            series.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "t.csv"
        >>> _ = path.write_text("t,y\\n" + "".join(f"2024-01-{i:02d},{i % 7}\\n" for i in range(1, 32)))
        >>> source = open_series(str(path), ColumnOptions("y"), SeriesOptions("t", "y", 7))
        >>> source.encoding.used, source.encoding.columns.lags
        ((7,), (1, 2, 3, 7, 8, 14))
    """
    sizes = ChunkSize(chunk or defaults.TABLE_CHUNK, chunk or defaults.LONGEST_CHUNK)
    table = open_table(path, chunk_rows=sizes, strict=columns.strict)
    try:
        if encoding is None:
            assert series is not None
            first = table.peek(defaults.SCHEMA_ROWS)
            task = columns.task
            drop = columns.drop
            some = columns.categorical
            encoding = infer_series(first, series, task=task, drop=drop, categorical=some)
        elif not isinstance(encoding, SeriesEncoding):
            raise DataError(
                f"the model was saved for rows that are no series; `horizon` is for a series, not {path}."
            )
    except BaseException:
        table.close()
        raise
    chunks = at_most(after_line(iter(table), after), limit or 0)
    return RowSource(
        table.name, chunks, encoding, sizes=sizes, share=lambda: None if limit else table.share()
    )
