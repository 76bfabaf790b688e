"""The table, the series and the arrays of a BONE experiment."""

from __future__ import annotations

import functools

import jax
import numpy as np

from credo_papers.bone.bone_figure import draw
from credo_papers.bone.bone_plan import Method, Plan
from credo_papers.bone.bone_tuning import TuningResult, measures, tune_and_score
from credo_papers.bone.bone_world import Streams, make_streams
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.plain_data import Arrays, Json
from credo_papers.engine.portions import Progress
from credo_papers.engine.purposes import SCORED, TUNING
from credo_papers.engine.quantities import Row, mean_se

__all__ = ["run_plan"]


def run_plan(plan: Plan, size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Tune and score every method of a plan, and put the numbers into a table.

    Arguments:
        plan: the plan of the experiment.
        size, seed, progress, cells: as for every experiment.
    """
    entries = tune_and_score(plan, size, seed, progress, Cells() if cells is None else cells)
    tuning_count, scored_count = plan.seeds[size]
    streams = make_streams(plan.draw, seed, SCORED, scored_count)
    rows = _best(plan, entries, streams)
    if plan.binary and np.all(np.isfinite(streams.truth)):
        ceiling = np.mean((streams.truth > 0.5) == (streams.y > 0.5), axis=1)
        rows.append(Row("accuracy, truth known", *mean_se(ceiling)))
    series: Arrays = {"t": np.arange(streams.y.shape[1])}
    arrays: Arrays = {"change": streams.change}
    for one in entries:
        label = one.method.label
        result = one.result(plan.main)
        for name in one.choice:
            values = measures(plan, one.result(name), streams)[name]
            published, note = (one.published, one.method.note) if name == plan.main else (None, "")
            rows.append(Row(f"{name}, {label}", *mean_se(values), published, None, note))
            arrays[f"{name} {label}"] = values
        if not plan.binary:
            rows.append(Row(f"median RMSE, {label}", float(np.median(arrays[f"RMSE {label}"]))))
        if "alarm" in result:
            rows += _alarms(label, result["alarm"], streams.change, plan.within)
        if "lengths" in result:
            arrays[f"lengths {label}"] = result["lengths"][:4]
        steps = _each_step(plan, result, streams)
        series[label] = steps.mean(axis=0)
        if plan.binary:
            arrays[f"hits {label}"] = steps.astype(bool)
    settings = _settings(plan, entries)
    seeds = {
        "scored": f"numpy.random.default_rng([{seed}, {SCORED}, i]), i = 0..{scored_count - 1}",
        "tuning": f"numpy.random.default_rng([{seed}, {TUNING}, i]), i = 0..{tuning_count - 1}; not scored",
    }
    figure = functools.partial(plan.figure or draw, plan, series, arrays)
    return Outcome(tuple(rows), settings, seeds, series, arrays, figure)


def _settings(plan: Plan, entries: list[TuningResult]) -> dict[str, Json]:
    tuning: dict[str, Json] = {
        one.method.label: [
            {**values, **cost} for values, cost in zip(one.method.grid, one.costs, strict=False)
        ]
        for one in entries
    }
    return {
        **plan.world,
        "methods": {one.method.label: one.program for one in entries},
        "chosen": {
            one.method.label: {name: dict(one.values(name)) for name in one.choice} for one in entries
        },
        "tuning": tuning,
        "criteria": plan.criteria,
        "left_out": [peer.label for peer in plan.peers if not any(one.method is peer for one in entries)],
        "dtype": "float32",
    }


def _best(plan: Plan, entries: list[TuningResult], streams: Streams) -> list[Row]:
    """The adaptive method that did best on the tuning streams, as it did on the scored ones."""
    rows = []
    candidates = [one for one in entries if isinstance(one.method, Method) and one.method.adaptive]
    for name, by in plan.criteria.items():
        least = [min(cost[by] for cost in one.costs) for one in candidates]
        best = candidates[int(np.argmin(least))]
        values = measures(plan, best.result(name), streams)[name]
        rows.append(Row(f"{name}, best in tuning ({best.method.label})", *mean_se(values), note=plan.target))
    return rows


def _each_step(plan: Plan, result: Arrays, streams: Streams) -> np.ndarray:
    """A hit (0 or 1), or the absolute error to the true mean, for each stream and step."""
    streams = jax.tree.map(lambda leaf: leaf[: len(result["mean"])], streams)
    hits: np.ndarray = ((result["mean"] > 0.5) == (streams.y > 0.5)).astype(np.float64)
    gaps: np.ndarray = np.abs(result["mean"].astype(np.float64) - streams.truth)
    if plan.binary:
        return hits
    return gaps


def _alarms(label: str, alarm: np.ndarray, change: np.ndarray, within: int) -> list[Row]:
    """The numbers of changes reported within some steps, and of reports with no change before them."""
    if not change.any():
        return []
    hits = 0
    false_alarms = 0
    for reports, changes in zip(alarm.astype(bool), change.astype(bool), strict=True):
        at = np.flatnonzero(reports)
        when = np.flatnonzero(changes)
        hits += sum(bool(np.any((at >= one) & (at <= one + within))) for one in when)
        false_alarms += sum(not np.any((when <= one) & (when >= one - within)) for one in at)
    return [
        Row(f"changes reported within {within} steps, {label}", hits / change.sum()),
        Row(f"false alarms a stream, {label}", false_alarms / len(change)),
    ]
