"""Which tests run when: `CREDO_TESTS` names a tier, and a test is in one of them by its marks.

    quick       what `make test` runs, and `pytest` by itself: all that has no mark below
    slow        what takes more than half a second of processor time, and the pairs of a `table`
    optimised   what needs programs compiled as users get them
    crash       what kills processes again and again
    thorough    the rest of the tables, before a release

`make test-all` runs the first four. Each tier leaves out the others, so no test runs twice.

A test marked `table` goes through many cases. Where they combine the values of several parameters, as many
as hold every value are quick, as many more as hold every pair of values are slow, and the rest is thorough.
Where they are a list, every fourth is quick (fewer of a long one), eight more are slow, and the others are
thorough. Where every case of a table is marked slow as well, those that would be quick are slow, and all
others are thorough: a case that costs more than half a second costs as much in each of its rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.haste import ASKED

T = TypeVar("T")

TIERS = ("quick", "slow", "optimised", "crash", "thorough")

EVERY, MOST = 4, 12
"""Of a list, one in so many cases is quick, and at most so many."""

SLOW = 8
"""Of a list, at most so many cases are slow."""

MARKS = {
    "slow": ("slow", "table"),
    "optimised": ("optimised",),
    "crash": ("crash",),
    "thorough": ("thorough", "table"),
}
"""The marks of which a file holds one, if it has tests of a tier."""


def is_foreign(path: Path) -> bool:
    """Whether a file of tests has none of the tier that is asked for, and need not be imported."""
    marks = MARKS.get(ASKED, ())
    if not marks or path.suffix != ".py" or not path.name.startswith("test_"):
        return False
    text = path.read_text(encoding="utf-8")
    return not any(mark in text for mark in marks)


def few(cases: Iterable[T], *chosen: T) -> list[Any]:
    """Cases for `parametrize`, of which all but the chosen ones are thorough: what the others cost is much,
    and what they would see alone is little.
    """
    every = list(cases)
    assert all(case in every for case in chosen), chosen
    return [case if case in chosen else pytest.param(case, marks=pytest.mark.thorough) for case in every]


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of other tiers; a slow or thorough one that was named runs all the same."""
    if ASKED not in TIERS:
        raise pytest.UsageError(f"CREDO_TESTS is {ASKED!r} and must be one of {', '.join(TIERS)}")
    spread(items)
    named = any("::" in argument for argument in config.args)
    wanted = {ASKED, "slow", "thorough"} if named and ASKED == "quick" else {ASKED}
    chosen = [item for item in items if tier(item) in wanted]
    left = [item for item in items if tier(item) not in wanted]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = chosen


def tier(item: pytest.Item) -> str:
    """The tier of a test: the last one that its marks name."""
    named = [name for name in TIERS if item.get_closest_marker(name)]
    return named[-1] if named else "quick"


def spread(items: Sequence[pytest.Item]) -> None:
    """Mark the rows of tables, by what the rows before them hold already."""
    tables: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("table"):
            tables.setdefault(item.nodeid.split("[")[0], []).append(item)
    for rows in tables.values():
        # the names of the values, one for each `parametrize` (pytest tells them in one string, joined by -)
        values = [tuple(row.callspec._idlist) for row in rows]
        quick = sample(values)
        slow = cover(values, 2, quick) if len(values[0]) > 1 else among(len(rows), quick)
        costly = rows[0].get_closest_marker("slow") is not None
        for number, row in enumerate(rows):
            if number not in (quick if costly else slow):
                row.add_marker("thorough")
            elif number not in quick:
                row.add_marker("slow")


def sample(rows: Sequence[tuple[object, ...]]) -> list[int]:
    """The numbers of the rows that are quick: some of a list, and every value of combinations."""
    if len(rows[0]) > 1:
        return cover(rows, 1, ())
    step = max(EVERY, math.ceil(len(rows) / MOST))
    return list(range(0, len(rows), step))


def among(count: int, quick: Sequence[int]) -> list[int]:
    """The numbers of the cases of a list that are quick or slow: at most `SLOW` are slow, evenly spread."""
    others = [number for number in range(count) if number not in quick]
    step = max(1, math.ceil(len(others) / SLOW))
    return sorted([*quick, *others[::step]])


def cover(rows: Sequence[tuple[object, ...]], size: int, chosen: Sequence[int]) -> list[int]:
    """The numbers of rows that hold every combination of `size` columns which the rows have.

    Rows that are `chosen` already are among them. The next row is the first of those that hold the most
    combinations which none has held so far.
    """
    held = [set(combinations(enumerate(row), min(size, len(row)))) for row in rows]
    found = list(chosen)
    missing = set().union(*held).difference(*(held[number] for number in found))
    while missing:
        best = max(range(len(rows)), key=lambda number: (len(held[number] & missing), -number))
        missing -= held[best]
        found.append(best)
    return sorted(found)
