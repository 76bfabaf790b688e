"""Which tests run when: `CREDO_TESTS` names a tier, and a test is in one of them by its marks.

    quick       what `make test` runs, and `pytest` by itself: all that has no mark below
    slow        what takes more than three quarters of a second of processor time
    optimised   what needs programs compiled as users get them
    crash       what kills processes again and again
    thorough    the rest of the tables, before a release

`make test-all` runs the first four. Each tier leaves out the others, so no test runs twice.

A test marked `table` goes through many cases. Where they combine the values of several parameters, as many
as hold every value are quick; of a list, every fourth is (fewer of a long one). The others are thorough: of
changes of the sources that the quick tests did not see, hardly any was seen by further cases. Where every
case of a table is marked slow as well, those that would be quick are slow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.haste import ASKED

T = TypeVar("T")

TIERS = ("quick", "slow", "optimised", "crash", "thorough")

EVERY, MOST = 4, 12
"""Of a list, one in so many cases is not thorough, and at most so many are not."""

MARKS = {
    "slow": ("slow",),
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
    """Mark the rows of tables that a sample of them does not need."""
    tables: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("table"):
            tables.setdefault(item.nodeid.split("[")[0], []).append(item)
    for rows in tables.values():
        # the names of the values, one for each `parametrize` (pytest tells them in one string, joined by -)
        values = [tuple(row.callspec._idlist) for row in rows]
        kept = sample(values)
        for number, row in enumerate(rows):
            if number not in kept:
                row.add_marker("thorough")


def sample(rows: Sequence[tuple[object, ...]]) -> list[int]:
    """The numbers of the rows that are not thorough: some of a list, and every value of combinations."""
    if len(rows[0]) > 1:
        return cover(rows)
    step = max(EVERY, math.ceil(len(rows) / MOST))
    return list(range(0, len(rows), step))


def cover(rows: Sequence[tuple[object, ...]]) -> list[int]:
    """The numbers of rows that hold every value of every column.

    The next row is the first of those that hold the most values which none has held so far.
    """
    held = [set(enumerate(row)) for row in rows]
    found: list[int] = []
    missing = set().union(*held)
    while missing:
        best = max(range(len(rows)), key=lambda number: (len(held[number] & missing), -number))
        missing -= held[best]
        found.append(best)
    return sorted(found)
