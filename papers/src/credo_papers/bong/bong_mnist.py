"""MNIST in one pass: four rules times three curvatures, with a belief of a diagonal and ten directions.

Source: Jones, Chang & Murphy 2024 (BONG, arXiv 2405.19681), the experiments on MNIST. A convolutional network
(57,722 parameters at the full size) sees each of 2,000 digits once, one at a time; test digits are scored
along the way.

Settings are tuned, cell by cell, on streams and validation digits of the training set that are not scored;
test digits are never tuned on. Each digit is counted `weight` times, and the prior variance is reach /
weight. With linearised curvatures and natural gradients the means then depend on the reach alone, and a
larger weight only narrows the belief (a "cold posterior"). Plain gradients have the learning rate divided by
the weight.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import jax
import numpy as np

from credo_papers.bong.bong_grid import GridCell
from credo_papers.bong.bong_mnist_figure import draw, draw_calibration
from credo_papers.bong.bong_mnist_learner import AT_END, AT_MARKS, MnistProgram, build, stopwatch
from credo_papers.bong.bong_mnist_plan import PLANS, Plan
from credo_papers.bong.bong_mnist_table import (
    PRIMARY,
    Scores,
    make_arrays,
    make_series,
    make_table,
    numbers,
)
from credo_papers.bong.bong_mnist_world import SCALE, Digits, Streams, load_digits, make_streams
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.plain_data import Arrays, Json, Values
from credo_papers.engine.portions import Progress, portion
from credo_papers.engine.purposes import SCORED, TUNING
from credo_papers.engine.sweep import Setting, sweep

__all__ = ["make_program", "run", "run_plan", "tune"]

NAME = "bong-mnist"
VERSION = 1
FIRST_WEIGHT = 30.0
TIMED_STEPS = 20


def make_program(plan: Plan, cell: GridCell, marks: Sequence[int], draws: int) -> MnistProgram:
    """Return what the compiled program of a cell depends on.

    Arguments:
        plan: what is run.
        cell: the cell of the grid.
        marks: at which to score.
        draws: how many draws a Monte Carlo forecast takes; 0 leaves those out.
    """
    return {
        "rule": cell.rule,
        "curvature": cell.curvature,
        "iterations": plan.of(cell, "iterations") if cell.iterated else 1,
        "samples": plan.of(cell, "samples") if cell.sampled else 1,
        "rank": plan.rank,
        "family": cell.family,
        "start": cell.start,
        "network": plan.network,
        "every": plan.every,
        "marks": list(marks),
        "draws": draws,
    }


@dataclass
class _Trials:
    """The settings of a cell that were tried on tuning streams."""

    plan: Plan
    cell: GridCell
    streams: Streams
    validation: tuple[np.ndarray, np.ndarray]
    program: MnistProgram
    context: Mapping[str, Json]
    cells: Cells
    log: list[dict[str, Json]] = field(default_factory=list)

    def best(self, stage: str, method: str, candidates: list[Values], progress: Progress) -> Values:
        """The candidate with the least NLPD by a forecast method."""
        settings = [Setting(_label(self.cell, values), self.program, values) for values in candidates]
        results = sweep(
            f"{NAME}-tuning",
            settings,
            build,
            self.streams,
            self.validation,
            context={**self.context, "purpose": "tuning"},
            chunk=self.plan.chunk,
            cells=self.cells,
            progress=progress,
        )
        losses = []
        for setting, values in zip(settings, candidates, strict=True):
            scores: dict[str, Arrays] = {name: numbers(results[setting.name], name) for name in AT_MARKS}
            losses.append(float(scores[method]["nlpd"][:, -1].mean()))
            ends = {f"nlpd_{name}": float(each["nlpd"][:, -1].mean()) for name, each in scores.items()}
            error = float(scores["plugin"]["error"][:, -1].mean())
            self.log.append({"cell": self.cell.name, "stage": stage, **values, **ends, "error_plugin": error})
        return candidates[int(np.argmin(losses))]


def tune(
    plan: Plan,
    cell: GridCell,
    digits: Digits,
    seed: int,
    context: Mapping[str, Json],
    cells: Cells,
    progress: Progress,
) -> tuple[Values, list[dict[str, Json]]]:
    """Return the settings of a cell with the least validation NLPD, and all that were tried.

    First the reach and the learning rate are chosen by the plug-in forecast at weight 30; then the weight is
    chosen by the linearised forecast.

    Arguments:
        plan: what is run.
        cell: the cell of the grid.
        digits: as `load_digits` gives them.
        seed: the seed of the experiment.
        context, cells, progress: see `sweep`.
    """
    steps = plan.of(cell, "tuning_steps")
    # Where scored streams have the same shapes, both use one compiled program.
    shapes = (steps, plan.tuning_seeds, plan.validation_rows)
    same_program = shapes == (plan.of(cell, "steps"), plan.of(cell, "seeds"), plan.test_rows)
    marks, draws = (plan.marks_of(cell), plan.draws) if same_program else ((steps,), 0)
    streams = make_streams(digits, seed, TUNING, plan.tuning_seeds, steps)
    program = make_program(plan, cell, marks, draws)
    trials = _Trials(plan, cell, streams, digits["validation"], program, context, cells)
    label = f"tuning {cell.name}: "
    first: list[Values] = [
        {"reach": reach, "weight": FIRST_WEIGHT, "learning_rate": rate}
        for reach in plan.reaches[cell.rule]
        for rate in plan.rates[cell.rule]
    ]
    path = trials.best("path", "plugin", first, portion(progress, 0.0, 0.6, label))
    second: list[Values] = [{**path, "weight": weight} for weight in plan.weights]
    return trials.best("width", PRIMARY, second, portion(progress, 0.6, 1.0, label)), trials.log


def _label(cell: GridCell, values: Values) -> str:
    return f"{cell.name} " + " ".join(f"{key} {value:g}" for key, value in values.items())


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Tune and score the grid at a size."""
    return run_plan(PLANS[size], seed, progress, cells)


