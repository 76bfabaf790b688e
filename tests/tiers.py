"""Which tests run when: `CREDO_TESTS` names a tier, and a test is in one of them by its marks.

    quick       what `make test` runs, and `pytest` by itself: all that has no mark below
    slow        what takes more than half a second of processor time, and the pairs of a `table`
    optimised   what needs programs compiled as users get them
    crash       what kills processes again and again
    thorough    the rest of the tables, before a release

`make test-all` runs the first four. Each tier leaves out the others, so no test runs twice.

A test marked `table` goes through many cases. Where they combine the values of several parameters, as many
as hold every value are quick, as many more as hold every pair of values are slow, and the rest is thorough.
Where they are a list, every fourth is quick (fewer of a long one), and the others are slow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import pytest
from tests.haste import ASKED

TIERS = ("quick", "slow", "optimised", "crash", "thorough")

EVERY, MOST = 4, 12
"""Of a list, one in so many cases is quick, and at most so many."""


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
        slow = cover(values, 2, quick)
        for number, row in enumerate(rows):
            if number not in slow:
                row.add_marker("thorough")
            elif number not in quick:
                row.add_marker("slow")


def sample(rows: Sequence[tuple[object, ...]]) -> list[int]:
    """The numbers of the rows that are quick: some of a list, and every value of combinations."""
    if len(rows[0]) > 1:
        return cover(rows, 1, ())
    step = max(EVERY, math.ceil(len(rows) / MOST))
    return list(range(0, len(rows), step))


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
