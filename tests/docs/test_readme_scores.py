"""The scores of the README are those of the results behind docs/explanation/defaults.md."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
COUNTS = {"four": 4, "fourteen": 14, "fifteen": 15, "sixteen": 16}
LIBRARIES: tuple[Callable[[str], bool], ...] = (
    lambda method: method == "credo",
    lambda method: method.startswith("River"),
    lambda method: method.startswith("VW"),
    lambda method: method in ("MLP Adam", "sklearn SGD"),
)


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def table(group: str, score: str, task: str = "classification") -> dict[str, dict[str, float]]:
    """The scores of each stream of a group by method."""
    results: Any = importlib.import_module("default_results")
    group_of: Any = importlib.import_module("default_groups").group_of
    rows: dict[str, dict[str, float]] = {}
    for one in results.read():
        if group_of(one.stream) == group and one.task == task:
            rows.setdefault(one.stream, {})[one.method] = one.scores[score]
    return rows


def _cells(line: str) -> list[str]:
    return [cell.strip().strip("*").replace(",", "") for cell in line.strip("|").split("|")]


def best(scores: dict[str, float], ours: Callable[[str], bool]) -> float:
    return min(value for method, value in scores.items() if ours(method))


def said(beginning: str) -> list[list[float]]:
    """The numbers of a row of the README's table, by library."""
    line = next(
        line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith(f"| {beginning}")
    )
    return [[float(value) for value in re.findall(r"\d*\.\d+", cell)] for cell in _cells(line)[1:]]


@pytest.mark.parametrize(
    ("beginning", "task", "score", "digits"),
    [
        ("log loss, mean of 8 streams of classes", "classification", "log_loss", 2),
        ("error on the same streams", "classification", "error", 3),
        ("log loss, mean of 8 such streams", "regression", "log_loss", 2),
    ],
)
def test_unseen_streams(beginning: str, task: str, score: str, digits: int) -> None:
    streams = table("held", score, task).values()
    assert len(streams) == 8
    for ours, numbers in zip(LIBRARIES, said(beginning), strict=True):
        mean = sum(best(scores, ours) for scores in streams) / len(streams)
        assert numbers == [pytest.approx(mean, abs=0.51 * 10**-digits)]


@pytest.mark.parametrize(
    ("beginning", "score", "digits"),
    [("log loss on four streams", "log_loss", 2), ("error on these four", "error", 3)],
)
def test_streams_by_which_members_were_chosen(beginning: str, score: str, digits: int) -> None:
    streams = table("chosen", score)
    chosen = [streams[name] for name in ("electricity", "bananas", "phishing", "segments")]
    for ours, numbers in zip(LIBRARIES, said(beginning), strict=True):
        assert numbers == [pytest.approx(best(scores, ours), abs=0.51 * 10**-digits) for scores in chosen]


def test_tables_from_packages() -> None:
    """Ahead of every online peer on all of them, and of LightGBM on so many."""
    found = re.search(
        r"On (\w+) of (\w+) tables from packages its log loss is less than that of every online peer that "
        r"has run on them, and on (\w+) less than that of LightGBM .* an online peer leads on (\w+)",
        (ROOT / "README.md").read_text(),
    )
    assert found is not None
    streams = {**table("unseen", "log_loss"), **table("unseen", "log_loss", "regression")}
    batch = {name: scores.pop("LightGBM, refitted") for name, scores in streams.items()}
    assert len(streams) == COUNTS[found[1]] == COUNTS[found[2]]
    assert all(scores["credo"] == min(scores.values()) for scores in streams.values())
    assert sum(scores["credo"] < batch[name] for name, scores in streams.items()) == COUNTS[found[3]]
    errors = {**table("unseen", "error"), **table("unseen", "rmse", "regression")}
    led = 0
    for scores in errors.values():
        del scores["LightGBM, refitted"]
        led += min(scores, key=lambda method: scores[method]) != "credo"
    assert led == COUNTS[found[4]]
