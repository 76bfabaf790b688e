"""A restless bandit: ten arms whose chances of a reward walk all the time; one is pulled in each step.

Every arm has a learner of its own. Time passes for all of them in every step, since the world does not wait
for a pull; the one that is pulled learns. The agents are those of `credo.bandits`: they choose by UCB, whose
width is tuned, or by Thompson sampling. A world is a table of the rewards that all arms would have given
(`environments.KnownRewards`), so that all agents play in the same ones. Regret is counted against the
chances (the pseudo-regret: the chance of the best arm less that of the pulled one) and, as published, against
the best reward that happened to be there.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import jax
import numpy as np

from credo.bandits import play
from credo.bandits.environments import KnownRewards
from credo_papers.bone.bone_bandit_figure import draw
from credo_papers.bone.bone_bandit_learner import agent_of, prior_of
from credo_papers.bone.bone_bandit_plan import METHODS, SIZES
from credo_papers.bone.bone_bandit_world import ARMS, STEP_VAR, Worlds, make_worlds
from credo_papers.bone.bone_plan import Method
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.plain_data import Arrays, Json
from credo_papers.engine.portions import Progress, portion
from credo_papers.engine.purposes import SCORED, TUNING
from credo_papers.engine.quantities import Row, mean_se

__all__ = ["run"]

VERSION = 3
"""Of the code behind finished cells."""


@dataclass(frozen=True)
class _Trial:
    """Lets one point of the grid of a method play in the worlds for a purpose."""

    worlds: Mapping[int, Worlds]
    seed: int
    cells: Cells

    def __call__(self, method: Method, index: int, purpose: int, progress: Progress) -> Arrays:
        worlds = self.worlds[purpose]
        name = f"bone-bandit {method.label} {index}"
        progress(index / len(method.grid), name)
        count, steps, _ = worlds.chance.shape
        settings: dict[str, Json] = {
            "seed": self.seed,
            "purpose": purpose,
            "worlds": count,
            "steps": steps,
            "version": VERSION,
            "program": str(method.program),
            "values": dict(method.grid[index]),
        }
        compute = functools.partial(_play, method, index, worlds, self.seed, purpose)
        return self.cells.get(name, settings, compute)


def _play(method: Method, index: int, worlds: Worlds, seed: int, purpose: int) -> Arrays:
    """The regrets of a point of a grid."""
    values = method.grid[index]
    agent = agent_of(method.program, values)
    params, var = prior_of(method.program, values)
    pseudo = []
    realised = []
    for number, (chance, reward) in enumerate(zip(worlds.chance, worlds.reward, strict=True)):
        world = KnownRewards(None, reward, shuffle=False)
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), purpose), number)
        report = play(agent, world, seeds=1, key=key, params=params, var=var)
        pulled = np.take_along_axis(chance, report.arms[0][:, None], axis=1)[:, 0]
        pseudo.append((chance.max(axis=1) - pulled).reshape(50, -1).sum(axis=1))
        realised.append(report.regrets[0].reshape(50, -1).sum(axis=1))
    return {"pseudo": np.stack(pseudo), "realised": np.stack(realised)}


@dataclass(frozen=True)
class _Score:
    """A method after tuning: the point of its grid, the costs of all points, and regrets on new worlds."""

    method: Method
    index: int
    costs: list[float]
    result: Arrays

    @property
    def regrets(self) -> tuple[np.ndarray, np.ndarray]:
        """The pseudo-regret and the realised regret of every world."""
        return self.result["pseudo"].sum(axis=1), self.result["realised"].sum(axis=1)


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Tune the numbers of every method and how much it explores on some worlds, and score it on others."""
    tuning_count, count, steps = SIZES[size]
    worlds = {
        TUNING: make_worlds(seed, TUNING, tuning_count, steps),
        SCORED: make_worlds(seed, SCORED, count, steps),
    }
    trial = _Trial(worlds, seed, Cells() if cells is None else cells)
    methods = [method for method in METHODS if size == "full" or method.quick]

    def judge(number: int) -> _Score:
        method = methods[number]
        part = portion(progress, number / len(methods), (number + 1) / len(methods))
        tuned = trial.cells.each(
            lambda index: trial(method, index, TUNING, part)["pseudo"], range(len(method.grid))
        )
        costs = [float(pseudo.sum(axis=1).mean()) for pseudo in tuned]
        index = int(np.argmin(costs))
        return _Score(method, index, costs, trial(method, index, SCORED, part))

    scores = trial.cells.each(judge, range(len(methods)))
    series: Arrays = {"step": np.arange(1, 51) * (steps // 50)}
    arrays: Arrays = {}
    for score in scores:
        label = score.method.label
        series[label] = score.result["pseudo"].cumsum(axis=1).mean(axis=0)
        arrays[f"pseudo {label}"], arrays[f"realised {label}"] = score.regrets
    settings: dict[str, Json] = {
        "arms": ARMS,
        "steps": steps,
        "walk": f"variance {STEP_VAR} a step, cut off at 0 and 1",
        "chosen": {score.method.label: dict(score.method.grid[score.index]) for score in scores},
        "tuning": {
            score.method.label: [
                {**values, "cost": cost} for values, cost in zip(score.method.grid, score.costs, strict=True)
            ]
            for score in scores
        },
        "criterion": "pseudo-regret",
        "published": "realised regret, 100 worlds",
    }
    seeds = {
        "scored": f"numpy.random.default_rng([{seed}, {SCORED}, i]), i = 0..{count - 1}",
        "tuning": f"numpy.random.default_rng([{seed}, {TUNING}, i]), i = 0..{tuning_count - 1}; not scored",
    }
    rows = _table(worlds[SCORED], scores, size)
    return Outcome(rows, settings, seeds, series, arrays, functools.partial(draw, series, arrays))


def _table(worlds: Worlds, scores: list[_Score], size: Size) -> tuple[Row, ...]:
    chance = worlds.chance
    reward = worlds.reward
    oracle = np.take_along_axis(reward, chance.argmax(axis=2)[..., None], axis=2)[..., 0]
    rows = [
        Row("pseudo-regret, an arm at random", *mean_se((chance.max(2) - chance.mean(2)).sum(1))),
        Row("realised regret, chances known", *mean_se((reward.max(2) - oracle).sum(1)), note="irreducible"),
    ]
    for score in scores:
        method = score.method
        (pseudo, realised) = score.regrets
        rows.append(Row(f"pseudo-regret, {method.label}", *mean_se(pseudo), None, None, method.note))
        rows.append(Row(f"realised regret, {method.label}", *mean_se(realised), method.published))
    if size == "full":
        best = min(scores, key=lambda score: (score.costs[score.index], score.method.label))
        label = f"pseudo-regret, best in tuning ({best.method.label})"
        rows.insert(0, Row(label, *mean_se(best.regrets[0]), None, None, "target: at most 1350"))
    return tuple(rows)
