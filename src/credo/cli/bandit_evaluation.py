"""`credo bandit evaluate`: what fixed policies would have earned, from the log of another one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from credo.bandits import Log
from credo.bandits.evaluation import (
    ESTIMATORS,
    Comparison,
    Course,
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
from credo.cli.output import require_writable_file
from credo.cli.progress import note
from credo.cli.report import Line, Picture, Report, Section, Table, show, write
from credo.core.errors import CredoError, require_choice
from credo.core.files import json_bytes, versions, write_atomically

__all__ = ["Evaluation", "evaluate_log", "read_log_with_notes"]


MOST_PARTS = 10
"""Into how many parts a log is cut, if it has rows enough."""


def parts_of(rewards: int) -> int:
    """The number of parts of a log with so many rewards."""
    return max(1, min(MOST_PARTS, rewards // (2 * FEWEST)))


@contextmanager
def place_of(folder: Path | None) -> Iterator[output.Folder | None]:
    """The locked folder of a report, if there is to be one."""
    if folder is None:
        yield None
        return
    with output.writing(folder, "bandit-evaluation", None, option="--report") as place:
        if place.sentence:
            note(place.sentence)
        yield place


def report_of(words: Evaluation, log: Log, comparison: Comparison, courses: Mapping[str, Course]) -> Report:
    """The report of an evaluation, with the course of each policy over time where that is known."""
    estimates = comparison.estimates
    first = next(iter(estimates.values()))
    settings = {field: value for field, value in words._asdict().items() if field not in ("out", "report")}
    weights = [f"{policy}: {course.support}" for policy, course in courses.items()]
    return Report(
        title=words.log,
        subject="What policies would have earned",
        headline=f"{first.rows:,} rewards of {log.rows:,} decisions among {len(log.arms)} arms",
        verdict=_verdict(comparison),
        remarks=list(_remarks(comparison)),
        sections=[_scores(comparison), Section("Weights", weights)],
        settings=settings,
        command="credo bandit evaluate",
        data={
            "format": 1,
            "settings": settings,
            "estimates": _plain(comparison),
            "support": {policy: asdict(course.support) for policy, course in courses.items()},
            "over_time": {policy: course.table() for policy, course in courses.items()},
            "versions": versions(),
        },
        draw=lambda: _draw(comparison, courses),
    )


def _plain(comparison: Comparison) -> list[dict[str, Any]]:
    """The estimates as JSON data."""
    return [{"policy": policy, **asdict(one)} for (policy, _), one in comparison.estimates.items()]


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


def _remarks(comparison: Comparison) -> Iterator[str]:
    """The meaning of the numbers, and warnings with the estimates that they are about."""
    estimates = comparison.estimates
    yield "reward is the mean of a decision; count as: how many rows of equal weight would say as much."
    if any(policy == "greedy" for policy, _ in estimates):
        yield "greedy chooses what a ridge regression of the rewards on other rows expects to be best."
    warned: dict[str, list[str]] = {}
    for (policy, name), one in estimates.items():
        for sentence in one.warnings:
            warned.setdefault(sentence, []).append(f"{policy} ({name})")
    for sentence, about in warned.items():
        where = "" if len(about) == len(estimates) else f"{', '.join(about)}: "
        yield f"Warning: {where}{sentence}."


def _scores(comparison: Comparison) -> Section:
    """The estimates, and what the log earned."""
    first = next(iter(comparison.estimates.values()))
    lines = []
    for (policy, name), one in comparison.estimates.items():
        interval = (f"{number:.4g}" for number in (one.value, one.low, one.high))
        cells = (*interval, f"{one.rows:,}", f"{one.ess:,.0f}", f"{one.weights_max:.3g}")
        lines.append(Line(f"{policy} ({name})", cells))
    rows = f"{first.rows:,}"
    lines.append(Line("the log", (f"{first.on_policy:.4g}", "", "", rows, rows, "1")))
    low = f"{100 * first.level:.4g}% from"
    heads = ("policy (estimator)", "reward", low, "to", "rows", "count as", "weights up to")
    return Section("Rewards", [], Table(heads, lines), main=True)


def _draw(comparison: Comparison, courses: Mapping[str, Course]) -> dict[str, Picture]:
    """The plots by file name without suffix: all policies, and each over time."""
    caption = "What each policy would have earned, with its interval."
    pictures = {"policies": Picture(comparison.chart().svg(), caption)}
    for number, (policy, course) in enumerate(courses.items(), 1):
        words = (
            f"{policy} ({course.whole.estimator}) from part to part of the log, beside what the log earned "
            "there. Below, how many of a part's rows count, and which share has the weight 0: an interval "
            "rests on the rows that count."
        )
        pictures[f"over-time-{number}"] = Picture(course.chart().svg(), words)
    return pictures


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
    ends = _range_of(words.reward_range)
    if words.out is not None:
        require_writable_file(words.out, "--out")
    log = read_log_with_notes(words.log, words.format)
    names = list(dict.fromkeys(words.policies)) or _known(log)
    targets = {name: _target(log, name, words.seed) for name in names}
    with place_of(words.report) as place:
        comparison = _compared(words, log, targets, ends)
        courses = {} if place is None else _courses(words, log, targets, ends)
        report = report_of(words, log, comparison, courses)
        if place is not None:
            write(report, place.files)
            place.commit()
    show(report)
    if words.out is not None:
        estimates = _plain(comparison)
        data = {"format": 1, "log": words.log, "decisions": log.rows, "arms": list(log.arms)}
        write_atomically(words.out, json_bytes({**data, "estimates": estimates}))
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


def _courses(
    words: Evaluation, log: Log, targets: Mapping[str, Target], ends: tuple[float, float] | None
) -> dict[str, Course]:
    """Each policy over time, by the first estimator."""
    name = cast("EstimatorName", words.estimators[0])
    parts = parts_of(int(np.isfinite(log.rewards).sum()))
    return {
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


def read_log_with_notes(source: str, format: str | None) -> Log:
    """Read a log, and say what was wrong with some of its lines."""
    log = Log.read(_lines_of(source), format=cast("LogFormat | None", format))
    for sentence in () if log.counts is None else log.counts.sentences():
        note(f"{source}: {sentence}")
    return log


def _lines_of(source: str) -> LogSource:
    """The log to read: for a bandit of a service the lines of its journal."""
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
