"""What is asked of the ratios against the official codes."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def aims(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("aims")


@pytest.mark.parametrize(
    ("ratio", "reached"), [(2.9, "no"), (3.0, "must"), (3.4, "must"), (3.5, "aim"), (9.0, "aim")]
)
def test_a_ratio_stands_beside_what_is_asked_of_it(aims: Any, ratio: float, reached: str) -> None:
    cells = aims.cells("low rank 10, P = 1,510", "credo", "BONG, update alone", ratio)
    assert [cell.strip() for cell in cells.split("|")] == [f"{ratio:.2f}", "3", "3.5", reached]


def test_every_line_has_the_columns_of_the_head(aims: Any) -> None:
    for case in ("low rank 10, P = 1,510", "another case"):
        line = f"| {case} | ours | 1 | peer | 2 | {aims.cells(case, 'credo', 'rebayes LOFI', 2.0)} | 3 |"
        assert line.count("|") == aims.HEAD[0].count("|"), line


def test_what_follows_a_case_in_a_title_does_not_matter(aims: Any) -> None:
    asked = ("credo, learner.step", "River BayesianLinearRegression")
    assert aims.goal("one row from Python, D = 10, synchronous dispatch", *asked) is not None
    assert aims.goal("one row from Python, D = 100", *asked) is None


def test_every_goal_is_of_a_case_that_is_run(aims: Any) -> None:
    text = (BENCHMARKS / "official.py").read_text("utf-8")
    for case, ours, peer in aims._GOALS:
        assert re.split(r"D =|P =", case, maxsplit=1)[0] in text, case
        assert f'"{peer}"' in text and ours.split(", ")[0] in text
