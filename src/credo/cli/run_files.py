"""The files that grow with the rows of `credo learn`, and the state that is saved beside them.

By `--keep`, columns of a file are copied beside its predictions, as they stand in the file.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import os
import shlex
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TextIO

import numpy as np

from credo.cli.output import Folder, require_writable_file
from credo.cli.progress import note, write_out
from credo.cli.request import Request
from credo.core.errors import CredoError, DataError, suggest
from credo.core.files import write_atomically
from credo.sessions import ChangeTally, Forecasts, Session, Steps
from credo.sessions.forecast_table import (
    TableFormat,
    as_csv,
    as_json_lines,
    format_of,
    heads,
    rows_as_text,
    write_parquet,
)
from credo.sessions.places import HEAD, Prefix
from credo.tables import Chunk
from credo.tables.cells import to_list

__all__ = ["QUANTILES", "KeptColumns", "RunFiles", "go_on"]


class KeptColumns:
    """The cells of some columns, from when their rows are read until these are predicted.

    Arguments:
        file: what the file is called in messages.
        names: the names of the columns.
        heads: the columns of the predictions, which must have other names.
    """

    def __init__(self, file: str, names: Sequence[str], heads: Sequence[str]) -> None:
        self.file = file
        self.names = tuple(dict.fromkeys(names))
        taken = [name for name in names if name in heads]
        if taken:
            raise CredoError(f"--keep must name columns that the predictions do not have; got {taken[0]!r}.")
        self._waiting: dict[int, tuple[str, ...]] = {}

    def note(self, chunk: Chunk) -> None:
        """Remember the cells of the rows of a chunk; a DataError if it lacks a column."""
        if not self.names:
            return
        absent = [name for name in self.names if name not in chunk.columns and not chunk.loose]
        if absent:
            hint = suggest(absent[0], chunk.columns) or f"its columns are {', '.join(chunk.columns)}."
            raise DataError(f"--keep must name columns of {self.file}; got {absent[0]!r}: {hint}")
        columns = (_texts(chunk, name) for name in self.names)
        self._waiting |= zip(chunk.lines.tolist(), zip(*columns, strict=True), strict=True)

    def take(self, lines: np.ndarray) -> dict[str, list[str]]:
        """The cells in the rows at some lines, by column; the lines up to the last are forgotten."""
        if not self.names:
            return {}
        rows = [self._waiting[line] for line in lines.tolist()]
        last = int(lines.max(initial=0))
        for line in [line for line in self._waiting if line <= last]:
            del self._waiting[line]
        if rows:
            return dict(zip(self.names, map(list, zip(*rows, strict=True)), strict=True))
        return {}


def _texts(chunk: Chunk, name: str) -> list[str]:
    """The cells of a column as text; what is missing is empty."""
    if name not in chunk.columns:
        return [""] * len(chunk)
    values = to_list(chunk.columns[name])
    return ["" if value is None or value != value else str(value) for value in values]


class RunFiles:
    """The files of a run, as a context, and the session, which is saved beside them every now and then.

    Arguments:
        request: what was asked for.
        session: what learns.
        folder: the folder of the run.
        saved: the belief from which the run goes on.
        kept: the columns that are copied beside the predictions.
    """

    def __init__(
        self, request: Request, session: Session, folder: Folder, saved: Path | None, kept: KeptColumns
    ) -> None:
        self.request = request
        self.session = session
        self.folder = folder
        changes = None if session.members else session.changes
        self.drift = DriftFile(folder.files / "drift.csv", changes, session.rows_used, saved)
        self.forecasts = ForecastFile(request, session, folder.files, saved, kept)
        self.prefix = Prefix(request.source) if request.rereadable else None
        self.last = time.monotonic()
        self.rows = session.rows_read
        self._opened = contextlib.ExitStack()

    def __enter__(self) -> RunFiles:
        with contextlib.ExitStack() as opened:
            opened.enter_context(self.drift)
            opened.enter_context(self.forecasts)
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()

    def tick(self) -> None:
        """Save, if it is time and rows have come. What cannot be written now is tried again later."""
        seconds = self.request.run.checkpoint
        if not seconds or time.monotonic() - self.last < seconds or self.rows == self.session.rows_read:
            return
        first = not self.folder.belief.is_file()
        try:
            self.save()
        except DataError as error:
            note(f"credo: the state could not be saved ({str(error).rstrip('.')}); learning continues.")
        else:
            if first:
                note(
                    f"saved in {self.folder.path} every {seconds:g} s; a run that is cut short continues "
                    f"with: {self.command}",
                    self.request.run.quiet,
                )
        self.last = time.monotonic()

    def add(self, made: list[Forecasts]) -> None:
        """Write the forecasts of a chunk that is learned.

        If that fails, the state before these rows is saved, or if none was, that after them.
        """
        try:
            self.forecasts.add(made)
        except DataError:
            if not self.folder.belief.is_file():
                self.save()
            raise

    def save(self) -> None:
        """Save the session, with its place in the source."""
        try:
            self.drift.flush()
            self.forecasts.mark()
        except OSError as error:
            raise DataError(f"cannot write {self.folder.path}: {error.strerror or error}.") from None
        self._note_place()
        self.session.save(self.folder.belief)
        self.rows = self.session.rows_read

    def _note_place(self) -> None:
        progress = self.session.progress
        if self.prefix is not None:
            with contextlib.suppress(DataError):  # the file is gone, and cannot be continued
                if self.prefix.line < HEAD:
                    progress.head = self.prefix.upto(min(progress.line, HEAD))
                progress.digest = self.prefix.upto(progress.line)

    def rescue(self, *, torn: bool) -> None:
        """Save once more where learning ends with an error, so that no more is lost than by being killed.

        If the session is `torn` between two rows, the latest state that was saved must do. A run that was
        too short to be saved before writes nothing.
        """
        seconds = self.request.run.checkpoint
        if (
            torn
            or not seconds
            or not (self.folder.belief.is_file() or time.monotonic() - self.last > seconds)
        ):
            return
        with contextlib.suppress(DataError):
            self.save()

    @property
    def command(self) -> str:
        """The command that goes on with the run."""
        return go_on(self.request, self.folder)


def go_on(request: Request, folder: Folder) -> str:
    """The command that goes on with a run."""
    words = ["credo", "learn", request.source, "--resume", str(folder.path)]
    if request.run.predictions is not None:
        words += ["--predictions", request.run.predictions]
        words += ["--keep", ",".join(request.run.keep)] if request.run.keep else []
    return shlex.join(words)


QUANTILES = (0.05, 0.95)
"""The quantiles of numbers: the ends of the 90% interval."""

_SPOOL = "predictions.jsonl"
_TAIL = 4096


class ForecastFile:
    """`--predictions`, the forecast of each row before it was learned from, as a context.

    "-" is standard output, None writes nothing. The rows of a Parquet file, which cannot be written one by
    one, gather beside the belief; `Progress` says which part belongs to its rows.
    """

    def __init__(
        self, request: Request, session: Session, folder: Path, resumed: Path | None, kept: KeptColumns
    ) -> None:
        out = request.run.predictions
        self.out = out
        self.session = session
        self.kept = kept
        self.spreadsheet = request.run.spreadsheet
        self.names = self._heads()
        self.kind: TableFormat = "jsonl" if out in (None, "-") else format_of(Path(str(out)), "--predictions")
        self.path = folder / _SPOOL if self.kind == "parquet" else Path(str(out))
        self.resumed = resumed
        self.file: IO[bytes] | None = None
        if self.spreadsheet and self.kind != "csv":
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
            # the rows are on the disk before the session says that they are
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
    """The hash of the last bytes among the first `size` bytes of a file; empty if there are fewer."""
    if file.seek(0, os.SEEK_END) < size:
        return ""
    file.seek(max(0, size - _TAIL))
    return hashlib.blake2b(file.read(min(size, _TAIL)), digest_size=16).hexdigest()


class DriftFile:
    """`drift.csv`, what was reported about changes, row by row, as a context.

    A resumed run takes the rows so far from the file beside its belief.
    """

    def __init__(self, path: Path, tally: ChangeTally | None, row: int, resumed: Path | None = None) -> None:
        self.path = path
        self.tally = tally
        self.row = row
        self.resumed = resumed
        self.file: TextIO | None = None

    def __enter__(self) -> DriftFile:
        if self.tally is not None:
            heads = ["row", "line"]
            if self.tally.kind == "mixture":
                heads += self.tally.experts
            else:
                heads += ["change", "run_length", "likeliest_run_length", "alarm"]
            try:
                before = self._before(heads)
                write_atomically(self.path, before.encode())
                self.file = self.path.open("a", newline="")
            except OSError as error:
                raise self._refusal(error) from None
            if not before:
                self._write([heads])
        return self

    def _before(self, heads: list[str]) -> str:
        """The lines up to the place from which the run goes on; empty if they are not there."""
        beside = None if self.resumed is None else self.resumed.parent / self.path.name
        if beside is None or not beside.is_file():
            return ""
        lines = beside.read_text().splitlines(keepends=True)[: self.row + 1]
        whole = [f"{number}," for number in range(1, self.row + 1)]
        if len(lines) <= self.row or lines[0] != ",".join(heads) + "\n" or not lines[-1].endswith("\n"):
            return ""
        if all(map(str.startswith, lines[1:], whole)):
            return "".join(lines)
        return ""

    def flush(self) -> None:
        """Bring what was written to the disk."""
        if self.file is not None:
            self.file.flush()
            os.fsync(self.file.fileno())

    def __exit__(self, *error: object) -> None:
        if self.file is not None:
            self.file.close()

    def add(self, lines: np.ndarray, steps: Steps | None) -> None:
        """Write the rows that came from these lines."""
        if steps is None or self.tally is None:
            return
        rows = self.row + 1 + np.arange(len(lines))
        self.row += len(lines)
        cells = _weights(steps) if self.tally.kind == "mixture" else _run_lengths(steps)
        self._write([int(row), int(line), *rest] for row, line, rest in zip(rows, lines, cells, strict=True))

    def _write(self, rows: Iterable[Sequence[object]]) -> None:
        assert self.file is not None
        try:
            csv.writer(self.file, lineterminator="\n").writerows(rows)
        except OSError as error:
            raise self._refusal(error) from None

    def _refusal(self, error: OSError) -> DataError:
        return DataError(f"cannot write {self.path.name}: {(error.strerror or str(error)).lower()}.")


def _weights(steps: Steps) -> list[list[str]]:
    return [[f"{share:.6g}" for share in shares] for shares in np.asarray(steps.probs)]


def _run_lengths(steps: Steps) -> list[list[str]]:
    probs = np.asarray(steps.probs)
    lengths = np.maximum(np.asarray(steps.lengths), 0)
    expected = (probs * lengths).sum(axis=1)
    likeliest = lengths[np.arange(len(lengths)), probs.argmax(axis=1)]
    columns = (np.asarray(steps.change), expected, likeliest, np.asarray(steps.alarm))
    return [
        [f"{change:.6g}", f"{mean:.6g}", str(int(top)), str(int(alarm))]
        for change, mean, top, alarm in zip(*columns, strict=True)
    ]
