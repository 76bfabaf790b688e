"""`credo bandit run` and `replay`: an agent plays in an environment, or on a log where it agrees with it."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from rich import box
from rich.table import Table

from credo import bandits, datasets
from credo.bandits.logs.contexts import features_of
from credo.bandits.named_agents import BanditProblem, PreparedAgent, policy_of, prepare
from credo.cli import bandit_report, output
from credo.cli.bandit_evaluation import read_log_with_notes
from credo.cli.progress import Screen, note
from credo.core.errors import CredoError, DataError, require_integer, require_positive

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
    """Let an agent play, print the summary, and write the results."""
    policy = policy_of(words.policy)
    for name, value, least in (("seeds", words.seeds, 1), ("delay", words.delay, 0)):
        require_integer(name, value, least)
    divisor = UNITS.get(words.environment) if words.divisor is None else words.divisor
    if divisor is not None:
        require_positive("divisor", divisor)
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
        report = bandits.play(
            ready.agent,
            world,
            steps=steps,
            seeds=words.seeds,
            key=words.seed,
            params=ready.params,
            var=ready.var,
            delay=words.delay,
        )
        contents = bandit_report.contents(
            report, world.arms, _settings(words, ready, steps, divisor), time.monotonic() - start
        )
        hints = bandit_report.write(place.files, report, contents)
        place.commit()
    bandit_report.show(contents)
    for hint in hints:
        note(hint)
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
    """What an agent must know of an environment."""
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


class Replay(NamedTuple):
    """The words of `credo bandit replay`."""

    log: str
    agent: str
    policy: str | None
    seeds: int
    seed: int
    format: str | None


def replay_log(words: Replay) -> int:
    """Let an agent play on a log by rejection, and print what it earned."""
    policy = policy_of(words.policy)
    require_integer("seeds", words.seeds, 1)
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
    _show(words, log, report, int((~known).sum()))
    return 0


def _contexts(shared: np.ndarray, own: np.ndarray | None) -> tuple[np.ndarray | None, bool]:
    """The contexts of a log as numbers: vectors, or with features of arms a row for each arm."""
    if own is None:
        return (shared.astype(np.float32) if shared.shape[1] else None), False
    rows = np.broadcast_to(shared[:, None], (*own.shape[:2], shared.shape[1]))
    return np.concatenate([rows, own], axis=2).astype(np.float32), True


def _show(words: Replay, log: bandits.Log, report: bandits.PlayReport, missing: int) -> None:
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
    console = Screen()
    runs = f"{words.seeds} run{'s'[: words.seeds != 1]}"
    console.print(
        f"{words.log}: {log.rows:,} rows replayed in {runs}, of which "
        f"{counts.mean():,.0f} were kept on average",
        style="bold",
        markup=False,
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("reward of a decision")
    for head in ("mean", "sd of runs", "worst"):
        table.add_column(head, justify="right")
    spread = f"{earned.std(ddof=1):.3g}" if len(earned) > 1 else ""
    table.add_row("the agent", f"{earned.mean():.4g}", spread, f"{earned.min():.4g}")
    table.add_row("the agent, second half of the log", f"{late:.4g}", "", "")
    table.add_row("the log", f"{log.rewards.mean():.4g}", "", "")
    table.add_row("the best constant arm", f"{_best(log, weights):.4g}", "", "")
    console.print(table)
    console.print(
        "A row is kept if the agent chooses the arm of the log, with the probability min(p) / p. The "
        "agent learns from these rows alone.",
        markup=False,
    )
    if missing:
        console.print(f"{missing:,} decisions without a reward are left out.", markup=False)
    least = int(counts.min())
    if least < 100:
        console.print(f"Warning: only {least} rows were kept in a run, which says little.", markup=False)


def _best(log: bandits.Log, weights: np.ndarray) -> float:
    """The largest mean reward of an arm, each row weighted by 1 / propensity."""
    totals = np.bincount(log.chosen, weights * log.rewards, minlength=len(log.arms))
    counts = np.bincount(log.chosen, weights, minlength=len(log.arms))
    return float((totals[counts > 0] / counts[counts > 0]).max())
