"""Lines that are too old for the journal: files of Parquet, in which they stay in their order."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from credo.core.errors import CredoError, DataError
from credo.core.extensions import extra
from credo.core.files import write_atomically

__all__ = ["ARCHIVE", "ArchiveRow", "Line", "archive_folder", "read_lines_of", "write_lines"]

ARCHIVE = "archive"
"""The folder of these files, beside the journal."""


class Line(NamedTuple):
    """A line as the journal has it; that of a label has the number and the content of the line of its row."""

    seq: int
    id: str
    kind: str
    time: float
    content: bytes
    answer: bytes | None
    given: int | None
    row: bytes | None


class ArchiveRow(NamedTuple):
    """A file with all lines of a model from the `first` to the `last`; so many were to be learned."""

    first: int
    last: int
    lines: int
    learned: int
    file: str
    digest: str


def archive_folder(journal: Path) -> Path:
    """The folder of the files of a journal."""
    return journal.parent / ARCHIVE


def _parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        sentence = f"old lines of a journal are kept by pyarrow: {extra('parquet')}."
        raise CredoError(sentence, field="keep") from None
    return pyarrow


def write_lines(folder: Path, model: int, lines: Sequence[Line]) -> ArchiveRow:
    """Write lines into a file of their own; a `DataError` where that cannot be done."""
    arrow = _parquet()
    buffer = io.BytesIO()
    kinds = {"seq": arrow.int64(), "id": arrow.string(), "kind": arrow.string(), "time": arrow.float64()}
    kinds |= dict.fromkeys(("content", "answer"), arrow.binary())
    kinds |= {"given": arrow.int64(), "row": arrow.binary()}
    columns = zip(kinds.values(), zip(*lines, strict=True), strict=True)
    table = arrow.table([arrow.array(column, kind) for kind, column in columns], list(kinds))
    arrow.parquet.write_table(table, buffer, compression="zstd")
    data = buffer.getvalue()
    first = lines[0].seq
    last = lines[-1].seq
    path = folder / f"{model}-{first}-{last}.parquet"
    folder.mkdir(exist_ok=True, mode=0o700)
    write_atomically(path, data)
    learned = sum(line.kind == "learn" for line in lines)
    return ArchiveRow(first, last, len(lines), learned, path.name, hashlib.sha256(data).hexdigest())


def read_lines_of(folder: Path, row: ArchiveRow) -> Iterator[Line]:
    """The lines of a file; a `DataError` if it is gone or damaged."""
    path = folder / row.file
    which = f"the lines {row.first:,} to {row.last:,} of the journal"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{which} cannot be read from {path}: {error.strerror or error}.") from None
    if hashlib.sha256(data).hexdigest() != row.digest:
        raise DataError(f"{which} cannot be read from {path}: its checksum is another one.")
    for batch in _parquet().parquet.ParquetFile(io.BytesIO(data)).iter_batches(1024):
        yield from map(Line._make, zip(*batch.to_pydict().values(), strict=True))
