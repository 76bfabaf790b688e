"""Distances of the cells of the grid from the exact posterior, shared by `bong-linreg` and `bong-logreg`.

There are D = 10 weights, and one row at a time. The divergence KL(q_t || p_t) from the Gaussian q_t of a cell
to the exact posterior p_t is measured at a few times t. For linear regression it has a closed form. For
logistic regression it is exact up to the evidence of p_t (see `exact_posteriors`). Source: Jones, Chang &
Murphy 2024 (BONG, arXiv 2405.19681), the linear and logistic regression experiments.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

import jax
import numpy as np

from credo_papers.bong.bong_exact_figure import draw
from credo_papers.bong.bong_exact_learner import ExactProgram, build
from credo_papers.bong.bong_exact_plan import (
    ITERATIONS,
    PLANS,
    RANK,
    RATES,
    SAMPLES,
    TIMES,
    VERSION,
    Cell,
)
from credo_papers.bong.bong_exact_world import NOISE_VAR, D, Streams, Task, make_streams
from credo_papers.bong.exact_posteriors import (
    gaussian_divergence,
    logistic_divergence,
    logistic_evidence,
)
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.plain_data import Arrays, Json
from credo_papers.engine.portions import Progress, portion
from credo_papers.engine.quantities import Row, mean_se
from credo_papers.engine.sweep import Setting, sweep

__all__ = ["Judge", "run_task"]


@dataclass(frozen=True)
class Judge:
    """Streams, and the evidence of their exact posteriors, by which beliefs are judged.

    Attributes:
        task: "linreg" or "logreg".
        streams: several streams.
        times: when beliefs are judged.
        evidence: log Z of every stream and time (streams, times); zeros for linear regression.
        error: the largest standard error of `evidence`.
    """

    task: Task
    streams: Streams
    times: list[int]
    evidence: np.ndarray
    error: float

    @classmethod
    def of(cls, task: Task, streams: Streams, times: list[int]) -> Judge:
        """Return the judge of some streams, which finds the evidences first."""
        shape = (len(streams["x"]), len(times))
        if task == "linreg":
            return cls(task, streams, times, np.zeros(shape), 0.0)
        pairs = itertools.product(range(shape[0]), times)
        numbers = [logistic_evidence(streams["x"][n, :t], streams["y"][n, :t], seed=n) for n, t in pairs]
        evidence = np.array([value for value, _ in numbers]).reshape(shape)
        return cls(task, streams, times, evidence, max(error for _, error in numbers))

    def divergences(self, beliefs: Arrays) -> np.ndarray:
        """Return KL(q_t || p_t) in nats (streams, times).

        Arguments:
            beliefs: `mean` (streams, times, D) and `cov` (streams, times, D, D).
        """
        table = np.zeros(self.evidence.shape)
        for n, k in np.ndindex(*self.evidence.shape):
            x = self.streams["x"][n, : self.times[k]]
            y = self.streams["y"][n, : self.times[k]]
            mean = beliefs["mean"][n, k]
            cov = beliefs["cov"][n, k]
            if self.task == "linreg":
                prec = np.eye(D) + x.T @ x / NOISE_VAR
                table[n, k] = gaussian_divergence(mean, cov, np.linalg.solve(prec, x.T @ y / NOISE_VAR), prec)
            else:
                table[n, k] = logistic_divergence(mean, cov, x, y, float(self.evidence[n, k]))
        return table


@dataclass(frozen=True)
class _Score:
    """A cell on the scored streams: its learning rate, its divergences, and the share of refused updates."""

    rate: float
    divergence: np.ndarray
    refused: float


def run_task(task: Task, size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Run the grid on a task.

    Arguments:
        task: "linreg" or "logreg".
        size: "full" is all 48 cells, 500 rows and 10 streams; "quick" is 5 cells, 100 rows and 3 streams.
        seed: the seed of the streams; those for tuning are others.
        progress, cells: as for every experiment.
    """
    plan = PLANS[size]
    times = [t for t in TIMES if t <= plan.length]
    streams = make_streams(task, seed, plan.streams, 0, plan.length)
    others = make_streams(task, seed, plan.tuning_streams, 1000, plan.length)
    context: dict[str, Json] = {"task": task, "seed": seed, "length": plan.length, "version": VERSION}
    cells = Cells() if cells is None else cells
    with jax.enable_x64(True):
        judge = Judge.of(task, streams, times)
        tuning_judge = Judge.of(task, others, times)

        def judge_cell(k: int) -> _Score:
            name = _name(plan.cells[k])
            part = portion(progress, k / len(plan.cells), (k + 1) / len(plan.cells), f"{name}: ")
            return _score(plan.cells[k], judge, tuning_judge, context, cells, part)

        found = cells.each(judge_cell, range(len(plan.cells)))
    scores = {_name(cell): one for cell, one in zip(plan.cells, found, strict=True)}
    series = {"t": np.array(times)}
    for name, score in scores.items():
        series[name] = score.divergence.mean(axis=0)
        series[f"{name} se"] = score.divergence.std(axis=0, ddof=1) / plan.streams**0.5
    settings = {
        **context,
        "D": D,
        "rank": RANK,
        "samples": SAMPLES,
        "iterations": ITERATIONS,
        "noise variance": NOISE_VAR if task == "linreg" else None,
        "learning rates, tuned on other streams": {name: score.rate for name, score in scores.items()},
        "rejected updates": {name: score.refused for name, score in scores.items()},
        "largest standard error of log Z": judge.error,
    }
    seeds = {"scored streams": [0, plan.streams], "tuning streams": [1000, 1000 + plan.tuning_streams]}
    rows = tuple(_row(cell, scores[_name(cell)], times[-1]) for cell in plan.cells)
    figure = functools.partial(draw, task, series)
    return Outcome(rows, settings, seeds, series, {"evidence": judge.evidence}, figure)


def _name(cell: Cell) -> str:
    return f"{cell[2]} {cell[1]} {cell[0]}"


def _score(
    cell: Cell, judge: Judge, tuning: Judge, context: dict[str, Json], cells: Cells, progress: Progress
) -> _Score:
    """Tune the learning rate of a cell on some streams, and score the cell on others."""
    program: ExactProgram = {"cell": cell, "task": judge.task, "times": judge.times}
    rates = RATES[cell[2]]
    name = f"bong-{judge.task}"
    settings = [Setting(f"{_name(cell)} {rate:g}", program, {"rate": rate}) for rate in rates]
    best = 0
    if len(settings) > 1:
        part = portion(progress, 0.0, 0.7, "tuning ")
        options = {**context, "part": "tuning"}
        trials = sweep(
            name, settings, build, tuning.streams, None, context=options, cells=cells, progress=part
        )
        losses = [float(np.mean(tuning.divergences(trials[s.name])[:, -1])) for s in settings]
        best = int(np.nanargmin(np.where(np.isfinite(losses), losses, np.inf)))
    part = portion(progress, 0.7, 1.0)
    options = {**context, "part": "scored"}
    choice = [settings[best]]
    beliefs = sweep(name, choice, build, judge.streams, None, context=options, cells=cells, progress=part)
    result = beliefs[settings[best].name]
    return _Score(rates[best], judge.divergences(result), float(1 - result["ok"].mean()))


def _row(cell: Cell, score: _Score, last: int) -> Row:
    note = f"at t = {last}" if cell[2] == "bong" else f"at t = {last}, rate {score.rate:g}"
    if score.refused:
        note += f"; {score.refused:.1%} of updates rejected"
    return Row(f"KL, {_name(cell)}", *mean_se(score.divergence[:, -1]), None, None, note)