def run_plan(plan: Plan, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Tune every cell, score it on other streams, and time it.

    Arguments:
        plan: one of `PLANS`, or another.
        seed, progress, cells: as for every experiment.
    """
    cells = Cells() if cells is None else cells
    digits, note = load_digits(plan.pool, plan.validation_rows, plan.test_rows)
    context: dict[str, Json] = {
        "version": VERSION,
        "seed": seed,
        "data": note,
        "scale": SCALE,
        "pool": plan.pool,
        "test_rows": plan.test_rows,
        "validation_rows": plan.validation_rows,
    }
    results: dict[str, Arrays] = {}
    choices: dict[str, Values] = {}
    seconds: dict[str, float] = {}
    log: list[dict[str, Json]] = []

    def judge(i: int) -> tuple[Values, list[dict[str, Json]], dict[str, Arrays]]:
        cell = plan.cells[i]
        part = portion(progress, i / len(plan.cells), (i + 1) / len(plan.cells))
        choice, trials = tune(plan, cell, digits, seed, context, cells, portion(part, 0.0, 0.5))
        streams = make_streams(digits, seed, SCORED, plan.of(cell, "seeds"), plan.of(cell, "steps"))
        program = make_program(plan, cell, plan.marks_of(cell), plan.draws)
        result = sweep(
            NAME,
            [Setting(cell.name, program, choice)],
            build,
            streams,
            digits["test"],
            context={**context, "purpose": "scored"},
            chunk=plan.chunk,
            cells=cells,
            progress=portion(part, 0.5, 1.0, "scoring "),
        )
        return choice, trials, result

    for cell, (choice, trials, result) in zip(
        plan.cells, cells.each(judge, range(len(plan.cells))), strict=True
    ):
        choices[cell.name] = choice
        log += trials
        results |= result
    for cell in plan.cells if plan.timed else ():
        progress(1.0, f"timing {cell.name}")
        seconds[cell.name] = _seconds(plan, cell, choices[cell.name], digits, seed, context, cells)
    methods = (*AT_MARKS, *AT_END) if plan.draws else AT_MARKS
    scores: Scores = {
        name: {method: numbers(each, method) for method in methods} for name, each in results.items()
    }
    arrays = make_arrays(plan, scores, results, seconds)
    names = [cell.name for cell in plan.cells]
    return Outcome(
        make_table(plan, scores, choices, seconds),
        _settings(plan, choices, log, note),
        _seeds(plan, seed),
        make_series(plan, scores),
        arrays,
        lambda: draw(arrays, names),
        figures={"ece": lambda: draw_calibration(arrays, names)},
    )


def _seconds(
    plan: Plan,
    cell: GridCell,
    values: Values,
    digits: Digits,
    seed: int,
    context: Mapping[str, Json],
    cells: Cells,
) -> float:
    """Seconds for 2,000 steps of one stream, compilation included, extrapolated from twenty steps."""
    setting = Setting(cell.name, make_program(plan, cell, plan.marks_of(cell), plan.draws), values)

    def compute() -> Arrays:
        streams = make_streams(digits, seed, SCORED, plan.of(cell, "seeds"), plan.of(cell, "steps"))
        run_steps = stopwatch(setting.program, TIMED_STEPS)
        stream = jax.tree.map(lambda leaf: leaf[0], streams)
        times = []
        for _ in range(3):
            start = time.perf_counter()
            run_steps(dict(setting.values), stream).mean.block_until_ready()
            times.append(time.perf_counter() - start)
        again = min(times[1:])
        return {"seconds": np.array(times[0] - again + again / TIMED_STEPS * 2000)}

    description = {"given": dict(context), "program": dict(setting.program), "values": dict(values)}
    return float(cells.get(f"{NAME}-seconds-{cell.name}", description, compute, here=True)["seconds"])


def _settings(
    plan: Plan, choices: Mapping[str, Values], log: list[dict[str, Json]], note: str
) -> dict[str, Json]:
    return {
        **asdict(plan),
        "cells": [cell.name for cell in plan.cells],
        "data": note,
        "inputs": f"brightness from 0 to {SCALE:g}",
        "forecast of the table": PRIMARY,
        "chosen": choices,
        "tuning": log,
        "dtype": "float32",
    }


def _seeds(plan: Plan, seed: int) -> dict[str, Json]:
    return {
        "scored": f"digits and order: numpy.random.default_rng([{seed}, {SCORED}, i]), "
        f"i = 0..{plan.seeds - 1}, of the first five sixths of the training digits",
        "tuning": f"numpy.random.default_rng([{seed}, {TUNING}, i]), i = 0..{plan.tuning_seeds - 1}; "
        "never scored on test digits",
        "validation": f"the first {plan.validation_rows} of the last sixth of the training digits",
        "test": f"the first {plan.test_rows} test digits; scored, never tuned on",
        "initial weights, draws": f"jax.random.fold_in(jax.random.key({seed}), purpose), split over streams",
    }
