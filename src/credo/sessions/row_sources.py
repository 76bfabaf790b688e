"""Where rows come from: named data sets, and tables streamed from a file or from standard input."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from credo.core.errors import CredoError, DataError
from credo.datasets import Dataset, load, splits
from credo.sessions import defaults
from credo.sessions.encoding import Encoding, ImageEncoding, Images, TableEncoding
from credo.sessions.settings import TaskName
from credo.tables import Chunk, infer_schema, open_table
from credo.tables.chunks import ChunkSize

__all__ = ["ColumnOptions", "RowSource", "after_line", "open_dataset", "open_file"]


@dataclasses.dataclass(frozen=True)
class ColumnOptions:
    """What a user says about the columns of a table.

    Arguments:
        target: the column to predict.
        task: what is predicted; by default it is inferred.
        classes: all class labels, where the first rows may not show them all.
        drop: columns to leave out.
        categorical: columns that are categories although they look like numbers.
        strict: whether a row that cannot be split into cells is an error.

    Example:
        >>> ColumnOptions("price", drop=["id"]).drop
        ['id']
    """

    target: str | None = None
    task: TaskName | None = None
    classes: Sequence[str] | None = None
    drop: Sequence[str] = ()
    categorical: Sequence[str] = ()
    strict: bool = False


@dataclasses.dataclass
class RowSource:
    """Rows to learn from.

    Attributes:
        name: the name of the source in messages.
        rows: its chunks, which can be iterated over once.
        encoding: how its rows become arrays.
        total: how many rows there are, where that is known.
        ordered: whether the rows are one stream whose order matters.
        test: the held-out rows, in chunks; empty where there are none.
        sentences: what the user should know about the source.
        shuffled: whether the rows were shuffled by the seed.
        chunk: the number of rows in a chunk.
        most: the most rows in a chunk; chunks grow while they are learned from quickly.

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
    chunk: int = defaults.TABLE_CHUNK
    most: int = 0

    def rows_at_once(self, parameters: int) -> int:
        """How many rows a compiled call takes, for a learner with so many parameters.

        A call costs as much as learning a few rows. But rows that it lacks cost something too: as much as
        moving the belief, which is large where there are many parameters.
        """
        return max(self.chunk, self.most) if parameters <= defaults.SMALL else self.chunk


