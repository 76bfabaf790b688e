"""`credo bandit evaluate`: what fixed policies would have earned, from the log of another one."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from rich import box
from rich.table import Table

from credo.bandits import Log
from credo.bandits.evaluation import (
    ESTIMATORS,
    Comparison,
    Course,
    Estimate,
    EstimatorName,
    IntervalName,
    Target,
    arm_values,
    compare,
    evaluate_over_time,
)
from credo.bandits.evaluation.over_time import FEWEST
from credo.bandits.logs import LogFormat, LogSource
from credo.cli import output
from credo.cli.command_words import model_of_service
from credo.cli.html_report import Grid, Line, Picture, document
from credo.cli.output import require_writable_file
from credo.cli.progress import Screen, note
from credo.cli.results import write_plots
from credo.core.errors import CredoError, DataError, require_choice, require_integer
from credo.core.files import json_bytes, versions, write_atomically
from credo.plots import COMPACT_PALETTE, compact_figure

__all__ = ["Evaluation", "evaluate_log", "read_log_with_notes"]


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
    blue = COMPACT_PALETTE["blue"]
    grey = COMPACT_PALETTE["grey"]
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


MOST_ARMS = 10
"""Up to how many arms are policies of their own, where none is named."""


class Evaluation(NamedTuple):
    """The words of `credo bandit evaluate`; `clip` bounds the weights, and `seed` is of the bootstrap."""

    log: str
    policies: Sequence[str]
    estimators: Sequence[str]
    interval: str
    level: float
    clip: float | None
    reward_range: str | None
    format: str | None
    seed: int
    out: Path | None
    report: Path | None


def evaluate_log(words: Evaluation) -> int:
    """Estimate what policies would have earned, and print a table."""
    for name in words.estimators:
        require_choice("estimator", name, ESTIMATORS)
    require_integer("--seed", words.seed, 0)
    ends = _range_of(words.reward_range)
    if words.out is not None:
        require_writable_file(words.out, "--out")
    log = read_log_with_notes(words.log, words.format)
    names = list(dict.fromkeys(words.policies)) or _known(log)
    targets = {name: _target(log, name, words.seed) for name in names}
    if words.report is None:
        comparison = _compared(words, log, targets, ends)
    else:
        with place_of(words.report) as place:
            if place.sentence:
                note(place.sentence)
            comparison = _compared(words, log, targets, ends)
            hints = _report(words, log, targets, ends, comparison, place.files)
            place.commit()
        for hint in hints:
            note(hint)
    _show(words.log, log, comparison)
    if words.out is not None:
        write_atomically(words.out, json_bytes(_contents(words, log, comparison)))
        note(f"estimates: {words.out}")
    if words.report is not None:
        note(f"report: {words.report}/report.html")
    return 0


def _compared(
    words: Evaluation, log: Log, targets: Mapping[str, Target], ends: tuple[float, float] | None
) -> Comparison:
    return compare(
        log,
        targets,
        estimator=cast("list[EstimatorName]", list(words.estimators)),
        interval=cast("IntervalName", words.interval),
        level=words.level,
        clip=words.clip,
        reward_range=ends,
        seed=words.seed,
    )


def _report(
    words: Evaluation,
    log: Log,
    targets: Mapping[str, Target],
    ends: tuple[float, float] | None,
    comparison: Comparison,
    folder: Path,
) -> list[str]:
    """Write the report; over time, each policy is evaluated by the first estimator."""
    name = cast("EstimatorName", words.estimators[0])
    parts = parts_of(int(np.isfinite(log.rewards).sum()))
    courses = {
        policy: evaluate_over_time(
            log,
            target,
            parts=parts,
            estimator=name,
            interval=cast("IntervalName", words.interval),
            level=words.level,
            clip=None if name == "direct" else words.clip,
            reward_range=ends,
            seed=words.seed,
        )
        for policy, target in targets.items()
    }
    settings = {field: value for field, value in words._asdict().items() if field not in ("out", "report")}
    return write(folder, words.log, comparison, courses, settings)


def read_log_with_notes(source: str, format: str | None) -> Log:
    """Read a log, and say what was wrong with some of its lines."""
    log = Log.read(_lines_of(source), format=cast("LogFormat | None", format))
    for sentence in () if log.counts is None else log.counts.sentences():
        note(f"{source}: {sentence}")
    return log


def _lines_of(source: str) -> LogSource:
    """What is to be read: for a bandit of a service the lines of its journal."""
    place = model_of_service(source)
    if place is None:
        return source
    from credo.serve.journal_log import log_lines

    return log_lines(*place)


def _range_of(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise CredoError(
            f"reward_range must be two numbers with a comma between, such as 0,1; got {text!r}.",
            field="reward_range",
        ) from None
    return low, high


def _known(log: Log) -> list[str]:
    """All policies that a log can say something about: an arm must be allowed everywhere, and chosen."""
    seen = set(log.chosen[np.isfinite(log.rewards)].tolist())
    arms = [name for arm, name in enumerate(log.arms) if arm in seen and log.allowed[:, arm].all()]
    return ["uniform", "greedy", *(arms if len(arms) <= MOST_ARMS else [])]


def _target(log: Log, name: str, seed: int) -> Target:
    """A policy, or an arm, by its name."""
    uniform: np.ndarray = log.allowed / log.allowed.sum(axis=1, keepdims=True)
    if name == "uniform":
        return uniform
    if name == "greedy":
        return _greedy(log, uniform, seed)
    if name not in log.arms:
        known = ", ".join(log.arms[:8]) + (", ..." if len(log.arms) > 8 else "")
        raise CredoError(
            f"policy must be uniform, greedy, or an arm of the log ({known}); got {name!r}.", field="policy"
        )
    return name


def _greedy(log: Log, uniform: np.ndarray, seed: int) -> np.ndarray:
    """The arm with the largest reward that regressions on other rows expect."""
    known = np.isfinite(log.rewards)
    if known.sum() < 2:
        return uniform  # which is refused by the evaluation, in words
    rows = log.take(known)
    values = np.where(rows.allowed, arm_values(rows, seed=seed), -np.inf)
    pmfs = uniform.copy()
    pmfs[known] = np.arange(len(log.arms)) == values.argmax(axis=1)[:, None]
    return pmfs


def _show(source: str, log: Log, comparison: Comparison) -> None:
    console = Screen()
    first = next(iter(comparison.estimates.values()))
    console.print(
        f"{source}: {first.rows:,} rewards of {log.rows:,} decisions among {len(log.arms)} arms",
        style="bold",
        markup=False,
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("policy", overflow="fold")
    table.add_column("estimator", no_wrap=True)
    for head in ("reward", f"{100 * first.level:.4g}% from", "to", "rows", "count as", "weights up to"):
        table.add_column(head, justify="right")
    for (policy, name), one in comparison.estimates.items():
        numbers = [f"{number:.4g}" for number in (one.value, one.low, one.high)]
        table.add_row(policy, name, *numbers, f"{one.rows:,}", f"{one.ess:,.0f}", f"{one.weights_max:.3g}")
    table.add_row("the log", "", f"{first.on_policy:.4g}", "", "", f"{first.rows:,}", f"{first.rows:,}", "1")
    console.print(table)
    console.print(
        "reward is the mean of a decision; count as: how many rows of equal weight would say as much.",
        markup=False,
    )
    if any(policy == "greedy" for policy, _ in comparison.estimates):
        console.print(
            "greedy chooses what a ridge regression of the rewards on other rows expects to be best.",
            markup=False,
        )
    warned: dict[str, list[str]] = {}
    for (policy, name), one in comparison.estimates.items():
        for sentence in one.warnings:
            warned.setdefault(sentence, []).append(f"{policy} ({name})")
    for sentence, about in warned.items():
        where = "" if len(about) == len(comparison.estimates) else f"{', '.join(about)}: "
        console.print(f"Warning: {where}{sentence}.", markup=False)


def _contents(words: Evaluation, log: Log, comparison: Comparison) -> dict[str, Any]:
    return {
        "format": 1,
        "log": words.log,
        "decisions": log.rows,
        "arms": list(log.arms),
        "estimates": [
            {"policy": policy, **dataclasses.asdict(one)} for (policy, _), one in comparison.estimates.items()
        ],
    }
