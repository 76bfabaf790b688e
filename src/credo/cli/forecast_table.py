"""Forecasts as rows of a table: CSV, JSON lines or Parquet, with the same columns."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from credo.core.errors import DataError
from credo.sessions import Forecasts

__all__ = [
    "SUFFIXES",
    "Cell",
    "TableFormat",
    "as_csv",
    "as_json_lines",
    "cells",
    "format_of",
    "heads",
    "write_parquet",
]

TableFormat: TypeAlias = Literal["csv", "jsonl", "parquet"]
"""A format for forecasts."""

Cell: TypeAlias = int | float | str | None
"""A number with the digits that are written, a label, or nothing."""

SUFFIXES: dict[str, TableFormat] = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
"""The formats by the suffix of a file."""

_BATCH = 10_000


def format_of(path: Path, option: str) -> TableFormat:
    """The format of a file of forecasts.

    Arguments:
        path: the file.
        option: the option that names it.

    Raises:
        DataError: its suffix is none of the known ones, or it is Parquet and pyarrow is not installed.
    """
    kind = SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise DataError(f"{option} {path} must end in {', '.join(SUFFIXES)}, or be - for standard output.")
    if kind == "parquet":
        try:
            import pyarrow.parquet
        except ImportError:
            raise DataError(
                f"{option} {path} is parquet, which needs pyarrow: pip install pyarrow."
            ) from None
        assert pyarrow.parquet
    return kind


def heads(classes: Sequence[str], *, target: bool) -> list[str]:
    """The names of the columns.

    >>> heads(["no", "yes"], target=True), heads([], target=False)
    (['row', 'target', 'prediction', 'p(no)', 'p(yes)'], ['row', 'mean', 'sd', 'lower', 'upper'])
    """
    forecast = ["prediction", *(f"p({label})" for label in classes)] if classes else _MOMENTS
    return ["row", *(["target"] if target else []), *forecast]


_MOMENTS = ["mean", "sd", "lower", "upper"]


def cells(forecasts: Forecasts, *, target: bool) -> list[list[Cell]]:
    """The rows of the table.

    Arguments:
        forecasts: forecasts of classes, or of numbers with two quantiles.
        target: whether the observations are among the columns; an unknown one is None, as is a number that
            is not finite.
    """
    rows: list[list[Cell]]
    if forecasts.probs is not None:
        shares = zip(forecasts.labels, forecasts.probs.tolist(), strict=True)
        rows = [[label, *(_digits(p, 6) for p in probs)] for label, probs in shares]
    else:
        assert forecasts.mean is not None and forecasts.sd is not None and forecasts.quantiles is not None
        moments = zip(forecasts.mean, forecasts.sd, forecasts.quantiles, strict=True)
        rows = [[_digits(number, 8) for number in (mean, sd, *ends)] for mean, sd, ends in moments]
    if target:
        rows = [[known, *row] for known, row in zip(_targets(forecasts), rows, strict=True)]
    return [[int(line), *row] for line, row in zip(forecasts.lines, rows, strict=True)]


def _targets(forecasts: Forecasts) -> list[Cell]:
    if forecasts.targets is None:
        return [None] * len(forecasts.lines)
    if forecasts.probs is None:
        return [float(number) for number in forecasts.targets]
    return [forecasts.classes[number] for number in forecasts.targets]


def _digits(number: float, count: int) -> float | None:
    return float(f"{number:.{count}g}") if math.isfinite(number) else None


def as_csv(rows: Iterable[Sequence[Cell]]) -> str:
    """The rows as CSV.

    >>> as_csv([["row", "mean"], [2, 3.0], [3, None]])
    'row,mean\\n2,3\\n3,\\n'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_short(cell) for cell in row] for row in rows)
    return text.getvalue()


def _short(cell: Cell) -> Cell:
    """A number in few digits where they say it exactly."""
    if not isinstance(cell, float):
        return cell
    text = f"{cell:.8g}"
    return text if float(text) == cell else repr(cell)


def as_json_lines(names: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """The rows as JSON objects, one a line.

    >>> as_json_lines(["row", "mean"], [[2, 0.5], [3, None]])
    '{"row": 2, "mean": 0.5}\\n{"row": 3, "mean": null}\\n'
    """
    objects = (dict(zip(names, row, strict=True)) for row in rows)
    return "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in objects)


def write_parquet(path: Path, names: Sequence[str], lines: Iterable[str], *, classes: bool) -> None:
    """Write rows, given as JSON lines, to a Parquet file, completely or not at all.

    Arguments:
        path: the file.
        names: the columns.
        lines: the rows.
        classes: whether classes were forecast.

    Raises:
        DataError: the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    words = {"prediction", "target"} if classes else set()
    kinds = {"row": pa.int64(), **dict.fromkeys(words, pa.string())}
    schema = pa.schema([(name, kinds.get(name, pa.float64())) for name in names])
    part = path.with_name(f".{path.name}.part")
    try:
        with pq.ParquetWriter(part, schema) as writer:
            batch: list[dict[str, Cell]] = []
            for line in lines:
                batch.append(json.loads(line))
                if len(batch) == _BATCH:
                    writer.write_table(pa.Table.from_pylist(batch, schema))
                    batch = []
            writer.write_table(pa.Table.from_pylist(batch, schema))
        os.replace(part, path)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}.") from None
    finally:
        part.unlink(missing_ok=True)
