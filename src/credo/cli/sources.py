"""Where rows come from: named data sets, or tables that are streamed from a file or standard input."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from credo.cli import defaults
from credo.cli.encoding import Encoding, ImageEncoding, Images, TableEncoding
from credo.core.errors import CredoError, DataError, suggest
from credo.tables import Chunk, infer_schema, open_table

__all__ = ["Source", "Table", "is_named", "open_named", "open_tables", "slug"]

PEEK = 1000


@dataclasses.dataclass(frozen=True)
class Table:
    """What a user says of a table's columns."""

    target: str | None = None
    task: str | None = None
    classes: Sequence[str] | None = None
    drop: Sequence[str] = ()
    categorical: Sequence[str] = ()
    strict: bool = False


@dataclasses.dataclass
class Source:
    """Rows to learn from.

    Attributes:
        name: how messages call it.
        rows: its chunks, to be iterated over once.
        encoding: how its rows become arrays; None where a saved one is used.
        total: how many rows there are, where that is known.
        ordered: whether the rows are one stream whose order matters.
        test: held-out rows (chunks), where there are any.
        sentences: what the user should know about it.
        shuffled: whether the rows were shuffled by the seed.
    """

    name: str
    rows: Iterator[Any]
    encoding: Encoding | None
    total: int | None = None
    ordered: bool = True
    test: list[Any] = dataclasses.field(default_factory=list)
    sentences: list[str] = dataclasses.field(default_factory=list)
    shuffled: bool = False
    chunk: int = defaults.TABLE_CHUNK


def is_named(source: str) -> bool:
    """Whether a SOURCE is the name of a data set; refuses what is neither that nor looks like a file."""
    if source == "-":
        return False
    from credo.datasets import names

    known = names()
    if source in known:
        return True
    path = Path(source)
    if path.exists() or path.suffix or "/" in source:
        return False
    hint = suggest(source, known)
    more = f": {hint}" if hint else ", and no such file; `credo datasets` lists the names"
    raise DataError(f"there is no data set {source!r}{more}".rstrip("?.") + ("?" if hint else "."))


def slug(source: str) -> str:
    """A folder name for a source.

    >>> slug("data/prices.csv.gz"), slug("-")
    ('prices', 'stdin')
    """
    if source == "-":
        return "stdin"
    name = Path(source).name.split(".")[0]
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in name) or "run"


def open_named(
    name: str,
    table: Table,
    *,
    limit: int | None,
    shuffle: bool | None,
    seed: int,
    test_rows: int | None,
    chunk: int | None,
) -> Source:
    """A named data set: shuffled by the seed unless it is a stream, with its held-out rows."""
    from credo.datasets import load, splits

    if table.target is not None:
        raise CredoError(f"--target is for files; the data set {name!r} has its own target.")
    data = load(name)
    total = len(data)
    images = data.x.ndim > 2
    chunk = chunk or (defaults.IMAGE_CHUNK if images else defaults.TABLE_CHUNK)
    cut = (defaults.IMAGE_ROWS if images else 0) if limit is None else limit
    kept = min(total, cut) if cut else total
    shuffled = (not data.ordered) if shuffle is None else shuffle
    order = np.random.default_rng(seed).permutation(total) if shuffled else np.arange(total)
    said = [f"{name}: {data.note}" if data.note else name]
    order_said = "shuffled by the seed" if shuffled else "in their own order"
    if kept < total:
        more = "" if limit else "; --limit 0 for all"
        said.append(f"{kept:,} of its {total:,} training rows, {order_said}{more}")
    else:
        said.append(f"all {total:,} rows, {order_said}")
    data = data.rows(order[:kept])
    encoding: Encoding
    if images:
        encoding = ImageEncoding(data.x.shape[1:], data.class_names, data.task)
    else:
        first = next(_table_chunks(data, 10**9))
        classes = data.class_names if data.task == "classification" else None
        target = _target_name(data)
        schema = infer_schema(
            first, target, task=data.task, classes=classes, drop=table.drop, categorical=table.categorical
        )
        encoding = TableEncoding(schema)
        encoding.sentences = (f"{data.task} of {target!r}", *encoding.sentences[1:])
    made = Source(
        name,
        _chunks(data, chunk),
        encoding,
        kept,
        not shuffled,
        sentences=said,
        shuffled=shuffled,
        chunk=chunk,
    )
    if "test" in splits(name) and test_rows != -1:
        held = load(name, split="test")
        wanted = (defaults.TEST_ROWS if images else 0) if test_rows is None else test_rows
        if wanted and wanted < len(held):
            said.append(
                f"{wanted:,} of its {len(held):,} test rows, drawn by the seed, are scored at the end"
            )
            held = held.rows(np.sort(np.random.default_rng(seed).permutation(len(held))[:wanted]))
        made.test = list(_chunks(held, chunk))
    return made


