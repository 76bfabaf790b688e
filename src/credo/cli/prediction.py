"""`credo predict`: forecasts for the rows of a file from a saved belief; nothing is learned."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from credo.cli.flags import in_flags
from credo.cli.output import require_writable_file
from credo.cli.progress import note
from credo.core.errors import CredoError, DataError
from credo.core.files import write_atomically
from credo.sessions import Forecasts, Session, TableEncoding
from credo.tables import BadRow, open_table

__all__ = ["predict_file"]

SHOWN_BAD = 3


def predict_file(saved: Path, file: str, out: str, level: float, strict: bool, chunk: int) -> int:
    """Write the predictions of a file's rows.

    Arguments:
        saved: a saved session.
        file: the rows; "-" is standard input.
        out: where to write; "-" is standard output.
        level: the probability of the interval.
        strict: whether the first bad row is an error.
        chunk: rows in a compiled call.

    Returns:
        The exit status.

    Raises:
        CredoError: the session learned from nothing or from images.
        DataError: no row can be predicted, or the output cannot be written.
    """
    session = Session.load(saved, chunk)
    if session.rows_used == 0:
        raise CredoError(f"{saved} has learned from no row; learn first.")
    if not isinstance(session.encoding, TableEncoding):
        raise CredoError(
            f"{saved} was learned from images, which a table cannot hold; `credo predict` is for tables."
        )
    if out != "-":
        require_writable_file(Path(out), "--out")
    bad: list[BadRow] = []
    parts = _parts(session, file, level, strict, chunk, bad)
    rows = 0
    if out == "-":
        for text, count in parts:
            sys.stdout.write(text)
            rows += count
        sys.stdout.flush()
    else:
        texts = []
        for text, count in parts:
            texts.append(text)
            rows += count
        write_atomically(Path(out), "".join(texts).encode())
    if bad:
        examples = in_flags("; ".join(map(str, bad[:SHOWN_BAD]))) + (
            f", and {len(bad) - SHOWN_BAD:,} more" if len(bad) > SHOWN_BAD else ""
        )
        note(f"{file}: {len(bad):,} bad row{'s'[: len(bad) != 1]} skipped: {examples}")
    if not rows:
        raise DataError(f"{file} has no row that can be predicted" + (f": {bad[0]}." if bad else "."))
    if out != "-":
        note(f"{rows:,} predictions of {session.encoding.target!r} in {out}")
    return 0


def _parts(
    session: Session, file: str, level: float, strict: bool, chunk: int, bad: list[BadRow]
) -> Iterator[tuple[str, int]]:
    """The CSV text of the header and of each chunk, and how many rows it holds."""
    classes = session.encoding.classes
    names = [f"p({label})" for label in classes] or ["sd", "lower", "upper"]
    with open_table(file, chunk_rows=chunk, strict=strict) as source:
        yield _csv([["row", "prediction" if classes else "mean", *names]]), 0
        for raw in source:
            block = session.encoding.encode(raw, learn=False, need_target=False)
            if strict and block.bad:
                raise DataError(f"{file}: {block.bad[0]} (--strict stops at the first bad row).")
            bad += block.bad
            if not len(block.lines):
                continue
            forecasts = session.predict(block, (0.5 - level / 2, 0.5 + level / 2))
            yield _csv(_cells(forecasts)), len(block)


def _cells(forecasts: Forecasts) -> list[list[object]]:
    if forecasts.probs is not None:
        columns = zip(forecasts.lines, forecasts.labels, forecasts.probs, strict=True)
        return [[int(line), label, *(f"{p:.6g}" for p in probs)] for line, label, probs in columns]
    assert forecasts.mean is not None and forecasts.sd is not None and forecasts.quantiles is not None
    moments = zip(forecasts.lines, forecasts.mean, forecasts.sd, forecasts.quantiles, strict=True)
    return [[int(line), *(f"{value:.8g}" for value in (mean, sd, *ends))] for line, mean, sd, ends in moments]


def _csv(rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
