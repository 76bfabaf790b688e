"""The tables of made-up results: who is first, how far the others are behind, and what dirt costs."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def entry(stream: str, peer: str, log_loss: float, ece: float = 0.02) -> dict[str, Any]:
    scores = {"rows": 3000, "log_loss": log_loss, "error": 0.1, "ece": ece, "ece_settled": ece / 2}
    scores |= {"worst": 5.0, "seconds": 1.0, "rows_per_second": 3000.0}
    return {"stream": stream, "peer": peer, "task": "classification", "scores": scores}


def number_entry(stream: str, peer: str, log_loss: float, coverage: float) -> dict[str, Any]:
    scores = {"rows": 500, "log_loss": log_loss, "rmse": 1.0, "coverage": coverage, "coverage_settled": None}
    scores |= {"crps": 0.5, "worst": 5.0, "seconds": 1.0, "rows_per_second": 500.0}
    return {"stream": stream, "peer": peer, "task": "regression", "scores": scores}


RESULTS = [
    entry("phoneme", "forest", 0.2, ece=0.01),
    entry("phoneme", "linear", 0.5),
    entry("phoneme", "late", 0.4),
    entry("churn", "forest", 0.4, ece=0.03),
    entry("churn", "linear", 0.3),
    entry("phoneme~units", "forest", 0.25),
    entry("phoneme~units", "linear", 2.5),
    entry("churn~units", "linear", 1.3),
    entry("churn~units", "forest", 0.4),
    entry("churn~shift", "linear", 0.2),
    entry("churn~shift", "late", 0.2),
    entry("credit", "linear", 0.5),
    entry("credit~units", "linear", 5000.5),
    number_entry("rain", "forest", 2.0, 0.88),
    entry("letter", "linear", 1.0),
    entry("bananas", "linear", 0.6),
    entry("iris", "linear", 0.1),
]


def cells(text: str, heading: str) -> dict[str, list[str]]:
    """The lines of the first table below a heading, by their first cell."""
    below = text[text.index(f"{heading}\n") :].split("\n")
    first = next(place for place, line in enumerate(below) if line.startswith("|"))
    lines: dict[str, list[str]] = {}
    for line in below[first:]:
        if not line.startswith("|"):
            break
        title, *rest = (cell.strip() for cell in line.strip("|").split("|"))
        lines[title] = rest
    return lines


@pytest.fixture
def text() -> str:
    names = list(dict.fromkeys(result["stream"] for result in RESULTS))
    tables: str = importlib.import_module("default_tables").tables(RESULTS, names, "credo")
    return tables


def test_peers_stand_by_their_mean_rank_on_the_streams_that_they_ran_on(text: str) -> None:
    table = cells(text, "## Classification: tables that no choice has seen")
    assert list(table)[2:] == ["forest", "linear", "late"]
    assert table["forest"] == ["2", "1", "1.5", "0.050", "0.050", "0.020", "0.010"]
    assert table["linear"] == ["3", "2", "1.7", "0.000", "0.100", "0.020", "0.010"]
    assert table["late"] == ["1", "0", "2.0", "0.200", "0.200", "0.020", "0.010"]


def test_a_regression_shows_how_much_its_intervals_cover(text: str) -> None:
    table = cells(text, "## Regression: tables that no choice has seen")
    assert table["forest"] == ["1", "1", "1.0", "0.000", "0.000", "0.880", ""]


def test_dirt_costs_what_the_copy_loses_more_than_the_clean_stream(text: str) -> None:
    heading = "## Classification: log loss of dirty copies, less that of the clean stream"
    table = cells(text, heading)
    assert table["peer"] == ["sentinels", "outliers", "units", "shift"]
    assert list(table)[2:] == ["forest", "linear"]  # a peer without clean scores costs nothing that is known
    assert table["forest"] == ["", "", "+0.025, +0.050 (2)", ""]
    assert table["linear"] == ["", "", "+2.000, +5e+03 (3)", "-0.100, -0.100 (1)"]
    assert cells(text, "### Copies with units")["forest"][:3] == ["2", "2", "1.0"]


def test_a_dirty_copy_or_a_wide_stream_does_not_count_among_the_usual_ones(text: str) -> None:
    usual = "## Classification: all streams but the unseen tables, dirty copies and wide ones"
    assert cells(text, usual)["linear"][0] == "2"
    assert cells(text, "## Classification: wide streams")["linear"][0] == "1"
    assert list(cells(text, "### Log loss")) == ["stream", "---", "bananas"]


def test_streams_are_described_by_their_group_and_a_dirty_copy_is_not() -> None:
    shape = importlib.import_module("default_results").Shape("classification", 4000, 1, 2)
    text = importlib.import_module("default_tables").described({"iris": shape, "iris~shift": shape})
    assert "| iris | held | classification | 4,000 | 1 | 2 |" in text and "~" not in text
