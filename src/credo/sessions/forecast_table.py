"""Forecasts as rows of a table: CSV, JSON lines or Parquet, with the same columns."""

from __future__ import annotations

import csv
import functools
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from credo.core.errors import DataError
from credo.core.files import replacing
from credo.sessions import Forecasts
from credo.tables.schema import is_number

__all__ = [
    "SUFFIXES",
    "Cell",
    "TableFormat",
    "as_csv",
    "as_json_lines",
    "as_words",
    "format_of",
    "heads",
    "rows_as_text",
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
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def format_of(path: Path, option: str) -> TableFormat:
    """The format of a file of forecasts, by its suffix; `option` is the one that names the file."""
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
    """The names of the columns."""
    forecast = ["prediction", *(f"p({label})" for label in classes)] if classes else _MOMENTS
    return ["row", *(["target"] if target else []), *forecast]


_MOMENTS = ["mean", "sd", "lower", "upper"]


def rows_as_text(
    forecasts: Forecasts,
    names: Sequence[str],
    kind: TableFormat,
    *,
    spreadsheet: bool = False,
    kept: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """The rows as CSV with the columns `names` from `heads`, or as JSON lines, which also have later classes.
    The texts of `kept` columns stand behind the number of the row. What is not finite or not known is
    missing. For a `spreadsheet`, no cell of a CSV begins like a formula.
    """
    as_cells = functools.partial(_csv_cells, spreadsheet=spreadsheet) if kind == "csv" else _json_cells
    columns = {"row": list(map(str, forecasts.lines.tolist()))}
    columns |= {name: as_cells(texts) for name, texts in (kept or {}).items()}
    if "target" in names:
        columns["target"] = _targets(forecasts, kind, as_cells)
    if forecasts.probs is not None:
        labels = as_cells(forecasts.classes)
        columns["prediction"] = [labels[top] for top in forecasts.probs.argmax(axis=1).tolist()]
        heads_of_shares = heads(forecasts.classes, target=False)[2:]
        for name, share in zip(heads_of_shares, forecasts.probs.T, strict=True):
            columns[name] = _numbers(share, 6, kind)
    else:
        assert forecasts.mean is not None and forecasts.sd is not None and forecasts.quantiles is not None
        moments = (forecasts.mean, forecasts.sd, *forecasts.quantiles.T)
        columns |= {name: _numbers(one, 8, kind) for name, one in zip(_MOMENTS, moments, strict=True)}
    if kind == "csv":
        absent = [""] * len(forecasts.lines)
        rows = zip(*(columns.get(name, absent) for name in names), strict=True)
        return "".join(f"{','.join(row)}\n" for row in rows)
    keys = ", ".join(f"{json.dumps(name, ensure_ascii=False)}: %s".replace("%", "%%") for name in columns)
    row_text = "{" + keys.replace(": %%s", ": %s") + "}\n"
    return "".join(map(row_text.__mod__, zip(*columns.values(), strict=True)))


def _targets(
    forecasts: Forecasts, kind: TableFormat, as_cells: Callable[[Sequence[str]], list[str]]
) -> list[str]:
    if forecasts.targets is None:
        return ["" if kind == "csv" else "null"] * len(forecasts.lines)
    if forecasts.probs is None:
        numbers = [float(number) for number in forecasts.targets]
        if kind == "csv":
            return list(map(_short, numbers))
        return list(map(json.dumps, numbers))
    labels = as_cells(forecasts.classes)
    return [labels[number] for number in forecasts.targets.tolist()]


def _csv_cells(labels: Sequence[str], spreadsheet: bool) -> list[str]:
    return [as_csv([["", as_words(label) if spreadsheet else label]])[1:-1] for label in labels]


def as_words(label: str) -> str:
    """A label that a spreadsheet takes for words: an apostrophe comes before what begins like a formula.

    >>> as_words("=1+1"), as_words("-1.5")
    ("'=1+1", '-1.5')
    """
    if label.startswith(_FORMULA) and not is_number(label):
        return f"'{label}"
    return label


def _json_cells(labels: Sequence[str]) -> list[str]:
    return [json.dumps(label, ensure_ascii=False) for label in labels]


def _numbers(column: np.ndarray, digits: int, kind: TableFormat) -> list[str]:
    """Numbers with so many digits, as they are written."""
    texts = (f"%.{digits}g " * len(column) % tuple(column.tolist())).split()
    if kind != "csv":
        texts = list(map(repr, map(float, texts)))
    if np.isfinite(column).all():
        return texts
    missing = "" if kind == "csv" else "null"
    return [text if known else missing for text, known in zip(texts, np.isfinite(column), strict=True)]


def as_csv(rows: Iterable[Sequence[str]]) -> str:
    """Rows of text as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _short(number: float) -> str:
    """A number in few digits where they say it exactly."""
    text = f"{number:.8g}"
    if float(text) == number:
        return text
    return repr(number)


def as_json_lines(names: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """The rows as JSON objects, one a line."""
    objects = (dict(zip(names, row, strict=True)) for row in rows)
    return "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in objects)


def write_parquet(
    path: Path, names: Sequence[str], lines: Iterable[str], *, classes: bool, words: Sequence[str] = ()
) -> None:
    """Write rows, given as JSON lines, to a Parquet file, completely or not at all; `words` are the names of
    further columns of text.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = [*words, *(("prediction", "target") if classes else ())]
    kinds = {"row": pa.int64(), **dict.fromkeys(texts, pa.string())}
    schema = pa.schema([(name, kinds.get(name, pa.float64())) for name in names])
    with replacing(path) as part, pq.ParquetWriter(part, schema) as writer:
        batch: list[dict[str, Cell]] = []
        for line in lines:
            batch.append(json.loads(line))
            if len(batch) == _BATCH:
                writer.write_table(pa.Table.from_pylist(batch, schema))
                batch = []
        writer.write_table(pa.Table.from_pylist(batch, schema))
