"""The table, the arrays and the figure of a BONE experiment, from what `bone_common` measured."""

from __future__ import annotations

import functools

import jax
import numpy as np

from credo.experiments.bone_common import Method, Plan, Tuned, measures, tune_and_score
from credo.experiments.bone_figure import draw
from credo.experiments.bone_streams import SCORED, TUNING, Streams, make_streams
from credo.experiments.cells import Arrays, Cells
from credo.experiments.records import Outcome, Progress, Row, Size, mean_se

__all__ = ["run_plan"]


def run_plan(plan: Plan, size: Size, seed: int, progress: Progress, cells: Cells) -> Outcome:
    """Tune, score, and put it in a table."""
    done = tune_and_score(plan, size, seed, progress, cells)
    tuning_count, scored_count = plan.seeds[size]
    scored = make_streams(plan.draw, seed, SCORED, scored_count)
    rows = _best(plan, done, scored)
    if plan.binary and np.all(np.isfinite(scored.truth)):
        known = np.mean((scored.truth > 0.5) == (scored.y > 0.5), axis=1)
        rows.append(Row("accuracy, truth known", *mean_se(known)))
    series: dict[str, np.ndarray] = {"t": np.arange(scored.y.shape[1])}
    arrays: dict[str, np.ndarray] = {"change": scored.change}
    for one in done:
        label, result = one.method.label, one.result(plan.main)
        for name in one.chosen:
            values = measures(plan, one.result(name), scored)[name]
            number = getattr(one.method, "published", None) if name == plan.main else None
            note = one.method.note if name == plan.main else ""
            rows.append(Row(f"{name}, {label}", *mean_se(values), published=number, note=note))
            arrays[f"{name} {label}"] = values
        if not plan.binary:
            rows.append(Row(f"median RMSE, {label}", float(np.median(arrays[f"RMSE {label}"]))))
        if "alarm" in result:
            rows += _alarms(label, result["alarm"], scored.change, plan.within)
        if "lengths" in result:
            arrays[f"lengths {label}"] = result["lengths"][:4]
        series[label] = _each_step(plan, result, scored).mean(axis=0)
    settings = {
        **plan.world,
        "methods": {one.method.label: dict(getattr(one.method, "program", {})) for one in done},
        "chosen": {one.method.label: {name: dict(one.values(name)) for name in one.chosen} for one in done},
        "tuning": {
            one.method.label: [
                {**values, **cost} for values, cost in zip(one.method.grid, one.costs, strict=False)
            ]
            for one in done
        },
        "criteria": plan.criteria,
        "left_out": [peer.label for peer in plan.peers if not any(one.method is peer for one in done)],
        "dtype": "float32",
    }
    seeds = {
        "scored": f"numpy.random.default_rng([{seed}, {SCORED}, i]), i = 0..{scored_count - 1}",
        "tuning": f"numpy.random.default_rng([{seed}, {TUNING}, i]), i = 0..{tuning_count - 1}; not scored",
    }
    figure = functools.partial(plan.figure or draw, plan, series, arrays)
    return Outcome(tuple(rows), settings, seeds, series, arrays, figure)


def _best(plan: Plan, done: list[Tuned], scored: Streams) -> list[Row]:
    """The adaptive method that did best on the tuning streams, as it did on the scored ones."""
    rows = []
    candidates = [one for one in done if isinstance(one.method, Method) and one.method.adaptive]
    for name, by in plan.criteria.items():
        least = [min(cost[by] for cost in one.costs) for one in candidates]
        best = candidates[int(np.argmin(least))]
        values = measures(plan, best.result(name), scored)[name]
        rows.append(Row(f"{name}, best in tuning ({best.method.label})", *mean_se(values), note=plan.target))
    return rows


def _each_step(plan: Plan, result: Arrays, streams: Streams) -> np.ndarray:
    """A hit (0 or 1), or the absolute error to the true mean, for each stream and step."""
    streams = jax.tree.map(lambda leaf: leaf[: len(result["mean"])], streams)
    if plan.binary:
        return ((result["mean"] > 0.5) == (streams.y > 0.5)).astype(np.float64)
    return np.abs(result["mean"].astype(np.float64) - streams.truth)


def _alarms(label: str, alarm: np.ndarray, change: np.ndarray, within: int) -> list[Row]:
    """How many changes were reported within some steps, and how many reports had no change before them."""
    if not change.any():
        return []
    found, false = 0, 0
    for reports, changes in zip(alarm.astype(bool), change.astype(bool), strict=True):
        at, when = np.flatnonzero(reports), np.flatnonzero(changes)
        found += sum(bool(np.any((at >= one) & (at <= one + within))) for one in when)
        false += sum(not np.any((when <= one) & (when >= one - within)) for one in at)
    return [
        Row(f"changes reported within {within} steps, {label}", found / change.sum()),
        Row(f"false alarms a stream, {label}", false / len(change)),
    ]
