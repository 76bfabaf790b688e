"""Loading a data set by its name."""

from __future__ import annotations

import os
from typing import get_args

from credo.core.errors import DataError, require_choice, require_integer, suggest
from credo.datasets.dataset import Dataset, Task
from credo.datasets.entries import CATALOGUE, Entry
from credo.datasets.finder import Finder

__all__ = ["load", "names", "splits"]


def load(
    name: str,
    *,
    split: str = "train",
    limit: int | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    allow_download: bool = True,
) -> Dataset:
    """Load a data set by its name.

    Its files are looked for in `data_dir` (else `CREDO_DATA_DIR`), in the cache, in installed packages, and
    on the network, in this order. Rows that were published without test rows are divided by a fixed seed,
    4 to 1; a stream is one split, since every row of it is predicted before it is learned from.

    Arguments:
        name: one of `names()`.
        split: `"train"`, `"test"` or `"all"`; a stream has no test rows.
        limit: the largest number of rows, or None for all.
        data_dir: the folder to look in first.
        allow_download: whether the network may be used.

    Returns:
        The data set, with x of shape `(N, ...)` in float32 and y of shape `(N,)`.

    Raises:
        DataError: if the name or the split is unknown, or the data cannot be found or read; the message says
            where they were looked for and what to do.
        CredoError: if `limit` is not a whole number above 0.

    Example:
        >>> wine = load("wine", split="test", limit=10)
        >>> wine
        Dataset('wine', classification, 10 rows, x of shape (10, 13))
    """
    entry = _entry(name)
    if split not in entry.splits:
        why = (
            f"; {name!r} is one stream, in which every row is predicted before it is learned from"
            if split == "test"
            else ""
        )
        raise DataError(
            f"split of data set {name!r} must be one of {', '.join(entry.splits)}; got {split!r}{why}."
        )
    if limit is not None:
        require_integer("limit", limit, 1)
    data = entry.read(Finder(name, data_dir, allow_download), split)
    return data if limit is None else data.rows(slice(limit))


def names(task: Task | None = None) -> dict[str, str]:
    """All data sets that can be loaded.

    Arguments:
        task: `"classification"` or `"regression"` for the data sets of this task, or None for all.

    Returns:
        A line about each data set, by its name.

    Raises:
        CredoError: if there is no such task.

    Example:
        >>> "mnist" in names()
        True
        >>> names()["yacht"]
        'resistance of 308 yachts, 6 features'
    """
    if task is not None:
        require_choice("task", task, get_args(Task))
    return {name: entry.description for name, entry in CATALOGUE.items() if task in (None, entry.task)}


def splits(name: str) -> tuple[str, ...]:
    """The splits a data set has.

    Arguments:
        name: one of `names()`.

    Returns:
        `("train", "test", "all")`, or `("train", "all")`, which are the same rows, for a stream.

    Raises:
        DataError: if the name is unknown.

    Example:
        >>> splits("electricity")
        ('train', 'all')
    """
    return _entry(name).splits


def _entry(name: str) -> Entry:
    if name not in CATALOGUE:
        hint = suggest(name, CATALOGUE) or f"the names are {', '.join(CATALOGUE)}."
        raise DataError(f"there is no data set {name!r}; {hint}")
    return CATALOGUE[name]