def _target_name(data: Any) -> str:
    left = [column for column in data.columns or {} if column not in data.feature_names]
    return left[0] if len(left) == 1 else "target"


def _chunks(data: Any, size: int) -> Iterator[Any]:
    return _table_chunks(data, size) if data.x.ndim == 2 else _image_chunks(data, size)


def _image_chunks(data: Any, size: int) -> Iterator[Images]:
    for start in range(0, len(data), size):
        stop = min(start + size, len(data))
        yield Images(data.x[start:stop], data.y[start:stop], np.arange(start + 1, stop + 1))


def _table_chunks(data: Any, size: int) -> Iterator[Chunk]:
    names = data.feature_names or tuple(f"x{i}" for i in range(data.x.shape[1]))
    target = _target_name(data)
    labels = data.y if data.task == "regression" else np.asarray(data.class_names, object)[data.y]
    for start in range(0, len(data), size):
        rows = slice(start, min(start + size, len(data)))
        columns = {name: data.x[rows, i] for i, name in enumerate(names)} | {target: labels[rows]}
        yield Chunk(columns, np.arange(rows.start + 1, rows.stop + 1), unit="row")


def open_tables(
    source: str, table: Table, *, encoding: Encoding | None, chunk: int | None, limit: int | None
) -> Source:
    """A file or standard input, streamed; its schema is inferred from its first rows unless one is given."""
    chunk = chunk or defaults.TABLE_CHUNK
    if encoding is None and table.target is None:
        with open_table(source, chunk_rows=chunk) as opened:
            shown = ", ".join(opened.columns[:30])
        raise CredoError(f"--target is missing: name the column of {opened.name} to predict, one of {shown}.")
    opened = open_table(source, chunk_rows=chunk, strict=table.strict)
    if encoding is None:
        try:
            schema = infer_schema(
                opened.peek(PEEK),
                str(table.target),
                task=table.task,
                classes=table.classes,
                drop=table.drop,
                categorical=table.categorical,
            )
        except BaseException:
            opened.close()
            raise
        encoding = TableEncoding(schema)
    elif not isinstance(encoding, TableEncoding):
        raise DataError(
            f"the model was saved for images of shape {encoding.shape}; {opened.name} is a table."
        )
    return Source(opened.name, _limited(iter(opened), limit or 0), encoding, chunk=chunk)


def _limited(chunks: Iterator[Chunk], limit: int) -> Iterator[Chunk]:
    left = limit
    for chunk in chunks:
        if not limit:
            yield chunk
            continue
        yield cut(chunk, 0, left)
        left -= min(left, len(chunk))
        if left <= 0:
            return


def cut(chunk: Any, start: int, stop: int) -> Any:
    """Rows start..stop of a chunk, with the bad rows met among them."""
    rows = slice(start, stop)
    if isinstance(chunk, Images):
        return Images(chunk.x[rows], chunk.y[rows], chunk.lines[rows])
    lines = chunk.lines[rows]
    after = int(chunk.lines[start - 1]) if start else -1
    upto = int(chunk.lines[stop]) if stop < len(chunk) else 1 << 62
    bad = [row for row in chunk.bad if after < row.line < upto]
    columns = {name: cells[rows] for name, cells in chunk.columns.items()}
    return dataclasses.replace(chunk, columns=columns, lines=lines, bad=bad)


def after_line(chunks: Iterator[Any], line: int) -> Iterator[Any]:
    """The chunks without the rows up to a line: where an interrupted run goes on."""
    for chunk in chunks:
        start = int(np.searchsorted(chunk.lines, line, side="right"))
        if start == 0:
            yield chunk
        elif start < len(chunk.lines):
            yield cut(chunk, start, len(chunk.lines))
