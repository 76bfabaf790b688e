"""The Open Bandit data set: the CSV files of an online fashion shop, with true propensities."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import numpy as np

from credo.bandits.logs.checks import NO_PROPENSITY
from credo.bandits.logs.log import Log, ReadCounts
from credo.core.errors import DataError
from credo.tables import open_table
from credo.tables.cells import Cells, to_list, to_numbers

__all__ = ["read_open_bandit"]

_NEEDED = ("item_id", "position", "click", "propensity_score")
_ITEMS = "item_context.csv"
_AFFINITY = re.compile(r"user-item_affinity_(\d+)")


def read_open_bandit(source: str | os.PathLike[str] | IO[str] | IO[bytes]) -> Log:
    """Read a CSV of the Open Bandit data set (Saito et al., 2021): items are arms, and clicks are rewards.

    Each row is a decision about one of the positions of a page. The context has the columns `position` and
    `user_feature_*`, and `user-item_affinity` as a feature of each arm. In the folder of a campaign,
    `item_context.csv` says how many items there are; without it, they are counted up to the greatest
    `item_id`. A `DataError` says that a column is missing, or that a cell of one that is needed is no number.
    """
    source = _table_of(source)
    with open_table(source, format="csv") as table:
        chunks = list(table)
        name = table.name
    lost = [column for column in _NEEDED if column not in chunks[0].columns]
    if "propensity_score" in lost:
        raise DataError(f"{name} {NO_PROPENSITY}.", field="propensities")
    if lost:
        raise DataError(f"{name} must have the columns {', '.join(_NEEDED)}; {', '.join(lost)} is missing.")
    cells = {c: [cell for chunk in chunks for cell in to_list(chunk.columns[c])] for c in chunks[0].columns}
    items = _whole(cells, "item_id", name)
    clicks = _numbers(cells, "click", name)
    arms = max(_items_beside(source), int(items.max()) + 1)
    affinity = [cells.get(f"user-item_affinity_{arm}") for arm in range(arms)]
    contexts: dict[str, object] = {
        column: np.array([str(cell) for cell in values], dtype=object)
        for column, values in cells.items()
        if column == "position" or column.startswith("user_feature_")
    }
    if all(column is not None for column in affinity):
        table_of = np.stack([to_numbers(column)[0] for column in affinity if column is not None], axis=1)
        contexts["actions"] = {"user-item_affinity": table_of}
    rows = len(items)
    broken = sum(len(chunk.bad) for chunk in chunks)
    return Log(
        arms=tuple(map(str, range(arms))),
        chosen=items,
        rewards=clicks,
        propensities=_numbers(cells, "propensity_score", name),
        contexts=contexts,
        counts=ReadCounts(decisions=rows, rewards=rows, broken=broken),
    )


def _table_of(source: str | os.PathLike[str] | IO[str] | IO[bytes]) -> str | IO[str] | IO[bytes]:
    if not isinstance(source, str | os.PathLike):
        return source
    path = Path(source)
    if not path.is_dir():
        return str(path)
    tables = sorted(file for file in path.glob("*.csv") if file.name != _ITEMS)
    if len(tables) != 1:
        found = ", ".join(file.name for file in tables) or "none"
        raise DataError(
            f"{path} must be the folder of one campaign, with one CSV beside {_ITEMS}; found {found}."
        )
    return str(tables[0])


def _items_beside(source: str | IO[str] | IO[bytes]) -> int:
    beside = Path(source).parent / _ITEMS if isinstance(source, str) else None
    if beside is None or not beside.is_file():
        return 0
    with open_table(str(beside), format="csv") as table:
        return sum(len(chunk) for chunk in table)


def _numbers(cells: Mapping[str, Cells], column: str, name: str) -> np.ndarray:
    values, _ = to_numbers(cells[column])
    wrong = np.flatnonzero(np.isnan(values))
    if wrong.size:
        raise DataError(f"{name} must have a number in every row of {column!r}; row {wrong[0] + 1} has none.")
    return values


def _whole(cells: Mapping[str, Cells], column: str, name: str) -> np.ndarray:
    values = _numbers(cells, column, name)
    if (values % 1 != 0).any() or (values < 0).any():
        raise DataError(f"{name} must have numbers of items from 0 in {column!r}.")
    return values.astype(np.int64)
