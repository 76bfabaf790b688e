"""Inverse dynamics of a robot arm, with 21 inputs and a network of 881 weights, in one pass over 2,000 rows.

Where the SARCOS measurements are in the data folder (`sarcos/sarcos_inv.mat`, first torque), they are used;
otherwise a simulated arm of the same shape, which the table names. The noise variance is 0.1 Var(y), as
published. At a few times 1,000 test rows are scored by the plug-in forecast. Learning rate and prior variance
are chosen for each learner on other data orders, other initial weights and other rows. Source: Jones, Chang &
Murphy 2024 (BONG, arXiv 2405.19681).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from credo_papers.bong.bong_sarcos_figure import draw
from credo_papers.bong.bong_sarcos_learner import SarcosProgram, build
from credo_papers.bong.bong_sarcos_plan import (
    CHECKS,
    LEARNERS,
    NOISE_SHARE,
    PLANS,
    RANK,
    SAMPLED_VARS,
    SAMPLES,
    VARS,
    VERSION,
    Entry,
)
from credo_papers.bong.bong_sarcos_world import Orders, SplitRows, make_orders, split_rows
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.plain_data import Json
from credo_papers.engine.portions import Progress, portion
from credo_papers.engine.quantities import Row, mean_se
from credo_papers.engine.sweep import Setting, sweep

__all__ = ["run"]


@dataclass(frozen=True)
class _Score:
    """A learner on the scored orders: its settings, its NLPD (orders, times), and refused updates."""

    rate: float
    var: float
    nlpd: np.ndarray
    refused: float


@dataclass(frozen=True)
class _Trial:
    """The data on which every learner is tuned and scored."""

    data: SplitRows
    tuning: Orders
    scoring: Orders
    times: list[int]
    context: Mapping[str, Json]
    cells: Cells

    def score(self, name: str, progress: Progress) -> _Score:
        """Tune a learner on some orders, and score it on others."""
        entry = LEARNERS[name]
        data = self.data
        program: SarcosProgram = {
            "rule": entry.rule,
            "curvature": entry.curvature,
            "iterations": entry.iterations,
            "times": self.times,
        }
        pairs = list(itertools.product(entry.rates, SAMPLED_VARS if entry.curvature == "mc-ef" else VARS))
        settings = [Setting(f"{name} {r:g} {v:g}", program, {"rate": r, "var": v}) for r, v in pairs]
        trials = sweep(
            "bong-sarcos",
            settings,
            build,
            self.tuning,
            data.held_out(data.check),
            context={**self.context, "part": "tuning"},
            cells=self.cells,
            progress=portion(progress, 0.0, 0.7, "tuning "),
        )
        losses = np.array([trials[setting.name]["nlpd"][:, -1].mean() for setting in settings])
        best = int(np.argmin(np.where(np.isfinite(losses), losses, np.inf)))
        result = sweep(
            "bong-sarcos",
            [settings[best]],
            build,
            self.scoring,
            data.held_out(data.test),
            context={**self.context, "part": "scored"},
            cells=self.cells,
            progress=portion(progress, 0.7, 1.0),
        )[settings[best].name]
        nlpd = np.asarray(result["nlpd"], np.float64) + np.log(data.unit)  # in the target's own unit
        return _Score(*pairs[best], nlpd, float(1 - result["ok"].mean()))


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Run the learners: all six on 2,000 rows and 10 orders, or two of them on 200 rows and 3 orders."""
    plan = PLANS[size]
    times = [t for t in CHECKS if t <= plan.length]
    data = split_rows(seed)
    tuning = make_orders(seed, 1000, plan.tuning_orders, data.train, plan.length)
    scoring = make_orders(seed, 0, plan.orders, data.train, plan.length)
    context: dict[str, Json] = {
        "seed": seed,
        "length": plan.length,
        "source": data.source,
        "version": VERSION,
    }
    cells = Cells() if cells is None else cells
    trial = _Trial(data, tuning, scoring, times, context, cells)
    names = list(plan.learners)

    def judge(k: int) -> _Score:
        return trial.score(names[k], portion(progress, k / len(names), (k + 1) / len(names), f"{names[k]}: "))

    scores = dict(zip(names, cells.each(judge, range(len(names))), strict=True))
    series = {"t": np.array([0, *times])}
    for name, score in scores.items():
        series[name] = score.nlpd.mean(axis=0)
        series[f"{name} se"] = score.nlpd.std(axis=0, ddof=1) / plan.orders**0.5
    settings = {
        **context,
        "model": "MLP 21-20-20-1, gelu",
        "rank": RANK,
        "samples": SAMPLES,
        "noise variance": f"{NOISE_SHARE} Var(y)",
        "chosen on other orders, initial weights and rows": {
            name: {
                "learning rate": score.rate if LEARNERS[name].rule != "bong" else None,
                "prior variance": score.var,
            }
            for name, score in scores.items()
        },
    }
    seeds = {"scored orders": [0, plan.orders], "tuning orders": [1000, 1000 + plan.tuning_orders]}
    comparable = size == "full" and data.source.startswith("SARCOS")
    rows = tuple(_row(name, LEARNERS[name], score, comparable) for name, score in scores.items())
    return Outcome(rows, settings, seeds, series, {}, functools.partial(draw, series, names, data.source))


def _row(name: str, entry: Entry, score: _Score, comparable: bool) -> Row:
    note = f"prior variance {score.var:g}" + ("" if entry.rule == "bong" else f", rate {score.rate:g}")
    if score.refused:
        note += f"; {score.refused:.1%} of updates rejected"
    published = entry.published if comparable else f"{entry.published:g} (SARCOS, T = 2,000)"
    return Row(f"plug-in NLPD, {name}", *mean_se(score.nlpd[:, -1]), published, None, note)
