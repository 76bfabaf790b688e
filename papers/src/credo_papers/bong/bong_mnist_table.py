"""The table of `bong-mnist`: errors, calibration, log losses and times beside the published numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from credo.metrics import ece
from credo_papers.bong.bong_grid import GridCell
from credo_papers.bong.bong_mnist_plan import Plan
from credo_papers.bong.bong_mnist_published import PUBLISHED_ECE, PUBLISHED_ERROR, PUBLISHED_SECONDS
from credo_papers.engine.plain_data import Arrays, Values
from credo_papers.engine.quantities import Row

__all__ = ["PRIMARY", "Scores", "make_arrays", "make_series", "make_table", "numbers"]

PRIMARY = "linearized"
"""The forecast of the table."""

Scores: TypeAlias = dict[str, dict[str, Arrays]]
"""Scores (streams, marks) by cell, forecast and metric; see `numbers`."""


def numbers(results: Mapping[str, np.ndarray], method: str) -> Arrays:
    """Return the error, NLPD, ECE and Brier score of a forecast, each (streams, marks).

    A stream with forecasts that are not finite has an infinite NLPD.

    Arguments:
        results: the results of the sweep.
        method: the method of the forecast.
    """
    log_prob, confidence, correct = (
        np.asarray(results[f"{method} {name}"]) for name in ("log_prob", "confidence", "correct")
    )
    with np.errstate(invalid="ignore"):
        nlpd = -log_prob.mean(axis=-1, dtype=np.float64)
        eces = [
            [ece(np.nan_to_num(c), k) for c, k in zip(cs, ks, strict=True)]
            for cs, ks in zip(confidence, correct, strict=True)
        ]
    return {
        "error": 1.0 - correct.mean(axis=-1, dtype=np.float64),
        "nlpd": np.where(np.isfinite(nlpd), nlpd, np.inf),
        "ece": np.array(eces),
        "brier": np.asarray(results[f"{method} brier"], np.float64),
    }


def _mean(values: np.ndarray) -> tuple[float, float | None]:
    """The mean over streams, and its standard error if there are several."""
    if len(values) == 1:
        return float(values[0]), None
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def make_table(
    plan: Plan, scores: Scores, choices: Mapping[str, Values], seconds: Mapping[str, float]
) -> tuple[Row, ...]:
    """Return the rows of the table.

    Arguments:
        plan: what was run.
        scores: see `Scores`.
        choices: the settings of every cell.
        seconds: what 2,000 steps of every cell take, if it was measured.
    """
    rows = []
    for cell in plan.cells:
        rows += _rows(plan, cell, scores[cell.name], choices[cell.name])
        if cell.name in seconds:
            note = "compilation included, extrapolated from 20 steps; published: on a GPU"
            published = PUBLISHED_SECONDS.get(cell.name)
            label = f"seconds for 2,000 steps, {cell.name}"
            rows.append(Row(label, seconds[cell.name], None, published, note=note))
    return (*rows, *_differences(plan, scores))


def _rows(plan: Plan, cell: GridCell, scores: Mapping[str, Arrays], values: Values) -> list[Row]:
    """The rows of a cell."""
    name = cell.name
    marks = plan.marks_of(cell)
    primary = scores[PRIMARY]
    last = marks[-1]
    note = _note(plan, cell, values)
    rows = []
    errors = PUBLISHED_ERROR.get(name, {})
    eces = PUBLISHED_ECE.get(name, {})
    for mark in sorted({*(m for m in errors if m in marks), last}):
        mean = _mean(primary["error"][:, marks.index(mark)])
        rows.append(Row(f"error at {mark}, {name}", *mean, errors.get(mark), None, note))
    for mark in sorted({*(m for m in eces if m in marks), last}):
        mean = _mean(primary["ece"][:, marks.index(mark)])
        origin = "published: median" if eces.get(mark) else ""
        rows.append(Row(f"ECE at {mark}, {name}", *mean, eces.get(mark), None, origin))
    for method, each in scores.items():
        others = f"error {each['error'][:, -1].mean():.3f}, ECE {each['ece'][:, -1].mean():.3f}"
        loss = _mean(each["nlpd"][:, -1])
        rows.append(Row(f"NLPD in nats at {last}, {name}, {method}", *loss, None, None, others))
    return rows


def _differences(plan: Plan, scores: Scores) -> list[Row]:
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


def _note(plan: Plan, cell: GridCell, values: Values) -> str:
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


def make_series(plan: Plan, scores: Scores) -> Arrays:
    """Return means and standard errors over streams at every mark; cells that saw fewer digits are left out.

    Arguments:
        plan: what was run.
        scores: see `Scores`.
    """
    series: Arrays = {"t": np.array(plan.marks)}
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


def make_arrays(
    plan: Plan, scores: Scores, results: Mapping[str, Arrays], seconds: Mapping[str, float]
) -> Arrays:
    """Return everything behind the figure.

    Arguments:
        plan: what was run.
        scores: see `Scores`.
        results: the results of the sweep, by cell.
        seconds: what 2,000 steps of every cell take, if it was measured.
    """
    arrays: Arrays = {}
    for cell in plan.cells:
        name = cell.name
        arrays[f"{name} marks"] = np.array(plan.marks_of(cell))
        if name in seconds:
            arrays[f"{name} seconds"] = np.array(seconds[name])
        arrays[f"{name} taken in"] = results[name]["ok"]
        for method, each in scores[name].items():
            for metric, values in each.items():
                arrays[f"{name} {method} {metric}"] = values
            for what in ("confidence", "correct"):
                arrays[f"{name} {method} {what}"] = np.asarray(results[name][f"{method} {what}"])[:, -1]
    return arrays
