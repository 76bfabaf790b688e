"""Data sets in memory, their division, and how small tables become one.

Tables are comma-separated text and NumPy archives.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from credo.core.errors import DataError

__all__ = ["Array", "Columns", "Dataset", "Task", "archive", "columns_of", "divide", "tabular", "unzipped"]

Array = np.ndarray[Any, Any]
Columns = dict[str, Array]
Task = Literal["classification", "regression"]


@dataclass(frozen=True, repr=False, eq=False)
class Dataset:
    """A data set in memory, as NumPy arrays with one row for each observation.

    Arguments:
        name: the name it was loaded by.
        x: inputs, float32 of shape `(N, ...)`; images have shape `(N, height, width)` and values in [0, 1].
        y: targets of shape `(N,)`: int32 positions in `class_names`, or float32 numbers for a regression.
        task: `"classification"` or `"regression"`.
        feature_names: one name for each column of `x`; empty for images.
        class_names: one name for each class; empty for a regression.
        note: where the rows came from and what a reader of results must know about them.
        licence: the licence of the data.
        columns: the raw columns, numbers and text, each of shape `(N,)`, where the source is a table of mixed
            types; the target is among them.
        rewards: the reward of every arm, float32 of shape `(N, arms)`, where the data set is a bandit
            problem; `y` is then the arm with the highest reward.
        ordered: whether the rows are one stream whose order matters.

    Raises:
        DataError: if the arrays do not have one row for each target.

    Example:
        >>> import numpy as np
        >>> toy = Dataset("toy", np.zeros((3, 2), np.float32), np.zeros(3, np.float32), "regression")
        >>> toy
        Dataset('toy', regression, 3 rows, x of shape (3, 2))
    """

    name: str
    x: Array
    y: Array
    task: Task
    feature_names: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    note: str = ""
    licence: str = ""
    columns: Columns | None = None
    rewards: Array | None = None
    ordered: bool = False

    def __post_init__(self) -> None:
        lengths = {"y": self.y.shape[:1], **{key: value.shape[:1] for key, value in self._more().items()}}
        for field, length in lengths.items():
            if length != self.x.shape[:1]:
                raise DataError(
                    f"data set {self.name!r}: {field} must have one row for each of the {len(self.x)} rows "
                    f"of x; got shape {length}."
                )
        if self.feature_names and len(self.feature_names) != int(np.prod(self.x.shape[1:])):
            raise DataError(
                f"data set {self.name!r}: feature_names must name the columns of x, of shape {self.x.shape}; "
                f"got {len(self.feature_names)} names."
            )

    def __len__(self) -> int:
        """The number of rows.

        Example:
            >>> len(Dataset("toy", np.zeros((3, 2)), np.zeros(3), "regression"))
            3
        """
        return len(self.x)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {self.task}, {len(self)} rows, x of shape {self.x.shape})"

    def rows(self, index: slice | Array) -> Dataset:
        """Pick rows by a slice or by an array of positions.

        Arguments:
            index: a slice, or integers of shape `(M,)`.

        Returns:
            A data set of the rows, in the order of `index`.

        Example:
            >>> toy = Dataset("toy", np.zeros((3, 2)), np.arange(3.0), "regression")
            >>> toy.rows(slice(1, None)).y
            array([1., 2.])
        """
        columns = None if self.columns is None else {key: value[index] for key, value in self.columns.items()}
        rewards = None if self.rewards is None else self.rewards[index]
        return replace(self, x=self.x[index], y=self.y[index], columns=columns, rewards=rewards)

    def _more(self) -> Columns:
        rewards = {} if self.rewards is None else {"rewards": self.rewards}
        return {**rewards, **{f"columns[{key!r}]": value for key, value in (self.columns or {}).items()}}


def divide(data: Dataset, split: str, *, test_rows: int, seed: int = 0) -> Dataset:
    """Divide a data set that was published without test rows, always in the same way.

    The rows are put in an order drawn with a fixed seed, and the last `test_rows` of them are for testing.
    `RandomState` is used because NumPy promises never to change its numbers.
    """
    order = np.random.RandomState(seed).permutation(len(data))
    border = len(data) - test_rows
    pick = {"train": slice(None, border), "test": slice(border, None), "all": slice(None)}[split]
    return data.rows(order[pick])


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
