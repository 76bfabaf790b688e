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
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import jax
import numpy as np

import credo
from credo.experiments.bong_grid import GridCell
from credo.experiments.bong_mnist_figure import draw
from credo.experiments.bong_mnist_plan import (
    PLANS,
    PUBLISHED_ECE,
    PUBLISHED_ERROR,
    PUBLISHED_SECONDS,
    Plan,
)
from credo.experiments.bong_mnist_stream import FORECASTS, build, numbers, timed
from credo.experiments.cells import Arrays, Cells
from credo.experiments.records import Outcome, Progress, Row, Size
from credo.experiments.sweep import Setting, portion, sweep

__all__ = ["Digits", "load_digits", "make_streams", "run", "run_plan", "tune"]

NAME, VERSION, PRIMARY = "bong-mnist", 1, "linearized"
SCORED, TUNING = range(2)  # what a stream is for
FIRST_WEIGHT, SCALE, TIMED_STEPS = 30.0, 2.0, 20
Digits = dict[str, tuple[np.ndarray, np.ndarray]]
"""Images and labels by their use: "stream", "validation", "test"."""


def load_digits(plan: Plan) -> tuple[Digits, str]:
    """The images, with values from 0 to 2, and a note on where they come from.

    The last sixth of the training digits is for validation, the others for streams.
    """
    train, test = (credo.datasets.load("mnist", split=split) for split in ("train", "test"))
    cut = len(train.y) - len(train.y) // 6
    parts = {
        "stream": (train.x[:cut], train.y[:cut]),
        "validation": (train.x[cut:][: plan.validation_rows], train.y[cut:][: plan.validation_rows]),
        "test": (test.x[: plan.test_rows], test.y[: plan.test_rows]),
    }
    return {name: (_pooled(x, plan.pool), y) for name, (x, y) in parts.items()}, train.note


