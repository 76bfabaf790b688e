"""`credo predict`: forecasts for the rows of a file from a saved belief; nothing is learned."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from credo.cli.flags import in_flags
from credo.cli.output import BELIEF, require_writable_file
from credo.cli.progress import note, write_out
from credo.cli.run_files import KeptColumns
from credo.core.errors import CredoError, DataError, marked
from credo.core.files import write_atomically
from credo.sessions import Forecasts, SeriesEncoding, Session, TableEncoding
from credo.sessions.forecast_table import SUFFIXES, as_csv, format_of, heads, rows_as_text, write_parquet
from credo.tables import BadRow, open_table
from credo.tables.live import open_pipe

__all__ = ["predict_file"]

SHOWN_BAD = 3


def _load_of_a_table(saved: Path, file: str, chunk: int) -> Session:
    """The session in a file, or in the folder of a run, which can forecast the rows of a table."""
    if saved.is_dir():
        if not (saved / BELIEF).is_file():
            raise DataError(f"{saved} has no {BELIEF}: it must be the folder of a run that has ended.")
        saved = saved / BELIEF
    session = Session.load(saved, chunk)
    if session.rows_used == 0:
        raise CredoError(f"{saved} has learned from no row; learn first.")
    if not isinstance(session.encoding, TableEncoding):
        raise CredoError(
            f"{saved} was learned from images, which a table cannot hold; `credo predict` is for tables."
        )
    if isinstance(session.encoding, SeriesEncoding):
        raise CredoError(
            f"{saved} was learned from a series, whose rows get their lags as they are learned: continue "
            f"with `credo learn {file} --resume {saved}`, which writes the forecast of the next steps."
        )
    return session


def predict_file(
    saved: Path,
    file: str,
    out: str,
    level: float,
    strict: bool,
    spreadsheet: bool,
    chunk: int,
    keep: tuple[str, ...] = (),
) -> int:
    """Write the predictions of a file's rows, `chunk` of them in a compiled call, beside the columns `keep`
    as they stand in the file; the exit status.
    """
    session = _load_of_a_table(saved, file, chunk)
    if out != "-":
        require_writable_file(Path(out), "--out")
    bad: list[BadRow] = []
    names = heads(session.encoding.classes, target=False)
    columns = KeptColumns(file, keep, names)
    names[1:1] = keep
    kind = "csv" if out == "-" or Path(out).suffix.lower() not in SUFFIXES else format_of(Path(out), "--out")
    if spreadsheet and kind != "csv":
        raise DataError(f"--spreadsheet is for CSV; --out is {out}.")
    parts = _parts(session, file, level, strict, chunk, columns, bad)
    rows = 0
    texts = [as_csv([names])] if kind == "csv" else []
    for part, kept in parts:
        texts.append(rows_as_text(part, names, kind, spreadsheet=spreadsheet, kept=kept))
        rows += len(part.lines)
        if out == "-":
            write_out("".join(texts))
            texts = []
    if kind == "parquet":
        lines = "".join(texts).split("\n")[:-1]
        write_parquet(Path(out), names, lines, classes=bool(session.encoding.classes), words=keep)
    elif out != "-":
        write_atomically(Path(out), "".join(texts).encode())
    if bad:
        examples = "; ".join(in_flags(str(row)) for row in bad[:SHOWN_BAD])
        more = f", and {len(bad) - SHOWN_BAD:,} more" if len(bad) > SHOWN_BAD else ""
        note(f"{file}: {len(bad):,} bad row{'s'[: len(bad) != 1]} skipped: {examples}{more}")
    if not rows:
        why = f": {marked(str(bad[0]))}" if bad else ""
        raise DataError(f"{file} has no row that can be predicted{why}.")
    if out != "-":
        note(f"{rows:,} predictions of {session.encoding.target!r} in {out}")
    return 0


def _parts(
    session: Session,
    file: str,
    level: float,
    strict: bool,
    chunk: int,
    columns: KeptColumns,
    bad: list[BadRow],
) -> Iterator[tuple[Forecasts, dict[str, list[str]]]]:
    """The forecasts, chunk by chunk, and the texts of the kept columns in their rows."""
    pipe = open_pipe(file)
    if pipe is not None:
        pipe.prompt()
    with open_table(file if pipe is None else pipe, chunk_rows=chunk, strict=strict) as source:
        for raw in source:
            block = session.encoding.encode(raw, learn=False, need_target=False)
            if strict and block.bad:
                raise DataError(f"{file}: {marked(str(block.bad[0]))} (--strict stops at the first bad row).")
            bad += block.bad
            columns.note(raw)
            if len(block.lines):
                kept = columns.take(block.lines)
                yield session.predict(block, (0.5 - level / 2, 0.5 + level / 2)), kept
