"""`credo learn --predictions`: the forecast of each row before it was learned from, written as rows come."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from credo.cli.kept_columns import KeptColumns
from credo.cli.output import require_writable_file
from credo.cli.progress import write_out
from credo.core.errors import DataError
from credo.sessions import Forecasts, Session
from credo.sessions.forecast_table import (
    TableFormat,
    as_csv,
    as_json_lines,
    format_of,
    heads,
    rows_as_text,
    write_parquet,
)

__all__ = ["QUANTILES", "ForecastFile"]

QUANTILES = (0.05, 0.95)
"""The quantiles of numbers: the ends of the 90% interval."""

_SPOOL = "predictions.jsonl"
_TAIL = 4096


class ForecastFile:
    """The file, as a context: "-" is standard output, None writes nothing. The rows of a Parquet file, which
    cannot be written one by one, gather beside the belief; `Progress` says which part belongs to its rows.
    """

    def __init__(
        self,
        out: str | None,
        session: Session,
        folder: Path,
        resumed: Path | None,
        kept: KeptColumns,
        *,
        spreadsheet: bool = False,
    ) -> None:
        self.out = out
        self.session = session
        self.spreadsheet = spreadsheet
        self.kept = kept
        self.names = self._heads()
        self.kind: TableFormat = "jsonl" if out in (None, "-") else format_of(Path(str(out)), "--predictions")
        self.path = folder / _SPOOL if self.kind == "parquet" else Path(str(out))
        self.resumed = resumed
        self.file: IO[bytes] | None = None
        if spreadsheet and self.kind != "csv":
            raise DataError(f"--spreadsheet is for CSV; --predictions is {self.out or 'not given'}.")
        if out not in (None, "-"):
            require_writable_file(Path(str(out)), "--predictions")

    def __enter__(self) -> ForecastFile:
        progress = self.session.progress
        if self.out is None:
            progress.forecast_bytes = 0
            progress.forecast_tail = ""
        elif self.out != "-":
            try:
                self._open()
            except OSError as error:
                raise self._refusal(error) from None
        return self

    def __exit__(self, *error: object) -> None:
        if self.file is not None:
            self.file.close()

    def _open(self) -> None:
        if self.kind == "parquet":
            self._restore()
        ours = self.resumed is not None and self.path.exists()
        if ours and not self._belongs():
            raise DataError(
                f"--predictions {self.out} is there, and is not the file of the run that continues; name "
                "another file."
            )
        self.file = self.path.open("r+b" if ours else "wb")
        if ours:
            self.file.truncate(self.session.progress.forecast_bytes)
            self.file.seek(0, os.SEEK_END)
            if self.kind == "csv":  # whose columns are those of its beginning
                self._take_heads()
        elif self.kind == "csv":
            self._write(as_csv([self.names]))

    def _heads(self) -> list[str]:
        number, *rest = heads(self.session.encoding.classes, target=True)
        return [number, *self.kept.names, *rest]

    def _take_heads(self) -> None:
        """The columns of the file that is continued; a DataError if others are kept there."""
        with self.path.open(encoding="utf-8", newline="") as file:
            self.names = next(csv.reader(file))
        there = self.names[1 : self.names.index("target")]
        if there != list(self.kept.names):
            words = f"--keep {','.join(there)}" if there else "no --keep"
            raise DataError(f"--predictions {self.out} was begun with {words}; continue in the same way.")

    def _restore(self) -> None:
        """Bring the rows of the resumed run together again, which lie beside its belief or in the file."""
        if self.resumed is None:
            return
        beside = self.resumed.parent / _SPOOL
        final = Path(str(self.out))
        if beside.is_file() and not (self.path.is_file() and beside.samefile(self.path)):
            shutil.copyfile(beside, self.path)
        elif final.exists() and not self.path.exists():
            import pyarrow.parquet as pq

            with self.path.open("w", encoding="utf-8") as spool:
                for batch in pq.ParquetFile(final).iter_batches():
                    names = batch.schema.names
                    rows = ([row[name] for name in names] for row in batch.to_pylist())
                    spool.write(as_json_lines(names, rows))

    def _belongs(self) -> bool:
        """Whether the file begins with the rows that the session has seen."""
        size = self.session.progress.forecast_bytes
        tail = self.session.progress.forecast_tail
        with self.path.open("rb") as file:
            return size > 0 and tail == _tail(file, size)

    def add(self, forecasts: list[Forecasts]) -> None:
        """Write the rows of a chunk; a BrokenPipeError says that nobody reads standard output any more."""
        safe = self.spreadsheet
        rows = "".join(
            rows_as_text(some, self.names, self.kind, spreadsheet=safe, kept=self.kept.take(some.lines))
            for some in forecasts
        )
        if rows and self.out is not None:
            self._write(rows)

    def _write(self, text: str) -> None:
        try:
            if self.file is None:
                write_out(text)
                return
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._refusal(error) from None
        before = self.file.tell()
        try:
            self.file.write(text.encode())
            self.file.flush()
        except OSError as error:
            self.file = self._cut(before)
            raise self._refusal(error) from None

    def _cut(self, size: int) -> IO[bytes]:
        """The file without what could not be written in full."""
        assert self.file is not None
        with contextlib.suppress(OSError):
            self.file.close()
        os.truncate(self.path, size)
        file = self.path.open("r+b")
        file.seek(size)
        return file

    def mark(self) -> None:
        """Note in the session how much of the file belongs to its rows, and bring it to the disk."""
        if self.file is not None:
            os.fsync(self.file.fileno())
            progress = self.session.progress
            progress.forecast_bytes = self.file.tell()
            with self.path.open("rb") as file:
                progress.forecast_tail = _tail(file, progress.forecast_bytes)

    def finish(self) -> None:
        """Write the Parquet file."""
        if self.kind == "parquet" and self.file is not None:
            self.file.close()
            classes = self.session.encoding.classes
            names = self._heads()
            lines = self._lines()
            write_parquet(Path(str(self.out)), names, lines, classes=bool(classes), words=self.kept.names)
            self.path.unlink()

    def _lines(self) -> Iterator[str]:
        with self.path.open(encoding="utf-8", newline="\n") as file:
            yield from file

    def _refusal(self, error: OSError) -> DataError:
        return DataError(f"cannot write --predictions {self.out}: {(error.strerror or str(error)).lower()}.")


def _tail(file: IO[bytes], size: int) -> str:
    """What the last bytes of the first `size` bytes of a file are known by; empty if there are fewer."""
    if file.seek(0, os.SEEK_END) < size:
        return ""
    file.seek(max(0, size - _TAIL))
    return hashlib.blake2b(file.read(min(size, _TAIL)), digest_size=16).hexdigest()