def _pooled(x: np.ndarray, pool: int) -> np.ndarray:
    rows, height, width = x.shape
    squares = x.reshape(rows, height // pool, pool, width // pool, pool)
    return SCALE * squares.mean(axis=(2, 4), dtype=np.float32)


def make_streams(digits: Digits, seed: int, purpose: int, count: int, steps: int) -> dict[str, Any]:
    """Streams for a purpose, `SCORED` or `TUNING`: each draws its digits anew, without repeats."""
    x, y = digits["stream"]
    rows = np.stack(
        [np.random.default_rng([seed, purpose, index]).permutation(len(y))[:steps] for index in range(count)]
    )
    key = jax.random.fold_in(jax.random.key(seed), purpose)
    return {"x": x[rows], "y": y[rows], "key": jax.random.split(key, count)}


def program(plan: Plan, cell: GridCell, marks: tuple[int, ...], draws: int) -> dict[str, Any]:
    """What the compiled program of a cell depends on."""
    return {
        "rule": cell.rule,
        "curvature": cell.curvature,
        "iterations": plan.of(cell, "iterations") if cell.iterated else 1,
        "samples": plan.of(cell, "samples") if cell.sampled else 1,
        "rank": plan.rank,
        "start": cell.start,
        "network": dict(plan.network),
        "every": plan.every,
        "marks": list(marks),
        "draws": draws,
    }


def tune(
    plan: Plan, cell: GridCell, digits: Digits, given: Mapping[str, Any], progress: Progress, cells: Cells
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """The settings of a cell with the least validation NLPD, and all that were tried.

    First the reach and the learning rate, by the plug-in forecast at weight 30; then the weight, by the
    linearised forecast.
    """
    steps = plan.of(cell, "tuning_steps")
    # Where scored streams have the same shapes, both use one compiled program.
    same = (steps, plan.tuning_seeds, plan.validation_rows)
    same_program = same == (plan.of(cell, "steps"), plan.of(cell, "seeds"), plan.test_rows)
    marks, draws = (_marks(plan, cell), plan.draws) if same_program else ((steps,), 0)
    streams = make_streams(digits, given["seed"], TUNING, plan.tuning_seeds, steps)
    tried: list[dict[str, Any]] = []

    def best(stage: str, method: str, candidates: list[dict[str, float]], told: Progress) -> dict[str, float]:
        settings = [
            Setting(_spelled(cell, values), program(plan, cell, marks, draws), values)
            for values in candidates
        ]
        made = sweep(
            f"{NAME}-tuning",
            settings,
            build,
            streams,
            digits["validation"],
            given={**given, "purpose": "tuning"},
            chunk=plan.chunk,
            cells=cells,
            progress=told,
        )
        losses = []
        for setting, values in zip(settings, candidates, strict=True):
            scores = {name: numbers(made[setting.name], name) for name in FORECASTS[:2]}
            losses.append(float(scores[method]["nlpd"][:, -1].mean()))
            ends = {f"nlpd_{name}": float(each["nlpd"][:, -1].mean()) for name, each in scores.items()}
            error = float(scores["plugin"]["error"][:, -1].mean())
            tried.append({"cell": cell.name, "stage": stage, **values, **ends, "error_plugin": error})
        return candidates[int(np.argmin(losses))]

    first = [
        {"reach": reach, "weight": FIRST_WEIGHT, "learning_rate": rate}
        for reach in plan.reaches[cell.rule]
        for rate in plan.rates[cell.rule]
    ]
    chosen = best("path", "plugin", first, portion(progress, 0.0, 0.6, f"tuning {cell.name}: "))
    second = [{**chosen, "weight": weight} for weight in plan.weights]
    return best("width", PRIMARY, second, portion(progress, 0.6, 1.0, f"tuning {cell.name}: ")), tried


def _marks(plan: Plan, cell: GridCell) -> tuple[int, ...]:
    return tuple(mark for mark in plan.marks if mark <= plan.of(cell, "steps"))


def _spelled(cell: GridCell, values: Mapping[str, float]) -> str:
    return f"{cell.name} " + " ".join(f"{key} {value:g}" for key, value in values.items())


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Tune and score the grid at a size."""
    return run_plan(PLANS[size], seed, progress, cells)


def run_plan(plan: Plan, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Tune every cell, score it on other streams, and time it."""
    cells = Cells() if cells is None else cells
    digits, note = load_digits(plan)
    given: dict[str, Any] = {
        "version": VERSION,
        "seed": seed,
        "data": note,
        "scale": SCALE,
        "pool": plan.pool,
    }
    given |= {"test_rows": plan.test_rows, "validation_rows": plan.validation_rows}
    made: dict[str, Arrays] = {}
    chosen: dict[str, dict[str, float]] = {}
    seconds: dict[str, float] = {}
    tried: list[dict[str, Any]] = []
    for i, cell in enumerate(plan.cells):
        told = portion(progress, i / len(plan.cells), (i + 1) / len(plan.cells))
        chosen[cell.name], trials = tune(plan, cell, digits, given, portion(told, 0.0, 0.5), cells)
        tried += trials
        steps = plan.of(cell, "steps")
        streams = make_streams(digits, seed, SCORED, plan.of(cell, "seeds"), steps)
        setting = Setting(cell.name, program(plan, cell, _marks(plan, cell), plan.draws), chosen[cell.name])
        made |= sweep(
            NAME,
            [setting],
            build,
            streams,
            digits["test"],
            given={**given, "purpose": "scored"},
            chunk=plan.chunk,
            cells=cells,
            progress=portion(told, 0.5, 0.95, "scoring "),
        )
        if plan.timed:
            told(0.95, f"timing {cell.name}")
            seconds[cell.name] = _seconds(cell, setting, streams, given, cells)
    methods = FORECASTS if plan.draws else FORECASTS[:2]
    scores = {name: {method: numbers(each, method) for method in methods} for name, each in made.items()}
    arrays = _arrays(plan, scores, made, seconds)
    return Outcome(
        _table(plan, scores, chosen, seconds),
        _settings(plan, chosen, tried, note),
        _seeds(plan, seed),
        _series(plan, scores),
        arrays,
        lambda: draw(arrays, [cell.name for cell in plan.cells]),
    )


def _seconds(cell: GridCell, setting: Setting, streams: Any, given: Mapping[str, Any], cells: Cells) -> float:
    """Seconds for 2,000 steps of one stream, compilation included, from twenty steps."""

    def compute() -> Arrays:
        run_steps = timed(setting.program, TIMED_STEPS)
        stream = jax.tree.map(lambda leaf: leaf[0], streams)
        times = []
        for _ in range(3):
            start = time.perf_counter()
            jax.block_until_ready(run_steps(dict(setting.values), stream))
            times.append(time.perf_counter() - start)
        again = min(times[1:])
        return {"seconds": np.array(times[0] - again + again / TIMED_STEPS * 2000)}

    described = {"given": dict(given), "program": dict(setting.program), "values": dict(setting.values)}
    return float(cells.get(f"{NAME}-seconds-{cell.name}", described, compute)["seconds"])


def _mean(values: np.ndarray) -> tuple[float, float | None]:
    """The mean over seeds, and its standard error where there are several."""
    if len(values) == 1:
        return float(values[0]), None
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def _table(
    plan: Plan, scores: dict[str, Any], chosen: dict[str, dict[str, float]], seconds: dict[str, float]
) -> tuple[Row, ...]:
    rows = []
    for cell in plan.cells:
        name, marks = cell.name, _marks(plan, cell)
        last = marks[-1]
        primary = scores[name][PRIMARY]
        published = PUBLISHED_ERROR.get(name, {})
        for mark in sorted({*(m for m in published if m in marks), last}):
            ours = _mean(primary["error"][:, marks.index(mark)])
            rows.append(
                Row(
                    f"error at {mark}, {name}",
                    *ours,
                    published.get(mark),
                    note=_note(plan, cell, chosen[name]),
                )
            )
        for mark in sorted({*(m for m in PUBLISHED_ECE.get(name, {}) if m in marks), last}):
            ours = _mean(primary["ece"][:, marks.index(mark)])
            known = PUBLISHED_ECE.get(name, {}).get(mark)
            rows.append(
                Row(f"ECE at {mark}, {name}", *ours, known, note="published: median" if known else "")
            )
        for method, each in scores[name].items():
            error, error_of_calibration = each["error"][:, -1].mean(), each["ece"][:, -1].mean()
            rows.append(
                Row(
                    f"NLPD in nats at {last}, {name}, {method}",
                    *_mean(each["nlpd"][:, -1]),
                    note=f"error {error:.3f}, ECE {error_of_calibration:.3f}",
                )
            )
        if name in seconds:
            note = "compilation included, extrapolated from 20 steps; published: on a GPU"
            known = PUBLISHED_SECONDS.get(name)
            rows.append(Row(f"seconds for 2,000 steps, {name}", seconds[name], None, known, note=note))
    return (*rows, *_differences(plan, scores))


def _differences(plan: Plan, scores: dict[str, Any]) -> list[Row]:
    """NLPD at the end against BONG LIN-HESS on the same streams, for the cells that saw as many digits."""
    base = GridCell("bong", "lin-hess")
    if base not in plan.cells:
        return []
    rows = []
    for cell in plan.cells:
        if cell == base or plan.of(cell, "steps") != plan.of(base, "steps"):
            continue
        pair = [scores[name][PRIMARY]["nlpd"][:, -1] for name in (cell.name, base.name)]
        count = min(map(len, pair))
        rows.append(
            Row(
                f"NLPD more than {base.name}, {cell.name}",
                *_mean(pair[0][:count] - pair[1][:count]),
                note=f"at {plan.of(cell, 'steps')}, the same {count} streams",
            )
        )
    return rows


def _note(plan: Plan, cell: GridCell, values: Mapping[str, float]) -> str:
    parts = [f"{plan.of(cell, 'seeds')} seeds", f"prior variance {values['reach'] / values['weight']:.2g}"]
    if values["weight"] != 1:
        parts.append(f"weight {values['weight']:g}")
    if cell.tuned_rate:
        parts.append(f"rate {values['learning_rate']:g}")
    if cell.iterated:
        parts.append(f"I = {plan.of(cell, 'iterations')}")
    if cell.sampled:
        parts.append(f"M = {plan.of(cell, 'samples')}")
    return ", ".join(parts)


def _series(plan: Plan, scores: dict[str, Any]) -> dict[str, np.ndarray]:
    """Means and standard errors over seeds at every mark; cells that saw fewer digits are left out."""
    series: dict[str, np.ndarray] = {"t": np.array(plan.marks)}
    for cell in plan.cells:
        if plan.of(cell, "steps") != plan.steps:
            continue
        for metric in ("error", "nlpd", "ece"):
            values = scores[cell.name][PRIMARY][metric]
            label = f"{metric} {cell.name}"
            series[label] = values.mean(axis=0)
            series[f"{label} se"] = (
                values.std(axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0 * values[0]
            )
    return series


def _arrays(
    plan: Plan, scores: dict[str, Any], made: dict[str, Arrays], seconds: dict[str, float]
) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    for cell in plan.cells:
        name = cell.name
        arrays[f"{name} marks"] = np.array(_marks(plan, cell))
        if name in seconds:
            arrays[f"{name} seconds"] = np.array(seconds[name])
        arrays[f"{name} taken in"] = made[name]["ok"]
        for method, each in scores[name].items():
            for metric, values in each.items():
                arrays[f"{name} {method} {metric}"] = values
            for what in ("confidence", "correct"):
                arrays[f"{name} {method} {what}"] = np.asarray(made[name][f"{method} {what}"])[:, -1]
    return arrays


def _settings(
    plan: Plan, chosen: dict[str, dict[str, float]], tried: list[dict[str, Any]], note: str
) -> dict[str, Any]:
    described = asdict(plan)
    described["cells"] = [cell.name for cell in plan.cells]
    return {
        **described,
        "data": note,
        "inputs": f"brightness from 0 to {SCALE:g}",
        "forecast of the table": PRIMARY,
        "chosen": chosen,
        "tuning": tried,
        "dtype": "float32",
    }


def _seeds(plan: Plan, seed: int) -> dict[str, str]:
    return {
        "scored": f"digits and order: numpy.random.default_rng([{seed}, {SCORED}, i]), "
        f"i = 0..{plan.seeds - 1}, of the first five sixths of the training digits",
        "tuning": f"numpy.random.default_rng([{seed}, {TUNING}, i]), i = 0..{plan.tuning_seeds - 1}; "
        "never scored on test digits",
        "validation": f"the first {plan.validation_rows} of the last sixth of the training digits",
        "test": f"the first {plan.test_rows} test digits; scored, never tuned on",
        "initial weights, draws": f"jax.random.fold_in(jax.random.key({seed}), purpose), split over streams",
    }
