"""`credo predict`: forecasts for the rows of a file from a saved belief; nothing is learned."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from credo.cli.output import require_writable_file
from credo.cli.progress import note
from credo.cli.session import Session
from credo.core.errors import CredoError, DataError
from credo.core.files import write_atomically
from credo.tables import BadRow, open_table

__all__ = ["predict_file"]

SHOWN_BAD = 3


def predict_file(saved: Path, file: str, out: str, level: float, strict: bool, chunk: int) -> int:
    """Write the predictions of a file's rows; returns the exit status."""
    session = Session.load(saved, chunk)
    if session.used == 0:
        raise CredoError(f"{saved} has learned from no row; learn first.")
    if not hasattr(session.encoding, "schema"):
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
        shown = "; ".join(map(str, bad[:SHOWN_BAD])) + (
            f", and {len(bad) - SHOWN_BAD:,} more" if len(bad) > SHOWN_BAD else ""
        )
        note(f"{file}: {len(bad):,} bad row{'s'[: len(bad) != 1]} skipped: {shown}")
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
            said = session.predict(block.x, (0.5 - level / 2, 0.5 + level / 2))
            if said.probs is not None:
                best = said.probs.argmax(axis=1)
                rows: list[list[Any]] = [
                    [int(line), classes[top], *(f"{p:.6g}" for p in probs)]
                    for line, top, probs in zip(block.lines, best, said.probs, strict=True)
                ]
            else:
                assert said.mean is not None and said.sd is not None and said.quantiles is not None
                rows = [
                    [int(line), *(f"{value:.8g}" for value in (mean, sd, *ends))]
                    for line, mean, sd, ends in zip(
                        block.lines, said.mean, said.sd, said.quantiles, strict=True
                    )
                ]
            yield _csv(rows), len(rows)


def _csv(rows: list[list[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