def open_dataset(
    name: str,
    columns: ColumnOptions | None = None,
    *,
    limit: int | None = None,
    shuffle: bool | None = None,
    seed: int = 0,
    test_rows: int | None = None,
    chunk: int | None = None,
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
    total, images = len(whole), whole.x.ndim > 2
    most = chunk or (defaults.IMAGE_CHUNK if images else defaults.LONG_CHUNK)
    chunk = chunk or (defaults.IMAGE_CHUNK if images else defaults.TABLE_CHUNK)
    most = (defaults.IMAGE_ROWS if images else 0) if limit is None else limit
    count = min(total, most) if most else total
    shuffled = (not whole.ordered) if shuffle is None else shuffle
    order = np.random.default_rng(seed).permutation(total) if shuffled else np.arange(total)
    sentences = [f"{name}: {whole.note}" if whole.note else name]
    how = "shuffled by the seed" if shuffled else "in their own order"
    if count < total:
        more = "" if limit else "; `limit=0` for all"
        sentences.append(f"{count:,} of its {total:,} training rows, {how}{more}")
    else:
        sentences.append(f"all {total:,} rows, {how}")
    data = whole.rows(order[:count])
    test: list[Chunk | Images] = []
    if "test" in splits(name) and test_rows != -1:
        rest = load(name, split="test")
        most = (defaults.TEST_ROWS if images else 0) if test_rows is None else test_rows
        if most and most < len(rest):
            sentences.append(
                f"{most:,} of its {len(rest):,} test rows, drawn by the seed, are scored at the end"
            )
            rest = rest.rows(np.sort(np.random.default_rng(seed).permutation(len(rest))[:most]))
        test = list(_chunks(rest, chunk))
    encoding = _encoding(data, columns)
    rows = _chunks(data, chunk, most)
    return RowSource(name, rows, encoding, count, not shuffled, test, sentences, shuffled, chunk, most)


def _encoding(data: Dataset, columns: ColumnOptions) -> TableEncoding | ImageEncoding:
    if data.x.ndim > 2:
        return ImageEncoding(data.x.shape[1:], data.class_names, data.task)
    target = _target_name(data)
    schema = infer_schema(
        next(_table_chunks(data, 10**9)),
        target,
        task=data.task,
        classes=data.class_names if data.task == "classification" else None,
        drop=columns.drop,
        categorical=columns.categorical,
    )
    encoding = TableEncoding(schema)
    encoding.sentences = (f"{data.task} of {target!r}", *encoding.sentences[1:])
    return encoding


def _target_name(data: Dataset) -> str:
    rest = [column for column in data.columns or {} if column not in data.feature_names]
    return rest[0] if len(rest) == 1 else "target"


def _chunks(data: Dataset, size: int, most: int | None = None) -> Iterator[Chunk | Images]:
    yield from _table_chunks(data, size, most) if data.x.ndim == 2 else _image_chunks(data, size)


def _image_chunks(data: Dataset, size: int) -> Iterator[Images]:
    for start in range(0, len(data), size):
        stop = min(start + size, len(data))
        yield Images(data.x[start:stop], data.y[start:stop], np.arange(start + 1, stop + 1))


def _table_chunks(data: Dataset, size: int, most: int | None = None) -> Iterator[Chunk]:
    names = data.feature_names or tuple(f"x{i}" for i in range(data.x.shape[1]))
    target = _target_name(data)
    labels = data.y if data.task == "regression" else np.asarray(data.class_names, object)[data.y]
    sizes, start = ChunkSize(size, most), 0
    sizes.follow()
    while start < len(data):
        rows = slice(start, min(start + sizes.next(), len(data)))
        start = rows.stop
        columns = {name: data.x[rows, i] for i, name in enumerate(names)} | {target: labels[rows]}
        yield Chunk(columns, np.arange(rows.start + 1, rows.stop + 1), unit="row")


def open_file(
    path: str,
    columns: ColumnOptions,
    *,
    encoding: Encoding | None = None,
    chunk: int | None = None,
    limit: int | None = None,
) -> RowSource:
    """Stream a file or standard input. Its schema is inferred from its first rows unless one is given.

    Arguments:
        path: a CSV, TSV, JSON lines or Parquet file, or "-" for standard input.
        columns: the target, and what else is known about the columns.
        encoding: how rows become arrays, where that is known.
        chunk: the number of rows in a chunk.
        limit: the largest number of rows to learn from; 0 or None for all.

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
    most = chunk or (defaults.TABLE_CHUNK if path == "-" else defaults.LONG_CHUNK)
    chunk = chunk or defaults.TABLE_CHUNK
    if encoding is None and columns.target is None:
        with open_table(path, chunk_rows=chunk) as table:
            listing = ", ".join(table.columns[:30])
        raise CredoError(
            f"target is missing: name the column of {table.name} to predict, one of {listing}.",
            field="target",
        )
    table = open_table(path, chunk_rows=chunk, most_rows=most, strict=columns.strict)
    if encoding is None:
        try:
            schema = infer_schema(
                table.peek(defaults.SCHEMA_ROWS),
                str(columns.target),
                task=columns.task,
                classes=columns.classes,
                drop=columns.drop,
                categorical=columns.categorical,
            )
        except BaseException:
            table.close()
            raise
        encoding = TableEncoding(schema)
    elif not isinstance(encoding, TableEncoding):
        raise DataError(f"the model was saved for images of shape {encoding.shape}; {table.name} is a table.")
    return RowSource(table.name, _limited(iter(table), limit or 0), encoding, chunk=chunk, most=most)


def _limited(chunks: Iterator[Chunk], limit: int) -> Iterator[Chunk]:
    left = limit
    for chunk in chunks:
        if not limit:
            yield chunk
            continue
        yield _cut(chunk, 0, left)
        left -= min(left, len(chunk))
        if left <= 0:
            return


def _cut(chunk: Chunk, start: int, stop: int) -> Chunk:
    """Rows start..stop of a chunk, with the bad rows met among them."""
    rows = slice(start, stop)
    lines = chunk.lines[rows]
    after = int(chunk.lines[start - 1]) if start else -1
    upto = int(chunk.lines[stop]) if stop < len(chunk) else 1 << 62
    bad = [row for row in chunk.bad if after < row.line < upto]
    columns = {name: cells[rows] for name, cells in chunk.columns.items()}
    return dataclasses.replace(chunk, columns=columns, lines=lines, bad=bad)


def after_line(chunks: Iterable[Chunk | Images], line: int) -> Iterator[Chunk | Images]:
    """The chunks without the rows up to a line, from which an interrupted run continues.

    Arguments:
        chunks: the chunks of a source.
        line: the last line to leave out.

    Example:
        >>> chunk = Chunk({"a": [1, 2, 3]}, np.array([2, 3, 4]))
        >>> [part.lines.tolist() for part in after_line([chunk], 2)]
        [[3, 4]]
    """
    for chunk in chunks:
        start = int(np.searchsorted(chunk.lines, line, side="right"))
        if start == 0:
            yield chunk
        elif start < len(chunk.lines) and isinstance(chunk, Images):
            yield Images(chunk.x[start:], chunk.y[start:], chunk.lines[start:])
        elif start < len(chunk.lines):
            assert isinstance(chunk, Chunk)
            yield _cut(chunk, start, len(chunk.lines))
