"""A restless bandit: ten arms whose chances of a reward walk all the time; one is pulled in each step.

Every arm has a learner of its own. All of them predict in every step, since the world does not wait for a
pull; the one that is pulled learns. An arm is chosen by Thompson sampling, from the mean of its belief and
`explore` times the standard deviation. Regret is counted against the chances (the pseudo-regret: the chance
of the best arm less that of the pulled one) and, as published, against the best reward that happened to be
there.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from credo.experiments.bone.bone_bandit_figure import draw
from credo.experiments.bone.bone_bandit_learner import build
from credo.experiments.bone.bone_bandit_plan import METHODS, SIZES
from credo.experiments.bone.bone_bandit_world import ARMS, STEP_VAR, Worlds, make_worlds
from credo.experiments.bone.bone_plan import VERSION, Method
from credo.experiments.engine.cell_folder import Cells
from credo.experiments.engine.experiment import Outcome, Size
from credo.experiments.engine.plain_data import Arrays, Json
from credo.experiments.engine.portions import Progress, portion
from credo.experiments.engine.purposes import SCORED, TUNING
from credo.experiments.engine.quantities import Row, mean_se
from credo.experiments.engine.sweep import Setting, sweep

__all__ = ["run"]


@dataclass(frozen=True)
class _Trial:
    """Runs one point of the grid of a method on the worlds for a purpose."""

    worlds: Mapping[int, Worlds]
    seed: int
    cells: Cells | None

    def __call__(self, method: Method, index: int, purpose: int, progress: Progress) -> Arrays:
        setting = Setting(f"{method.label} {index}", method.program, method.grid[index])
        worlds = self.worlds[purpose]
        context: dict[str, Json] = {
            "seed": self.seed,
            "purpose": purpose,
            "steps": worlds.chance.shape[1],
            "version": VERSION,
        }
        return sweep(
            "bone-bandit",
            [setting],
            build,
            worlds,
            None,
            context=context,
            chunk=len(self.worlds[TUNING].chance),
            cells=self.cells,
            progress=progress,
        )[setting.name]


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
    trial = _Trial(worlds, seed, cells)
    methods = [method for method in METHODS if size == "full" or method.quick]
    scores = []
    for number, method in enumerate(methods):
        part = portion(progress, number / len(methods), (number + 1) / len(methods))
        costs = [
            float(trial(method, index, TUNING, part)["pseudo"].sum(axis=1).mean())
            for index in range(len(method.grid))
        ]
        index = int(np.argmin(costs))
        scores.append(_Score(method, index, costs, trial(method, index, SCORED, part)))
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
    chance, reward = worlds.chance, worlds.reward
    oracle = np.take_along_axis(reward, chance.argmax(axis=2)[..., None], axis=2)[..., 0]
    rows = [
        Row("pseudo-regret, an arm at random", *mean_se((chance.max(2) - chance.mean(2)).sum(1))),
        Row("realised regret, chances known", *mean_se((reward.max(2) - oracle).sum(1)), note="irreducible"),
    ]
    for score in scores:
        method, (pseudo, realised) = score.method, score.regrets
        rows.append(Row(f"pseudo-regret, {method.label}", *mean_se(pseudo), None, None, method.note))
        rows.append(Row(f"realised regret, {method.label}", *mean_se(realised), method.published))
    if size == "full":
        best = min(scores, key=lambda score: (score.costs[score.index], score.method.label))
        label = f"pseudo-regret, best in tuning ({best.method.label})"
        rows.insert(0, Row(label, *mean_se(best.regrets[0]), None, None, "target: 1640"))
    return tuple(rows)
