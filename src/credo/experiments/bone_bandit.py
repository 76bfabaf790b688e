"""A restless bandit: ten arms whose chances of a reward walk all the time, and one of which is pulled a step.

Every arm has a learner of its own; all of them move at every step (the world does not wait for a pull), the
pulled one learns. An arm is chosen by Thompson sampling from the belief's mean and `explore` times its
standard deviation. Regret is counted against the chances (the pseudo-regret: the best arm's minus the pulled
one's), and, as published, against the best reward that happened to be there.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.core.trees import as_like
from credo.experiments.bone_bandit_figure import draw
from credo.experiments.bone_common import VERSION, Method, grid
from credo.experiments.bone_methods import make
from credo.experiments.bone_streams import SCORED, TUNING
from credo.experiments.cells import Cells
from credo.experiments.records import Outcome, Progress, Row, Size, mean_se
from credo.experiments.sweep import One, Setting, portion, sweep

__all__ = ["METHODS", "Worlds", "build", "make_worlds", "run"]

ARMS, STEP_VAR = 10, 0.003
SIZES = {"quick": (4, 8, 1000), "full": (10, 30, 10_000)}  # worlds for tuning, worlds scored, steps
MODEL = credo.Model(lambda w, x: w, credo.Bernoulli())


class Worlds(NamedTuple):
    """Worlds with a leading axis: chances (N, T, arms), rewards (N, T, arms), keys of the choices (N, 2)."""

    chance: np.ndarray
    reward: np.ndarray
    key: np.ndarray


def make_worlds(seed: int, purpose: int, count: int, steps: int) -> Worlds:
    """Chances that begin at U(0, 1) and walk with variance .003 a step, cut off at 0 and 1."""
    chance = np.empty((count, steps, ARMS), np.float32)
    reward = np.empty((count, steps, ARMS), np.float32)
    for world in range(count):
        rng = np.random.default_rng([seed, purpose, world])
        now, walk = rng.random(ARMS), np.sqrt(STEP_VAR) * rng.normal(size=(steps, ARMS))
        for t in range(steps):
            chance[world, t] = now
            now = np.clip(now + walk[t], 0.0, 1.0)
        reward[world] = rng.random((steps, ARMS)) < chance[world]
    keys = np.stack([[seed, purpose * 1000 + world] for world in range(count)])
    return Worlds(chance, reward, keys.astype(np.uint32))


def _arm(program: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
    if program["method"] == "beta":
        return credo.BetaBernoulli(forgetting=values["forgetting"])
    return make(credo.RecursiveLearner(MODEL, credo.Diagonal()), program, values)


def build(program: Mapping[str, Any]) -> One:
    """The function of one world: for each 50th part of it the pseudo-regret and the published regret."""

    def one(values: dict[str, jax.Array], world: Worlds, shared: Any) -> dict[str, jax.Array]:
        learner = _arm(program, values)
        first = learner.init(jnp.zeros(1), var=values.get("var", 1.0))
        beliefs = jax.tree.map(lambda leaf: jnp.stack([leaf] * ARMS), first)
        key = jax.random.wrap_key_data(jnp.asarray(world.key))

        def pull(state: Any, row: Any) -> tuple[Any, jax.Array]:
            beliefs, key = state
            chance, reward = row
            beliefs = jax.vmap(learner.predict)(beliefs)
            mean, sd = jax.vmap(lambda belief: (belief.mean, jnp.sqrt(belief.var)))(beliefs)
            mean, sd = mean.reshape(ARMS), sd.reshape(ARMS)
            key, draw = jax.random.split(key)
            noise = jax.random.normal(draw, (ARMS,), mean.dtype)
            arm = jnp.argmax(mean + as_like(values["explore"], mean) * sd * noise)
            pulled = (jnp.arange(ARMS) == arm).astype(mean.dtype)

            def learn(belief: Any, y: jax.Array, weight: jax.Array) -> Any:
                return learner.update(belief, jnp.zeros(()), y, weight=weight)[0]

            lost = jnp.stack([jnp.max(chance) - chance[arm], jnp.max(reward) - reward[arm]])
            return (jax.vmap(learn)(beliefs, reward, pulled), key), lost

        lost = jax.lax.scan(pull, (beliefs, key), (world.chance, world.reward))[1]
        parts = lost.reshape(50, -1, 2).sum(axis=1)
        return {"pseudo": parts[:, 0], "realised": parts[:, 1]}

    return one


EXPLORE = (0.0, 0.25, 0.5, 1.0)
METHODS = [
    Method(
        "C-OU",
        {"method": "ou"},
        grid(gamma=(0.97, 0.985, 0.99), var=(2.0, 4.0, 8.0), explore=(0.1, 0.25, 0.5)),
        note="measured before with C-LSSM on the chances: 2845 (realised)",
        quick=True,
    ),
    Method(
        "C-ACI",
        {"method": "aci"},
        grid(q=(0.03, 0.1, 0.3), explore=EXPLORE),
        3000.0,
        note="measured before: 1658; the published one does not explore",
    ),
    Method(
        "RL[1]-OUPR*",
        {"method": "rl-oupr"},
        grid(hazard=(0.03, 0.1, 0.25), explore=EXPLORE),
        2366.7,
        note="measured before: 1640",
    ),
    Method("RL[3]-PR", {"method": "rl-pr", "capacity": 3}, grid(hazard=(0.03, 0.1), explore=(0.5, 1.0))),
    Method(
        "Beta, discounted",
        {"method": "beta"},
        grid(forgetting=(0.8, 0.85, 0.9, 0.95, 0.99), explore=(0.1, 0.25, 0.5, 1.0)),
        note="the peer: Thompson sampling with a discount",
    ),
    Method("Beta, static", {"method": "beta"}, grid(forgetting=1.0, explore=(0.5, 1.0)), note="the peer"),
]


def run(size: Size, seed: int, progress: Progress, cells: Cells) -> Outcome:
    """Tune the numbers of every method and how much it explores on some worlds, score on others."""
    tuned, count, steps = SIZES[size]
    worlds = {
        TUNING: make_worlds(seed, TUNING, tuned, steps),
        SCORED: make_worlds(seed, SCORED, count, steps),
    }
    methods = [method for method in METHODS if size == "full" or method.quick]

    def score(method: Method, index: int, purpose: int, told: Progress) -> dict[str, np.ndarray]:
        setting = Setting(f"{method.label} {index}", method.program, method.grid[index])
        given = {"seed": seed, "purpose": purpose, "steps": steps, "version": VERSION}
        more: dict[str, Any] = {"given": given, "chunk": tuned, "cells": cells, "progress": told}
        return sweep("bone-bandit", [setting], build, worlds[purpose], **more)[setting.name]

    chance, reward = worlds[SCORED].chance, worlds[SCORED].reward
    oracle = np.take_along_axis(reward, chance.argmax(axis=2)[..., None], axis=2)[..., 0]
    rows = [
        Row("pseudo-regret, an arm at random", *mean_se((chance.max(2) - chance.mean(2)).sum(1))),
        Row("realised regret, chances known", *mean_se((reward.max(2) - oracle).sum(1)), note="irreducible"),
    ]
    chosen, tuning, series, best = {}, {}, {"step": np.arange(1, 51) * (steps // 50)}, (np.inf, "", 0)
    arrays: dict[str, np.ndarray] = {}
    for number, method in enumerate(methods):
        told = portion(progress, number / len(methods), (number + 1) / len(methods))
        cost = [
            float(score(method, index, TUNING, told)["pseudo"].sum(axis=1).mean())
            for index in range(len(method.grid))
        ]
        index = int(np.argmin(cost))
        result = score(method, index, SCORED, told)
        best = min(best, (cost[index], method.label, len(rows)))
        pseudo, realised = result["pseudo"].sum(axis=1), result["realised"].sum(axis=1)
        rows.append(Row(f"pseudo-regret, {method.label}", *mean_se(pseudo), note=method.note))
        rows.append(Row(f"realised regret, {method.label}", *mean_se(realised), published=method.published))
        chosen[method.label] = dict(method.grid[index])
        tuning[method.label] = [{**v, "cost": c} for v, c in zip(method.grid, cost, strict=True)]
        series[method.label] = result["pseudo"].cumsum(axis=1).mean(axis=0)
        arrays[f"pseudo {method.label}"], arrays[f"realised {method.label}"] = pseudo, realised
    if size == "full":
        first = rows[best[2]]
        rows.insert(
            0, Row(f"pseudo-regret, best in tuning ({best[1]})", first.ours, first.se, note="target: 1640")
        )
    settings = {
        "arms": ARMS,
        "steps": steps,
        "walk": f"variance {STEP_VAR} a step, cut off at 0 and 1",
        "chosen": chosen,
        "tuning": tuning,
        "criterion": "pseudo-regret",
        "published": "realised regret, 100 worlds",
    }
    seeds = {
        "scored": f"numpy.random.default_rng([{seed}, {SCORED}, i]), i = 0..{count - 1}",
        "tuning": f"numpy.random.default_rng([{seed}, {TUNING}, i]), i = 0..{tuned - 1}; not scored",
    }
    return Outcome(tuple(rows), settings, seeds, series, arrays, functools.partial(draw, series, arrays))
