"""The report of `credo bandit evaluate`: what policies would have earned over time, and what a log knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from credo.bandits.evaluation import Comparison, Course, Estimate
from credo.bandits.evaluation.over_time import FEWEST
from credo.cli import output
from credo.cli.html_report import Grid, Line, Picture, document
from credo.cli.results import write_plots
from credo.core.errors import DataError
from credo.core.files import json_bytes, versions, write_atomically
from credo.plots import COMPACT_PALETTE, compact_figure

__all__ = ["MOST_PARTS", "parts_of", "place_of", "write"]

MOST_PARTS = 10
"""Into how many parts a log is cut, if it has rows enough."""


def parts_of(rewards: int) -> int:
    """The number of parts of a log with so many rewards."""
    return max(1, min(MOST_PARTS, rewards // (2 * FEWEST)))


@contextmanager
def place_of(folder: Path) -> Iterator[output.Folder]:
    """The locked folder of a report."""
    try:
        with output.writing(folder, "bandit-evaluation", None) as place:
            yield place
    except DataError as error:
        raise DataError(str(error).replace("--out ", "--report ").replace("--out.", "--report.")) from None


def write(
    folder: Path,
    log: str,
    comparison: Comparison,
    courses: Mapping[str, Course],
    settings: Mapping[str, Any],
) -> list[str]:
    """Write report.json, the plots and the page; the hints to show."""
    programs = versions()
    data = {
        "format": 1,
        "settings": settings,
        "estimates": [{"policy": policy, **asdict(one)} for (policy, _), one in comparison.estimates.items()],
        "support": {policy: asdict(course.support) for policy, course in courses.items()},
        "over_time": {policy: course.table() for policy, course in courses.items()},
        "versions": programs,
    }
    write_atomically(folder / "report.json", json_bytes(data))
    pictures, hints = write_plots(folder, lambda: _draw(comparison, courses))
    estimates = list(comparison.estimates.values())
    page = document(
        log,
        f"What policies would have earned, from {estimates[0].rows:,} rewards of another one.",
        _verdict(comparison),
        _grid(comparison, courses),
        pictures,
        [*hints, *dict.fromkeys(f"{sentence}." for one in estimates for sentence in one.warnings)],
        settings,
        "credo bandit evaluate",
        programs,
    )
    write_atomically(folder / "report.html", page.encode())
    return hints


def _verdict(comparison: Comparison) -> str:
    """Which policies differ from the log, in a sentence."""
    estimates = comparison.estimates
    earned = next(iter(estimates.values())).on_policy
    better = dict.fromkeys(policy for (policy, _), one in estimates.items() if one.low > earned)
    worse = dict.fromkeys(policy for (policy, _), one in estimates.items() if one.high < earned)
    words = [f"The log earned {earned:.4g} a decision"]
    for names, verb in ((better, "more"), (worse, "less")):
        if names:
            words.append(f"{', '.join(names)} would have earned {verb}")
    if not better and not worse:
        words.append("no interval is above or below that")
    return "; ".join(words) + "."


def _grid(comparison: Comparison, courses: Mapping[str, Course]) -> Grid:
    level = next(iter(comparison.estimates.values())).level
    heads = ("reward", f"{100 * level:.4g}% from", "to", "rows count as", "weight 0", "largest weights")
    lines = [_line(policy, one, courses[policy]) for (policy, _), one in comparison.estimates.items()]
    return Grid(heads, lines)


def _line(policy: str, one: Estimate, course: Course) -> Line:
    support = course.support
    largest = ", ".join(f"{weight:.3g}" for weight in support.largest[:3])
    numbers = (
        *(f"{number:.4g}" for number in (one.value, one.low, one.high)),
        f"{one.ess:,.0f} of {one.rows:,}",
        f"{100 * support.unused:.3g}%",
        f"{largest} ({100 * support.heaviest:.2g}% of all in {len(support.largest)})",
    )
    return Line(policy, numbers, one.estimator)


def _draw(comparison: Comparison, courses: Mapping[str, Course]) -> dict[str, Picture]:
    """The plots by file name without suffix: all policies, and each over time."""
    pictures = {"policies": _policies(comparison)}
    for number, (policy, course) in enumerate(courses.items(), 1):
        words = (
            f"{policy} ({course.whole.estimator}) from part to part of the log, beside what the log earned "
            "there. Below, how many of a part's rows count, and which share has the weight 0: an interval "
            f"rests on the rows that count. {course.support}"
        )
        pictures[f"over-time-{number}"] = Picture(course.picture(), words)
    return pictures


def _policies(comparison: Comparison) -> Picture:
    blue, grey = COMPACT_PALETTE["blue"], COMPACT_PALETTE["grey"]
    estimates = comparison.estimates
    places = list(range(len(estimates)))[::-1]
    with compact_figure() as drawing:
        drawing.figure.set_size_inches(7.2, 1.3 + 0.34 * len(estimates))
        axes = drawing.panels[0]
        axes.axvline(next(iter(estimates.values())).on_policy, color=grey, linestyle="--", linewidth=1.2)
        for place, one in zip(places, estimates.values(), strict=True):
            axes.plot([one.low, one.high], [place, place], color=blue)
            axes.plot(one.value, place, "o", color=blue)
        axes.set_yticks(places, [f"{policy} ({name})" for policy, name in estimates])
        axes.set_ylim(-0.7, len(places) - 0.3)
        axes.set_xlabel("reward of a decision; dashed: what the log earned")
    return Picture(drawing.png, "What each policy would have earned, with its interval.")
