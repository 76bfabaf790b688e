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
    """Read comma-separated text with a header into columns.

    Arguments:
        content: the text, as UTF-8.
        place: where it came from, for the sentences of errors.

    Returns:
        One array of shape `(N,)` for each column: int64 or float64 where all its values are such numbers,
        else text.

    Raises:
        DataError: if the text has no rows or a row has another number of values than the header.

    Example:
        >>> columns_of(b"size,colour\\n1,red\\n2,blue\\n", "a file")["size"]
        array([1, 2])
    """
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
    """Make a data set of a table's columns.

    Arguments:
        name: the data set's name.
        columns: the raw columns, each of shape `(N,)`.
        target: the column to predict.
        features: the columns of `x`, each a number or a flag; all columns but the target where it is None.
        class_names: the names of the sorted values of the target; without them the task is a regression.
        note: where the rows came from.
        licence: the licence of the data.
        ordered: whether the order of the rows matters.

    Returns:
        The data set, with the raw columns.

    Raises:
        DataError: if the target is not among the columns or does not have as many values as there are names.

    Example:
        >>> table = {"size": np.array([1, 2]), "sort": np.array(["b", "a"])}
        >>> data = tabular("toy", table, target="sort", class_names=("a", "b"))
        >>> data.x.tolist(), data.y.tolist()
        ([[1.0], [2.0]], [1, 0])
    """
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
    """Read arrays from a NumPy archive. Pickled objects are refused.

    Arguments:
        content: the bytes of the `.npz` file.
        place: where it came from, for the sentences of errors.
        fields: the names of the arrays.

    Returns:
        The arrays, in the order of `fields`.

    Raises:
        DataError: if the archive is damaged or lacks an array.

    Example:
        >>> buffer = io.BytesIO()
        >>> np.savez(buffer, x=np.ones(2))
        >>> archive(buffer.getvalue(), "a file", "x")
        (array([1., 1.]),)
    """
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return tuple(arrays[field] for field in fields)
    except (KeyError, ValueError, OSError, EOFError, zipfile.BadZipFile, AttributeError, TypeError) as error:
        raise DataError(f"{place} must be a NumPy archive with {' and '.join(fields)} ({error}).") from error


def unzipped(content: bytes, place: str) -> bytes:
    """The first file of a zip archive, leaving out the metadata files that macOS adds.

    Arguments:
        content: the bytes of the archive.
        place: where it came from, for the sentences of errors.

    Returns:
        The bytes of the file.

    Raises:
        DataError: if the archive is damaged or empty.

    Example:
        >>> unzipped(b"no archive", "a file")
        Traceback (most recent call last):
        ...
        credo.core.errors.DataError: a file is no zip archive with a file in it (File is not a zip file).
    """
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
