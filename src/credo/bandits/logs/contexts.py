"""Checks of a log, for names and numbers of arms and rows of probabilities; and its contexts.

Contexts are JSON values, columns, rows, and features of a regression.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from credo.core.errors import DataError, shown
from credo.core.types import PyTree
from credo.tables import Chunk, Encoder, infer_schema

__all__ = [
    "ACTIONS",
    "NO_PROPENSITY",
    "arm_names",
    "arm_numbers",
    "check_pmfs",
    "context_columns",
    "context_leaves",
    "contexts_of",
    "features_of",
    "features_of_arm",
    "row_of",
    "take_rows",
]

NO_PROPENSITY = (
    "has no propensity, the probability with which its arm was drawn; without it nothing can be said about "
    "another policy, and it cannot be found out afterwards: record `Choice.propensity` with every decision"
)


def check_pmfs(field: str, pmfs: np.ndarray, allowed: np.ndarray) -> None:
    """Refuse, as a `DataError`, rows (N, K) that are no probabilities, or give some to a forbidden arm."""
    with np.errstate(invalid="ignore"):
        good = (pmfs >= -1e-9).all(axis=1) & (np.abs(pmfs.sum(axis=1) - 1.0) < 1e-4)
    wrong = np.flatnonzero(~good)
    if wrong.size:
        shown = np.array2string(pmfs[wrong[0]], threshold=6, precision=4)
        raise DataError(
            f"{field} must be probabilities that sum to 1; row {wrong[0]} is {shown}.", field=field
        )
    barred = np.flatnonzero((np.where(allowed, 0.0, pmfs) > 1e-6).any(axis=1))
    if barred.size:
        raise DataError(
            f"{field} must be 0 for arms that are not allowed; in {barred.size} of {len(pmfs)} rows they are "
            f"not, first in row {barred[0]}.",
            field=field,
        )


def arm_names(arms: Sequence[Any] | int) -> tuple[str, ...]:
    """The names of arms as text: those given, or the numbers from 0 if only their count is.

    A `DataError` says that there is no arm, or that two have one name.
    """
    if isinstance(arms, str) or (not isinstance(arms, int | np.integer) and not len(arms)):
        raise DataError(f"arms must be the names of one or more arms; got {arms!r}.", field="arms")
    names = tuple(str(arm) for arm in (range(arms) if isinstance(arms, int | np.integer) else arms))
    if len(set(names)) < len(names):
        raise DataError(f"arms must have different names; got {', '.join(names[:8])}.", field="arms")
    return names


def arm_numbers(chosen: Any, arms: tuple[str, ...]) -> np.ndarray:
    """The numbers of chosen arms (N,) int64, from numbers or names; a `DataError` says which is no arm."""
    array = np.asarray(chosen)
    if array.dtype.kind in "USO":
        places = {name: place for place, name in enumerate(arms)}
        array = np.array([places.get(_name(name), -1) for name in array.reshape(-1)])
        odd = np.flatnonzero(array < 0)
        if odd.size:
            raise DataError(
                f"chosen must be one of the arms {', '.join(arms[:8])}; row {odd[0]} has "
                f"{_name(np.asarray(chosen).reshape(-1)[odd[0]])!r}.",
                field="chosen",
            )
    if array.ndim != 1 or not array.size or (array.dtype.kind == "f" and (array % 1 != 0).any()):
        raise DataError(
            f"chosen must hold the number of one arm for each of one or more decisions; got the "
            f"shape {array.shape}.",
            field="chosen",
        )
    odd = np.flatnonzero((array < 0) | (array >= len(arms)))
    if odd.size:
        raise DataError(
            f"chosen must be in 0..{len(arms) - 1}; row {odd[0]} has {array[odd[0]]}.", field="chosen"
        )
    return array.astype(np.int64)


def _name(arm: Any) -> str:
    """The name of an arm; that of a number which no arm has is cut off."""
    if isinstance(arm, int):
        return shown(arm)
    return str(arm)


LARGEST_FLOAT = int(np.finfo(np.float64).max)
ACTIONS = "actions"
"""The key of contexts under which the features of arms stand, with one column of K entries for each."""

_TARGET = "\0reward"

TAGS = 64
"""The number of tags of a column that a regression knows."""


def contexts_of(contexts: Any) -> PyTree:
    """Contexts as a tree of arrays: lists, DataFrames and trees of anything that NumPy reads."""
    if isinstance(contexts, list):
        return context_columns(contexts)
    if hasattr(contexts, "columns") and not isinstance(contexts, Mapping):
        return {str(name): np.asarray(contexts[name]) for name in contexts.columns}
    return jax.tree.map(np.asarray, contexts)


def context_columns(values: Sequence[Any], tags: bool = True) -> PyTree:
    """Turn N JSON values into a tree of arrays with N rows; None if all values are null.

    Objects become dicts of columns, lists with texts one column of tuples, which are `tags` (not under
    "actions", where a list has an entry for each arm), other lists of one length (or a `DataError`) arrays
    with more axes, numbers float64 (null is NaN), truth values bool, and everything else arrays of objects
    (null is None).
    """
    present = [value for value in values if value is not None]
    if not present:
        return None
    if all(isinstance(value, Mapping) for value in present):
        keys = dict.fromkeys(key for value in present for key in value)
        return {
            str(key): context_columns(
                [None if v is None else v.get(key) for v in values], tags and key != ACTIONS
            )
            for key in keys
        }
    if all(isinstance(value, list | tuple) for value in present):
        if tags and any(isinstance(cell, str) for value in present for cell in value):
            return _tags(values)
        return _stacked(values, present)
    if all(isinstance(value, bool) for value in values):
        return np.array(values, dtype=bool)
    if all(isinstance(value, int | float) for value in present):
        try:
            return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
        except OverflowError:
            wide = next(value for value in present if isinstance(value, int) and abs(value) > LARGEST_FLOAT)
            raise DataError(
                f"contexts must be numbers that a float can hold; got {shown(wide)}.", field="contexts"
            ) from None
    cells = np.empty(len(values), dtype=object)
    cells[:] = [value if value is None or isinstance(value, str) else str(value) for value in values]
    return cells


def _tags(values: Sequence[Any]) -> np.ndarray:
    """Lists of tags as an array (N,) of tuples of texts."""
    cells = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        cells[row] = None if value is None else tuple(str(cell) for cell in value if cell is not None)
    return cells


def _stacked(values: Sequence[Any], present: Sequence[Any]) -> PyTree:
    width = len(present[0])
    odd = next((value for value in present if len(value) != width), None)
    if odd is not None:
        raise DataError(
            f"the lists in one place of the contexts must have one length; there are some of {width} and of "
            f"{len(odd)} entries: give one number to each feature, null where it is missing."
        )
    flat = context_columns(
        [cell for value in values for cell in ([None] * width if value is None else value)]
    )
    count = len(values)
    return jax.tree.map(lambda leaf: leaf.reshape(count, width, *leaf.shape[1:]), flat)


def context_leaves(contexts: PyTree) -> list[tuple[tuple[str, ...], np.ndarray]]:
    """The arrays of a tree, each with the names on the way to it."""
    found = jax.tree_util.tree_leaves_with_path(contexts)
    return [(tuple(_word(key) for key in path), np.asarray(leaf)) for path, leaf in found]


def _word(key: Any) -> str:
    for name in ("key", "name", "idx"):
        if hasattr(key, name):
            return str(getattr(key, name))
    return str(key)


def take_rows(contexts: PyTree, rows: Any) -> PyTree:
    """The contexts of some rows, as a tree of the same structure."""
    return jax.tree.map(lambda leaf: leaf[rows], contexts)


def row_of(contexts: PyTree, row: int) -> PyTree:
    """The context of one row: numbers and text where columns have one axis, arrays if they have more."""

    def cell(leaf: np.ndarray) -> Any:
        value = leaf[row]
        if isinstance(value, np.generic):
            return value.item()
        return value

    return jax.tree.map(cell, contexts)


def features_of_arm(own: Any, place: int) -> Any:
    """The features of one arm, from the columns of the arms' features."""
    if own is None:
        return {}
    if not isinstance(own, Mapping):
        return own[place]
    return {key: features_of_arm(values, place) for key, values in own.items()}


