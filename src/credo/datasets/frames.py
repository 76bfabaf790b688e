"""Small tables: comma-separated text and NumPy archives, read into columns and made into data sets."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Mapping

import numpy as np

from credo.core.errors import DataError
from credo.datasets.dataset import Array, Columns, Dataset

__all__ = ["archive", "columns_of", "tabular", "unzipped"]


def columns_of(content: bytes, place: str) -> Columns:
    """Read comma-separated text with a header into columns (N,): int64, else float64, else text."""
    try:
        header, *rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"))))
    except (ValueError, csv.Error) as error:
        raise DataError(f"{place} is no comma-separated text with a header ({error}).") from error
    rows = [row for row in rows if row]
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise DataError(f"{place}: row {number} must have {len(header)} values; got {len(row)}.")
    if not rows:
        raise DataError(f"{place} has no rows.")
    return {name: _typed(values) for name, values in zip(header, zip(*rows, strict=True), strict=True)}


def tabular(
    name: str,
    columns: Columns,
    *,
    target: str,
    features: Mapping[str, Array] | None = None,
    class_names: tuple[str, ...] = (),
    note: str = "",
    licence: str = "",
    ordered: bool = False,
) -> Dataset:
    """A data set of a table's columns: a classification where the target has class names."""
    if target not in columns:
        raise DataError(f"data set {name!r} must have the column {target!r}; got {', '.join(columns)}.")
    features = (
        {key: value for key, value in columns.items() if key != target} if features is None else features
    )
    y = columns[target]
    if class_names:
        values, y = np.unique(y, return_inverse=True)
        if len(values) != len(class_names):
            raise DataError(
                f"data set {name!r} must have {len(class_names)} classes in {target!r}; got {len(values)}."
            )
    return Dataset(
        name=name,
        x=np.stack([np.asarray(value, np.float32) for value in features.values()], axis=1),
        y=y.astype(np.int32 if class_names else np.float32),
        task="classification" if class_names else "regression",
        feature_names=tuple(features),
        class_names=class_names,
        note=note,
        licence=licence,
        columns=columns,
        ordered=ordered,
    )


def archive(content: bytes, place: str, *fields: str) -> tuple[Array, ...]:
    """Read arrays from a NumPy archive, in the order of `fields`. Pickled objects are refused."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return tuple(arrays[field] for field in fields)
    except (KeyError, ValueError, OSError, EOFError, zipfile.BadZipFile, AttributeError, TypeError) as error:
        raise DataError(f"{place} must be a NumPy archive with {' and '.join(fields)} ({error}).") from error


def unzipped(content: bytes, place: str) -> bytes:
    """The first file of a zip archive, leaving out the metadata files that macOS adds."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as files:
            return files.read(next(item for item in files.namelist() if not item.startswith("__MACOSX")))
    except (zipfile.BadZipFile, StopIteration) as error:
        raise DataError(f"{place} is no zip archive with a file in it ({error}).") from error


def _typed(values: tuple[str, ...]) -> Array:
    for dtype in (np.int64, np.float64):
        try:
            return np.array(values).astype(dtype)
        except (ValueError, OverflowError):
            continue
    return np.array(values)
