"""Every test is in one tier, and a sample of a table holds what it says."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import tiers
from tests.costs import Cost, Watch, table

TABLE = """
import pytest

def test_plain(): pass

@pytest.mark.slow
def test_slow(): pass

@pytest.mark.slow
@pytest.mark.optimised
def test_exact(): pass

@pytest.mark.crash
@pytest.mark.parametrize("kills", [4, pytest.param(30, marks=pytest.mark.thorough)])
def test_kills(kills): pass

@pytest.mark.table
@pytest.mark.parametrize("rule", range(3))
@pytest.mark.parametrize("family", range(3))
@pytest.mark.parametrize("kind", range(3))
def test_cells(rule, family, kind): pass

@pytest.mark.table
@pytest.mark.parametrize(("name", "words"), [(number, str(number)) for number in range(9)])
def test_names(name, words): pass

@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("name", range(9))
def test_costly(name): pass
"""


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[pytest.Function]]:
    """The tests above, by tier."""
    folder = tmp_path_factory.mktemp("tests")
    (folder / "test_table.py").write_text(TABLE)
    (folder / "pytest.ini").write_text("[pytest]\n")
    found: list[pytest.Function] = []

    class Collect:
        def pytest_collection_modifyitems(self, items: list[pytest.Function]) -> None:
            tiers.spread(items)
            found.extend(items)

    words = ["--collect-only", "-p", "no:cacheprovider", "-c", str(folder / "pytest.ini"), str(folder)]
    assert pytest.main(words, [Collect()]) == 0
    return {name: [item for item in found if tiers.tier(item) == name] for name in tiers.TIERS}


def names(items: list[pytest.Function], function: str) -> list[str]:
    return [item.name for item in items if item.originalname == function]


def test_marks_name_the_tier_and_the_last_of_several_counts(items: dict[str, list[pytest.Function]]) -> None:
    assert names(items["quick"], "test_plain") and names(items["slow"], "test_slow")
    assert names(items["optimised"], "test_exact")
    assert names(items["crash"], "test_kills") == ["test_kills[4]"]
    assert names(items["thorough"], "test_kills") == ["test_kills[30]"]


def test_combinations_are_quick_by_values_and_else_thorough(items: dict[str, list[pytest.Function]]) -> None:
    def rows(*kinds: str) -> list[tuple[int, ...]]:
        found = [name for kind in kinds for name in names(items[kind], "test_cells")]
        return [tuple(map(int, re.findall(r"\d", name))) for name in found]

    assert len(rows("quick")) == 3 and all(
        len(set(column)) == 3 for column in zip(*rows("quick"), strict=True)
    )
    assert not rows("slow")
    assert sorted(rows("quick", "thorough")) == sorted(product(range(3), repeat=3))


def test_one_in_four_of_a_list_is_quick(items: dict[str, list[pytest.Function]]) -> None:
    quick, thorough = names(items["quick"], "test_names"), names(items["thorough"], "test_names")
    assert [name.split("[")[1] for name in quick] == ["0-0]", "4-4]", "8-8]"]
    assert len(thorough) == 6 and not names(items["slow"], "test_names")


def test_of_a_list_that_is_slow_the_sample_is_slow_and_the_rest_thorough(
    items: dict[str, list[pytest.Function]],
) -> None:
    slow, thorough = names(items["slow"], "test_costly"), names(items["thorough"], "test_costly")
    assert slow == ["test_costly[0]", "test_costly[4]", "test_costly[8]"] and len(thorough) == 6
    assert not names(items["quick"], "test_costly")


@pytest.mark.parametrize(("count", "quick"), [(1, 1), (4, 1), (5, 2), (48, 12), (49, 10), (195, 12)])
def test_of_a_long_list_twelve_cases_are_quick_at_most(count: int, quick: int) -> None:
    assert len(tiers.sample([(number,) for number in range(count)])) == quick


def test_a_file_without_a_mark_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, marked, other = (tmp_path / name for name in ("test_a.py", "test_b.py", "worlds.py"))
    plain.write_text("def test_one(): pass\n")
    marked.write_text("import pytest\npytestmark = pytest.mark.crash\n")
    other.write_text("")
    for asked, foreign in (("quick", set()), ("crash", {plain}), ("slow", {plain, marked})):
        monkeypatch.setattr(tiers, "ASKED", asked)
        assert {path for path in (plain, marked, other) if tiers.is_foreign(path)} == foreign


@pytest.mark.parametrize(
    ("words", "asked", "expected"),
    [
        (["tests"], "quick", {"quick"}),
        (["tests"], "slow", {"slow"}),
        (["tests/test_table.py::test_slow"], "quick", {"quick", "slow", "thorough"}),
        (["tests/test_table.py::test_slow"], "crash", {"crash"}),
    ],
)
def test_one_tier_is_chosen_and_what_is_named_runs_though_it_is_slow(
    items: dict[str, list[pytest.Function]],
    words: list[str],
    asked: str,
    expected: set[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left: list[pytest.Item] = []
    hook = SimpleNamespace(pytest_deselected=lambda items: left.extend(items))
    config: Any = SimpleNamespace(args=words, hook=hook)
    monkeypatch.setattr(tiers, "ASKED", asked)
    chosen: list[pytest.Item] = [item for some in items.values() for item in some]
    count = len(chosen)
    tiers.select(config, chosen)
    assert {tiers.tier(item) for item in chosen} == expected
    assert left and len(chosen) + len(left) == count
    monkeypatch.setattr(tiers, "ASKED", "hasty")
    with pytest.raises(pytest.UsageError, match="'hasty' and must be one of quick, slow"):
        tiers.select(config, chosen)


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=20))
def test_a_cover_holds_every_value_and_no_row_in_vain(rows: list[tuple[int, ...]]) -> None:
    chosen = tiers.cover(rows)
    assert chosen == sorted(set(chosen))
    every = [set(enumerate(row)) for row in rows]
    values = set().union(*every)
    assert set().union(*(every[number] for number in chosen)) == values and len(chosen) <= len(values)


def test_time_inside_other_time_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    watch, now = Watch(file=__file__), [0.0]  # type: ignore[arg-type]
    monkeypatch.setattr("tests.costs.time.perf_counter", lambda: now[0])
    for end, event, duration in (
        (2.0, "/jax/core/compile/jaxpr_trace_duration", 1.0),  # from 1 to 2
        (5.0, "/jax/core/compile/backend_compile_duration", 2.0),  # from 3 to 5
        (6.0, "/jax/core/compile/jaxpr_trace_duration", 5.5),  # from .5 to 6, around both
        (7.0, "/jax/core/other", 7.0),
    ):
        now[0] = end
        watch.took(event, duration)
    assert (watch.now.tracing, watch.now.compiling, watch.now.programs) == (1.0 + 2.5, 2.0, 1)


def test_a_table_of_costs_adds_up_by_folder() -> None:
    costs = [Cost("tests/a/test_x.py::test_1", 2.0, programs=3), Cost("tests/b/test_y.py::test_2", 5.0)]
    costs.append(Cost("tests/a/test_x.py::test_3[k]", 1.0, 1.0, tracing=0.25))
    lines = table(costs, 1).splitlines()
    assert [line.split()[-1] for line in lines[1:]] == ["all", "b", "a"]
    assert lines[3].split()[:2] == ["2", "3.0"]
