"""`credo bandit run` and `replay`: an agent plays in an environment, or on a log where it agrees with it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from credo import bandits, datasets
from credo.bandits.logs.contexts import features_of
from credo.bandits.named_agents import BanditProblem, PreparedAgent, policy_of, prepare
from credo.cli import output
from credo.cli.bandit_evaluation import read_log_with_notes
from credo.cli.progress import note
from credo.cli.report import (
    BLUE,
    SKY,
    Line,
    Picture,
    Report,
    Section,
    Table,
    calibration_chart,
    draw_reliability,
    show,
    write,
)
from credo.core.errors import CredoError, DataError, require_integer
from credo.core.files import versions
from credo.plots import Chart, Legend, Mark, Pen

__all__ = ["Play", "Replay", "replay_log", "run_bandit"]

STEPS = 5_000
"""The decisions of a run, where the data do not end before."""

UNITS = {"wheel": 50.0}
"""By what the rewards of an environment are divided, so that they are of the order of 1."""


class Play(NamedTuple):
    """The words of `credo bandit run`; rewards come after `delay` decisions and are divided by `divisor`."""

    environment: str
    agent: str
    policy: str | None
    seeds: int
    steps: int | None
    delay: int
    divisor: float | None
    seed: int
    out: Path | None


def run_bandit(words: Play) -> int:
    """Run an agent, print the summary, and write the results."""
    policy = policy_of(words.policy)
    divisor = UNITS.get(words.environment) if words.divisor is None else words.divisor
    world = bandits.load_environment(words.environment, divisor=divisor)
    steps = min(STEPS, world.steps or STEPS) if words.steps is None else words.steps
    require_integer("steps", steps, 1, world.steps)
    ready = prepare(words.agent, problem_of(world, words.environment), policy)
    with output.writing(words.out, f"bandit-{words.environment}", None) as place:
        if place.sentence:
            note(place.sentence)
        note(
            f"agent: {ready.description}; policy: {type(ready.agent.policy).__name__}; {words.seeds} "
            f"{'run' if words.seeds == 1 else 'runs'} of {steps:,} decisions among {world.arms} arms"
        )
        start = time.monotonic()
        play = bandits.play(
            ready.agent,
            world,
            steps=steps,
            seeds=words.seeds,
            key=words.seed,
            params=ready.params,
            var=ready.var,
            delay=words.delay,
        )
        settings = _settings(words, ready, steps, divisor)
        report = report_of(play, world.arms, settings, time.monotonic() - start)
        write(report, place.files)
        place.commit()
    show(report)
    note(f"report: {place.path}/report.html")
    return 0


def _settings(words: Play, ready: PreparedAgent, steps: int, divisor: float | None) -> dict[str, Any]:
    policy = words.policy or f"{type(ready.agent.policy).__name__} (the agent's own)"
    return {
        "environment": words.environment,
        "agent": words.agent,
        "learner": ready.description,
        "policy": policy,
        "seeds": words.seeds,
        "steps": steps,
        "delay": words.delay,
        "divisor": divisor,
        "seed": words.seed,
    }


def problem_of(world: bandits.environments.AnyEnvironment, name: str) -> BanditProblem:
    """The facts about an environment that an agent must know."""
    state = world.start(0)
    shapes = jax.eval_shape(lambda: world.context(state).x)
    if shapes is not None and not hasattr(shapes, "shape"):
        raise CredoError(
            f"environment must have vectors for contexts; those of {name} are not.", field="environment"
        )
    inputs = None if shapes is None else math.prod(shapes.shape[-1:])
    pulled = np.asarray(
        jax.vmap(lambda key: world.pull_all(state, key))(jax.random.split(jax.random.key(0), 8))
    )
    binary = bool(np.isin(pulled[~np.isnan(pulled)], (0.0, 1.0)).all())
    images = name in datasets.names() and datasets.load(name, limit=1).x.ndim > 2
    return BanditProblem(world.arms, inputs, binary, world.design, not images)


POINTS = 200
"""At how many steps the curves stand in report.json."""

MOST_LABELS = 20
"""Up to how many arms each has its number below it."""

MEANING = {
    "total_reward": "sum of the rewards of a run",
    "total_regret": "how much more the best arms were expected to earn",
    "log_evidence": "log density of a reward before it was learned (nats)",
}


def report_of(play: bandits.PlayReport, arms: int, settings: Mapping[str, Any], seconds: float) -> Report:
    """The report of a play among some arms, which took some seconds."""
    runs, steps = play.rewards.shape
    data = _data_of(play, arms, settings, seconds)
    total = runs * steps
    late = data["late_regret"]
    best = data["best_constant"]
    verdict = f"A decision earned {data['scores']['total_reward']['mean'] / steps:.4g} on average"
    if best is not None:
        verdict += f"; always choosing the best constant arm earns {best / steps:.4g}"
    if late is not None:
        verdict += f"; regret was {late:.4g} a decision in the last tenth"
    data["verdict"] = f"{verdict}."
    lines = [
        Line(name.replace("_", " "), tuple(_number(value) for value in score.values()), MEANING[name])
        for name, score in data["scores"].items()
    ]
    if best is not None:
        lines.insert(1, Line("best constant arm", (_number(best), "", ""), "the arm with the best mean"))
    headline = (
        f"{runs} run{'s'[: runs != 1]} of {steps:,} decisions in {seconds:.1f} s, compiling included "
        f"({total / seconds:,.0f} decisions/s)"
    )
    refused = f"{play.refused:,} of {total:,} updates were refused: the reward was missing or not usable."
    return Report(
        title=settings["environment"],
        subject="A bandit",
        headline=headline,
        verdict=data["verdict"],
        remarks=[refused] if play.refused else [],
        sections=[Section("Scores", [], Table(("score", "mean", "sd", "worst"), lines), main=True)],
        settings=settings,
        command="credo bandit run",
        data=data,
        draw=lambda: {
            "regret": _draw_curve(data["curves"], runs),
            "pulls": _draw_pulls(data["pulls"]),
            "calibration": _draw_calibration(play.calibration),
            "propensities": _draw_propensities(play.propensities),
        },
    )


def _data_of(
    play: bandits.PlayReport, arms: int, settings: Mapping[str, Any], seconds: float
) -> dict[str, Any]:
    """The contents of report.json; of each score the mean, the sd and the worst of the runs."""
    runs, steps = play.rewards.shape
    scores = {"total_reward": _score(play.totals, worst=np.min)}
    curves = {"reward": _curve(np.nancumsum(play.rewards.astype(float), axis=1))}
    late = None
    if not np.isnan(play.regrets).any():
        scores["total_regret"] = _score(play.regret[:, -1], worst=np.max)
        curves["regret"] = _curve(play.regret)
        late = float(play.regrets[:, -max(1, steps // 10) :].mean())
    scores["log_evidence"] = _score(np.nanmean(play.log_evidence, axis=1), worst=np.min)
    counts, edges = np.histogram(play.propensities, bins=20, range=(0.0, 1.0))
    claimed, best, seen = play.calibration
    return {
        "format": 1,
        "settings": settings,
        "scores": scores,
        "seconds": seconds,
        "decisions_per_second": runs * steps / seconds,
        "best_constant": None if play.best_constant is None else play.best_constant * steps,
        "late_regret": late,
        "refused": play.refused,
        "totals": play.totals,
        "curves": curves,
        "pulls": np.stack([np.bincount(run, minlength=arms) for run in play.arms]),
        "calibration": {"claimed": claimed, "best": best, "count": seen},
        "propensities": {"edges": edges, "counts": counts, "least": float(play.propensities.min())},
        "versions": versions(),
    }


def _score(values: np.ndarray, worst: Any) -> dict[str, float]:
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return {"mean": float(values.mean()), "sd": spread, "worst": float(worst(values))}


def _curve(values: np.ndarray) -> dict[str, np.ndarray]:
    """Quantiles over the runs, at some steps."""
    steps = np.unique(np.linspace(1, values.shape[1], min(POINTS, values.shape[1])).astype(int))
    low, middle, high = np.quantile(values[:, steps - 1], [0.1, 0.5, 0.9], axis=0)
    return {"steps": steps, "low": low, "median": middle, "high": high, "mean": values[:, steps - 1].mean(0)}


def _number(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.1f}"
    return f"{value:.4g}"


def _draw_curve(curves: Mapping[str, Any], runs: int) -> Picture:
    name = "regret" if "regret" in curves else "reward"
    curve = curves[name]
    chart = Chart(label="decisions", low=0.0, high=float(curve["steps"][-1]))
    panel = chart.panels[0]
    panel.label = f"cumulative {name}"
    panel.low = 0.0 if curve["low"].min() >= 0 else None
    if runs > 1:
        panel.band(curve["steps"], curve["low"], curve["high"], SKY, opacity=0.35, name="80% of runs")
    panel.line(curve["steps"], curve["median"], Pen(BLUE), name="median" if runs > 1 else name)
    panel.legend = Legend(columns=2)
    chart.count_rows()
    words = (
        "How much more the best allowed arms were expected to earn than the chosen ones, summed over the "
        "decisions: the flatter, the less there is left to learn."
        if name == "regret"
        else "The rewards so far. What the best arms would have earned is not known."
    )
    return Picture(chart.svg(), words)


def _draw_pulls(pulls: np.ndarray) -> Picture:
    shares = pulls / pulls.sum(axis=1, keepdims=True)
    arms = np.arange(shares.shape[1])
    chart = Chart(label="arm", whole=True)
    panel = chart.panels[0]
    panel.label = "share of the decisions"
    panel.bars(arms, shares.mean(axis=0), 0.8, SKY, name="mean of the runs")
    if len(pulls) > 1:
        panel.dots(np.tile(arms, len(shares)), shares.ravel(), BLUE, size=2.5, name="a run")
    panel.legend = Legend(columns=2)
    panel.low = 0.0
    if len(arms) <= MOST_LABELS:
        chart.marks = [Mark(arm, str(arm)) for arm in arms.tolist()]
    return Picture(chart.svg(), "How often each arm was chosen.")


def _draw_calibration(calibration: np.ndarray) -> Picture:
    claimed, best, count = calibration
    chart = calibration_chart("share that was the best", "probability of the choice", "arms")
    draw_reliability(chart, np.column_stack([count, claimed, best]), "arms")
    return Picture(
        chart.svg(),
        "Of the arms that were to be chosen with a probability, how many were the best. Thompson sampling "
        "chooses an arm as often as it believes it to be the best, so its points should lie on the diagonal; "
        "policies that are greedy, or explore more, need not.",
    )


def _draw_propensities(propensities: np.ndarray) -> Picture:
    steps = propensities.shape[1]
    tenths = np.array_split(np.arange(steps), min(10, steps))
    chart = Chart((1, 1), label="propensity of the chosen arm", low=0.0, high=1.02)
    edges = np.linspace(0.0, 1.0, 21)
    for panel, part, words in zip(chart.panels, (tenths[0], tenths[-1]), ("first", "last"), strict=True):
        counts, _ = np.histogram(propensities[:, part], bins=edges)
        panel.bars(edges[:-1] + 0.025, counts / counts.sum(), 0.045, SKY)
        panel.low = 0.0
        panel.label = "share"
        panel.title = f"The {words} tenth of the decisions"
    return Picture(
        chart.svg(),
        "The probability with which the chosen arm was drawn, which off-policy evaluation divides by. The "
        f"least one is {propensities.min():.3g}.",
    )


class Replay(NamedTuple):
    """The words of `credo bandit replay`."""

    log: str
    agent: str
    policy: str | None
    seeds: int
    seed: int
    format: str | None


def replay_log(words: Replay) -> int:
    """Run an agent on a log by rejection, and print what it earned."""
    policy = policy_of(words.policy)
    log = read_log_with_notes(words.log, words.format)
    known = np.isfinite(log.rewards)
    if not known.any() or len(log.arms) < 2:
        raise DataError(f"{words.log} must have rewards of two or more arms; nothing can be replayed.")
    log = log.take(known)
    shared, own = features_of(log.contexts, log.rows, len(log.arms))
    x, per_action = _contexts(shared, own)
    world = bandits.environments.LoggedReplay(
        x,
        log.chosen,
        log.rewards,
        propensities=log.propensities,
        allowed=log.allowed,
        arms=len(log.arms),
        per_action=per_action,
    )
    binary = bool(np.isin(log.rewards, (0.0, 1.0)).all())
    inputs = None if x is None else x.shape[-1]
    design: bandits.environments.ContextDesign = "actions" if per_action else "outputs"
    ready = prepare(words.agent, BanditProblem(len(log.arms), inputs, binary, design), policy)
    note(f"agent: {ready.description}; policy: {type(ready.agent.policy).__name__}")
    report = bandits.play(
        ready.agent, world, seeds=words.seeds, key=words.seed, params=ready.params, var=ready.var
    )
    show(_replayed(words, log, report, int((~known).sum())))
    return 0


def _contexts(shared: np.ndarray, own: np.ndarray | None) -> tuple[np.ndarray | None, bool]:
    """The contexts of a log as numbers: vectors, or with features of arms a row for each arm."""
    if own is None:
        return (shared.astype(np.float32) if shared.shape[1] else None), False
    rows = np.broadcast_to(shared[:, None], (*own.shape[:2], shared.shape[1]))
    return np.concatenate([rows, own], axis=2).astype(np.float32), True


def _replayed(words: Replay, log: bandits.Log, report: bandits.PlayReport, missing: int) -> Report:
    """The report of a replay, in whose log some rewards are missing."""
    kept = np.isfinite(report.rewards)
    counts = kept.sum(axis=1)
    if not counts.all():
        raise DataError(
            f"{words.log} has no row at which the agent and the log agree in one of the runs; a log of more "
            "rows, or with larger propensities, is needed."
        )
    earned = np.nansum(report.rewards.astype(float), axis=1) / counts
    half = max(1, log.rows // 2)
    late = np.where(kept[:, -half:], report.rewards[:, -half:], 0).sum() / max(1, kept[:, -half:].sum())
    weights = 1.0 / log.propensities
    least = int(counts.min())
    remarks = [
        "A row is kept if the agent chooses the arm of the log, with the probability min(p) / p. The "
        "agent learns from these rows alone."
    ]
    if missing:
        remarks.append(f"{missing:,} decisions without a reward are left out.")
    if least < 100:
        remarks.append(f"Warning: only {least} rows were kept in a run, which says little.")
    spread = f"{earned.std(ddof=1):.3g}" if len(earned) > 1 else ""
    lines = [
        Line("the agent", (f"{earned.mean():.4g}", spread, f"{earned.min():.4g}")),
        Line("the agent, second half of the log", (f"{late:.4g}", "", "")),
        Line("the log", (f"{log.rewards.mean():.4g}", "", "")),
        Line("the best constant arm", (f"{_best(log, weights):.4g}", "", "")),
    ]
    heads = ("reward of a decision", "mean", "sd of runs", "worst")
    return Report(
        title=words.log,
        headline=f"{log.rows:,} rows replayed in {words.seeds} run{'s'[: words.seeds != 1]}, of which "
        f"{counts.mean():,.0f} were kept on average",
        remarks=remarks,
        sections=[Section("Rewards", [], Table(heads, lines), main=True)],
    )


def _best(log: bandits.Log, weights: np.ndarray) -> float:
    """The largest mean reward of an arm, each row weighted by 1 / propensity."""
    totals = np.bincount(log.chosen, weights * log.rewards, minlength=len(log.arms))
    counts = np.bincount(log.chosen, weights, minlength=len(log.arms))
    return float((totals[counts > 0] / counts[counts > 0]).max())
