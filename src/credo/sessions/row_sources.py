"""Sources of rows: named data sets, tables from a file or from standard input, and series in time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from credo.core.errors import CredoError, DataError, Named, Sentence
from credo.datasets import Dataset, load, splits
from credo.live.encoding import Encoding, ImageEncoding, Images, TableEncoding
from credo.live.series import SeriesEncoding, infer_series
from credo.recipes import defaults
from credo.recipes.options import ColumnOptions, SeriesOptions
from credo.sessions.chunk_parts import after_line, at_most
from credo.tables import Chunk, Schema, TableSource, infer_schema, open_table
from credo.tables.chunks import ChunkSize
from credo.tables.live import Pipe, read_ahead

__all__ = ["RowSource", "open_dataset", "open_file", "open_series", "order_of"]


@dataclasses.dataclass
class RowSource:
    """Rows to learn from.

    Attributes:
        name: the name of the source in messages.
        rows: its chunks, which can be iterated over once.
        encoding: how its rows become arrays.
        total: how many rows there are, if that is known.
        ordered: whether the rows are one stream whose order matters.
        test: the held-out rows, in chunks; empty if there are none.
        sentences: what the user should know about the source.
        shuffled: whether the rows were shuffled by the seed.
        sizes: how many rows there are in its chunks.
        order: the order of the rows of a named data set.
        after: the line up to which rows were left out.
        share: how much of the source was read, from 0 to 1; None if that is not known.

    Example:
        >>> source = open_dataset("wine")
        >>> source.total, source.encoding.task, source.shuffled
        (143, 'classification', True)
    """

    name: str
    rows: Iterator[Chunk | Images]
    encoding: Encoding
    total: int | None = None
    ordered: bool = True
    test: list[Chunk | Images] = dataclasses.field(default_factory=list)
    sentences: list[str] = dataclasses.field(default_factory=list)
    shuffled: bool = False
    sizes: ChunkSize = dataclasses.field(default_factory=lambda: ChunkSize(defaults.TABLE_CHUNK))
    order: str = ""
    after: int = 0
    share: Callable[[], float | None] = lambda: None

    def suit(self, parameters: int) -> int:
        """Allow the chunks to grow as long as suits a learner with so many parameters.

        A call costs as much as learning a few rows. But rows that it lacks cost something too: as much as
        moving the belief, which is large if there are many parameters. And a chunk should take well below
        a second, since progress is shown after each.

        Returns:
            How many rows a compiled call takes.
        """
        sizes = self.sizes
        longest = defaults.LONGEST_CHUNK if parameters <= defaults.TINY else defaults.LONG_CHUNK
        sizes.most = max(sizes.rows, min(sizes.most, longest))
        if parameters <= defaults.SMALL:
            return sizes.most
        return sizes.rows


def open_dataset(  # noqa: PLR0913 - settings, each by its name
    name: str,
    columns: ColumnOptions | None = None,
    *,
    limit: int | None = None,
    shuffle: bool | None = None,
    seed: int = 0,
    test_rows: int | None = None,
    chunk: int | None = None,
    after: int = 0,
    encoding: Encoding | None = None,
) -> RowSource:
    """Open a named data set and its held-out rows.

    Arguments:
        name: the name of the data set; see `credo.datasets.names`.
        columns: which columns to drop, and which are categories.
        limit: the largest number of rows to learn from, or 0 for all; by default all, except of images.
        shuffle: whether to shuffle the rows by the seed; by default they are, unless they are a stream.
        seed: the seed of the order.
        test_rows: how many held-out rows to keep, 0 for all or -1 for none; by default all, except of images.
        chunk: the number of rows in a chunk.
        after: how many rows to leave out, in the order of the rows; the limit counts those after them.
        encoding: how rows become arrays, if that is known.

    Returns:
        The rows, ready to learn from.

    Raises:
        CredoError: a target is given, although a named data set has its own.
        DataError: there is no such data set, or its files cannot be had.

    Example:
        >>> source = open_dataset("wine", limit=100, shuffle=False)
        >>> source.total, source.shuffled, sum(len(chunk) for chunk in source.rows)
        (100, False, 100)
    """
    columns = ColumnOptions() if columns is None else columns
    if columns.target is not None:
        raise CredoError(f"target is for files; the data set {name!r} has its own target.", field="target")
    whole = load(name)
    total = len(whole)
    images = whole.x.ndim > 2
    longest = chunk or (defaults.IMAGE_CHUNK if images else defaults.LONGEST_CHUNK)
    chunk = chunk or (defaults.IMAGE_CHUNK if images else defaults.TABLE_CHUNK)
    sizes = ChunkSize(chunk, longest)
    usual = defaults.IMAGE_ROWS if images else 0
    most = usual if limit is None else limit
    rest = max(total - after, 0)
    count = min(rest, most) if most else rest
    shuffled = (not whole.ordered) if shuffle is None else shuffle
    order = np.random.default_rng(seed).permutation(total) if shuffled else np.arange(total)
    sentences = [f"{name}: {whole.note}" if whole.note else name]
    how = "shuffled by the seed" if shuffled else "in their own order"
    if count < total:
        from_row = f", from row {after + 1:,} on" if after else ""
        said = f"{count:,} of its {total:,} training rows, {how}{from_row}"
        all_of_it = limit or count == rest
        sentences.append(said if all_of_it else Sentence(f"{said}; {Named('limit', 0)} for all"))
    else:
        sentences.append(f"all {total:,} rows, {how}")
    data = whole.rows(order[after : after + count])
    test: list[Chunk | Images] = []
    if "test" in splits(name) and test_rows != -1:
        held = load(name, split="test")
        usual = defaults.TEST_ROWS if images else 0
        most = usual if test_rows is None else test_rows
        if most and most < len(held):
            sentences.append(
                f"{most:,} of its {len(held):,} test rows, drawn by the seed, are scored at the end"
            )
            held = held.rows(np.sort(np.random.default_rng(seed).permutation(len(held))[:most]))
        test = list(_chunks(held, ChunkSize(chunk)))
    encoding = encoding or _encoding(data, columns)
    rows = _chunks(data, sizes, after)
    order_said = (shuffled, sizes, order_of(shuffled, seed))
    return RowSource(name, rows, encoding, count, not shuffled, test, sentences, *order_said)


def order_of(shuffled: bool, seed: int) -> str:
    """The order of the rows of a named data set, in words."""
    if shuffled:
        return f"shuffled by seed {seed}"
    return "in their own order"


def _encoding(data: Dataset, columns: ColumnOptions) -> TableEncoding | ImageEncoding:
    if data.x.ndim > 2:
        return ImageEncoding(data.x.shape[1:], data.class_names, data.task)
    target = _target_name(data)
    known = dataclasses.replace(columns, target=target, task=data.task, classes=data.class_names or None)
    schema = _schema([next(_table_chunks(data, iter([slice(0, len(data))])))], known)
    goal = dataclasses.replace(schema.target, why=f"{data.task} of {target!r}")
    return TableEncoding(dataclasses.replace(schema, target=goal))


def _target_name(data: Dataset) -> str:
    rest = [column for column in data.columns or {} if column not in data.feature_names]
    if len(rest) == 1:
        return rest[0]
    return "target"


def _chunks(data: Dataset, sizes: ChunkSize, after: int = 0) -> Iterator[Chunk | Images]:
    """The rows in chunks, cut where the chunks of the whole set are, of which these rows are a part."""
    slices = _slices(len(data), sizes, after)
    yield from _table_chunks(data, slices, after) if data.x.ndim == 2 else _image_chunks(data, slices, after)


def _slices(count: int, sizes: ChunkSize, after: int) -> Iterator[slice]:
    start = 0
    end = 0
    while start < count:
        end += sizes.next()
        if end > after:
            stop = min(end - after, count)
            yield slice(start, stop)
            start = stop


def _image_chunks(data: Dataset, slices: Iterator[slice], after: int) -> Iterator[Images]:
    for rows in slices:
        lines = np.arange(rows.start + 1, rows.stop + 1) + after
        yield Images(data.x[rows], data.y[rows], lines)


def _table_chunks(data: Dataset, slices: Iterator[slice], after: int = 0) -> Iterator[Chunk]:
    names = data.feature_names or tuple(f"x{i}" for i in range(data.x.shape[1]))
    target = _target_name(data)
    labels = np.asarray(data.class_names, object)[data.y] if data.class_names else data.y
    for rows in slices:
        columns = {name: data.x[rows, i] for i, name in enumerate(names)} | {target: labels[rows]}
        yield Chunk(columns, np.arange(rows.start + 1, rows.stop + 1) + after, unit="row")


def open_file(
    path: str,
    columns: ColumnOptions,
    *,
    encoding: Encoding | None = None,
    chunk: int | None = None,
    limit: int | None = None,
    after: int = 0,
    pipe: Pipe | None = None,
    on_rows: Callable[[Chunk], None] | None = None,
) -> RowSource:
    """Stream a file or standard input. Its schema is inferred from its first rows unless one is given.

    Arguments:
        path: a CSV, TSV, JSON lines or Parquet file, or "-" for standard input.
        columns: the target, and what else is known about the columns.
        encoding: how rows become arrays, if that is known.
        chunk: the number of rows in a chunk.
        limit: the largest number of rows to learn from; 0 or None for all.
        after: the line up to which rows are left out; the limit counts those after it.
        pipe: the pipe behind the path, if it is one. Its rows are read as they come, and its schema is
            inferred from fewer rows where they come slowly.
        on_rows: a function that sees each chunk as it stands in the file, before it is read ahead.

    Returns:
        The rows, ready to learn from.

    Raises:
        CredoError: no target is named.
        DataError: the file cannot be read, or is not a table.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> path = Path(mkdtemp()) / "t.csv"
        >>> _ = path.write_text("a,y\\n" + "".join(f"{i},{i / 2}\\n" for i in range(30)))
        >>> open_file(str(path), ColumnOptions("y")).encoding.task
        'regression'
    """
    most = chunk or (defaults.LONGEST_CHUNK if pipe is None else defaults.TABLE_CHUNK)
    sizes = ChunkSize(chunk or defaults.TABLE_CHUNK, most)
    rows = path if pipe is None else pipe
    if encoding is None and columns.target is None:
        with open_table(rows, chunk_rows=sizes.rows) as table:
            listing = ", ".join(table.columns[:30])
        raise CredoError(
            f"target is missing: name the column of {table.name} to predict, one of {listing}.",
            field="target",
        )
    if pipe is not None and encoding is not None:
        pipe.prompt()
    table = open_table(rows, chunk_rows=sizes, strict=columns.strict)
    sentences: list[str] = []
    if encoding is None:
        try:
            schema, count = _first_schema(table, columns, pipe)
        except BaseException:
            table.close()
            raise
        encoding = TableEncoding(schema)
        if pipe is not None and pipe.slow:
            sentences.append(
                f"what the columns mean is inferred from the first {count:,} rows, since they come slowly"
            )
    elif not isinstance(encoding, TableEncoding):
        raise DataError(f"the model was saved for images of shape {encoding.shape}; {table.name} is a table.")
    if pipe is not None:
        pipe.prompt()
    chunks = at_most(after_line(iter(table), after), limit or 0)
    if on_rows is not None:
        chunks = _seen(chunks, on_rows)
    if pipe is None:
        chunks = read_ahead(chunks, encoding.encoder.prepare)
    return RowSource(
        table.name,
        chunks,
        encoding,
        None if table.rows is None else min(max(table.rows - after, 0), limit or table.rows),
        sentences=sentences,
        sizes=sizes,
        share=lambda: None if limit else table.share(),
    )


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
                f"the model was saved for rows that are no series; {Named('horizon')} is for a series, not "
                f"{path}.",
            )
    except BaseException:
        table.close()
        raise
    chunks = at_most(after_line(iter(table), after), limit or 0)
    return RowSource(
        table.name, chunks, encoding, sizes=sizes, share=lambda: None if limit else table.share()
    )


def _seen(chunks: Iterator[Chunk], look: Callable[[Chunk], None]) -> Iterator[Chunk]:
    """The chunks, each of which a function sees first."""
    for chunk in chunks:
        look(chunk)
        yield chunk


def _schema(first: Sequence[Chunk], said: ColumnOptions) -> Schema:
    """The schema by the first rows of a table, and by what is said about its columns."""
    target = str(said.target)
    task = said.task
    drop = said.drop
    some = said.categorical
    return infer_schema(first, target, task=task, classes=said.classes, drop=drop, categorical=some)


def _first_schema(table: TableSource, columns: ColumnOptions, pipe: Pipe | None) -> tuple[Schema, int]:
    """The schema, and the number of rows that it was inferred from."""
    while True:
        first = table.peek(1)
        while sum(map(len, first)) < defaults.SCHEMA_ROWS and not (pipe is not None and pipe.slow):
            before = first
            first = table.peek(sum(map(len, first)) + 1)
            if len(first) == len(before):
                break
        count = sum(map(len, first))
        try:
            schema = _schema(first, columns)
        except DataError:
            if pipe is None or not pipe.slow:
                raise
            pipe.gather()
            table.peek(count + 1)
            continue
        return schema, count