def features_of(contexts: PyTree, rows: int, arms: int) -> tuple[np.ndarray, np.ndarray | None]:
    """The contexts as numbers: text one-hot, missing numbers replaced by means (`credo.tables.Encoder`).

    Contexts are None; an array (N,), (N, d) or, with features of each arm, (N, K, d); or a tree of columns,
    where those under "actions" have an axis of K behind the rows. The features that the arms share are
    (N, d), and those of each arm (N, K, e) or None.
    """
    shared: dict[str, np.ndarray] = {}
    own: dict[str, np.ndarray] = {}
    for name, leaf in context_leaves(contexts):
        of_arms = leaf.ndim >= 2 and leaf.shape[1] == arms and (name[:1] == (ACTIONS,) or not name)
        if of_arms and (name or leaf.ndim >= 3):
            own.update(_named(name, leaf.reshape(rows * arms, -1)))
        else:
            shared.update(_named(name, leaf.reshape(rows, -1)))
    of_each = _encoded(own, rows * arms) if own else None
    return _encoded(shared, rows), None if of_each is None else of_each.reshape(rows, arms, -1)


def _named(name: tuple[str, ...], table: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    for place in range(table.shape[1]):
        label = ".".join([*name, str(place)])
        column = table[:, place]
        if column.dtype == object and any(isinstance(cell, tuple) for cell in column):
            yield from _of_tags(label, column)
        else:
            yield label, column


def _of_tags(label: str, column: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """The most frequent tags of a column of tuples, each as a column of 0 and 1."""
    rows = [cell if isinstance(cell, tuple) else () for cell in column]
    for tag, _ in Counter(tag for row in rows for tag in dict.fromkeys(row)).most_common(TAGS):
        yield f"{label}: {tag}", np.array([float(tag in row) for row in rows])


def _encoded(columns: Mapping[str, np.ndarray], rows: int) -> np.ndarray:
    numbers = [column for column in columns.values() if column.dtype.kind in "biuf"]
    if len(numbers) == len(columns):
        table = np.stack(numbers, axis=1).astype(np.float64) if numbers else np.zeros((rows, 0))
        known = np.isfinite(table)
        if known.all():
            return table
        mean = np.where(known, table, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        lost = ~known[:, ~known.all(axis=0)]
        return np.concatenate([np.where(known, table, mean), lost.astype(np.float64)], axis=1)
    cells = {name: column for name, column in columns.items()} | {_TARGET: np.arange(rows) + 0.5}
    chunk = Chunk(cells, np.arange(1, rows + 1), unit="row")
    try:
        schema = infer_schema(chunk, _TARGET, task="regression")
    except DataError:
        return np.zeros((rows, 0))  # no column says anything: each is text that never repeats, or constant
    encoder = Encoder(schema)
    state, _, _, _ = encoder.encode(encoder.initial(), chunk)
    _, x, _, report = encoder.encode(state, chunk, learn=False)
    table = np.zeros((rows, x.shape[1]))
    table[report.kept] = x
    return table
