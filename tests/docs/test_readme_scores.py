"""The scores of the README are those of docs/explanation/defaults.md, unseen streams first."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIBRARIES: tuple[Callable[[str], bool], ...] = (
    lambda method: method == "credo",
    lambda method: method.startswith("River"),
    lambda method: method.startswith("VW"),
    lambda method: method in ("MLP Adam", "sklearn SGD"),
)


def table(kind: str, score: str) -> dict[str, dict[str, float]]:
    """The scores of each stream by method, under two headings of the page."""
    text = (ROOT / "docs/explanation/defaults.md").read_text()
    lines = iter(text.split(f"## {kind}\n")[1].split(f"### {score}\n")[1].split("\n###")[0].splitlines())
    head = next(cells for line in lines if (cells := _cells(line))[0] == "stream")
    rows = [cells for line in lines if len(cells := _cells(line)) == len(head) and "---" not in line]
    return {
        row[0]: {method: float(value) for method, value in zip(head[1:], row[1:], strict=True) if value}
        for row in rows
    }


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
    ("beginning", "kind", "score", "digits"),
    [
        (
            "log loss, mean of 8 streams of classes",
            "Classification: streams that no choice has seen",
            "Log loss",
            2,
        ),
        ("error on the same streams", "Classification: streams that no choice has seen", "Error", 3),
        ("log loss, mean of 8 such streams", "Regression: streams that no choice has seen", "Log loss", 2),
    ],
)
def test_unseen_streams(beginning: str, kind: str, score: str, digits: int) -> None:
    streams = table(kind, score).values()
    assert len(streams) == 8
    for ours, numbers in zip(LIBRARIES, said(beginning), strict=True):
        mean = sum(best(scores, ours) for scores in streams) / len(streams)
        assert numbers == [pytest.approx(mean, abs=0.51 * 10**-digits)]


@pytest.mark.parametrize(
    ("beginning", "score", "digits"),
    [("log loss on four streams", "Log loss", 2), ("error on these four", "Error", 3)],
)
def test_streams_by_which_members_were_chosen(beginning: str, score: str, digits: int) -> None:
    streams = table("Classification: streams on which members were chosen", score)
    chosen = [streams[name] for name in ("electricity", "bananas", "phishing", "segments")]
    for ours, numbers in zip(LIBRARIES, said(beginning), strict=True):
        assert numbers == [pytest.approx(best(scores, ours), abs=0.51 * 10**-digits) for scores in chosen]
