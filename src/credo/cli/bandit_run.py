"""`credo bandit run`: an agent plays in an environment, and the results are written."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from credo import bandits, datasets
from credo.bandits.named_agents import BanditProblem, PreparedAgent, policy_of, prepare
from credo.cli import bandit_report, output
from credo.cli.progress import note
from credo.core.errors import CredoError, require_integer, require_positive

__all__ = ["Play", "run_bandit"]

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
    world = bandits.load(words.environment, divisor=divisor)
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


def problem_of(world: bandits.AnyEnvironment, name: str) -> BanditProblem:
    """What an agent must know of an environment."""
    state = world.start(0)
    shapes = jax.eval_shape(lambda: world.context(state).x)
    if shapes is not None and not hasattr(shapes, "shape"):
        raise CredoError(f"environment {name} has contexts that are no vectors.", field="environment")
    inputs = None if shapes is None else math.prod(shapes.shape[-1:])
    pulled = np.asarray(
        jax.vmap(lambda key: world.pull_all(state, key))(jax.random.split(jax.random.key(0), 8))
    )
    binary = bool(np.isin(pulled[~np.isnan(pulled)], (0.0, 1.0)).all())
    images = name in datasets.names() and datasets.load(name, limit=1).x.ndim > 2
    return BanditProblem(world.arms, inputs, binary, world.design, not images)
