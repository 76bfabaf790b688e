"""The demand for electricity one hour ahead, 45,312 half hours: a small network that must keep up.

A stand-in: the published data (day-ahead demand, 2017 to 2021) need a login, so these are the
columns of demand and prices in New South Wales and Victoria of 1996 to 1998 ("electricity"), standardised as
published, by exponentially weighted moments of half-life 20 that end one step earlier. Numbers cannot be
compared with the published ones, only the order of the methods can. The first 4,000 rows are for tuning, with
other initial weights; errors are counted after them.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import numpy as np

import credo
from credo.datasets import load
from credo.experiments.bone_common import VERSION, Method, costs, grid
from credo.experiments.bone_electricity_figure import draw
from credo.experiments.bone_methods import online
from credo.experiments.bone_peers import NEIGHBOURS, Peer, river_regressors
from credo.experiments.bone_streams import SCORED, TUNING, Streams
from credo.experiments.cells import Cells
from credo.experiments.records import Outcome, Progress, Row, Size, mean_se
from credo.experiments.sweep import One, Setting, portion, sweep

__all__ = ["METHODS", "build", "run", "standardized"]

AHEAD, HALF_LIFE, DAY = 2, 20.0, 48
SIZES = {"quick": (2, 2, 1000, 3000), "full": (10, 20, 4000, 45_312)}  # inits, inits, rows for tuning, rows
NET = credo.MLP(outputs=1, hidden=(4, 4), activation="relu")


def _inner(program: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
    model = credo.Model(NET, credo.Normal(values["noise"]))
    return credo.RecursiveLearner(model, credo.Full("dense"))


def build(program: Mapping[str, Any]) -> One:
    """The function of one stream."""
    return online(_inner, program)


def standardized(values: np.ndarray) -> np.ndarray:
    """Each column less its exponentially weighted mean, over the weighted standard deviation, both of the
    rows before; the first 2 rows are 0.

    >>> standardized(np.array([[1.0], [3.0], [5.0]])).round(3).tolist()
    [[0.0], [0.0], [2.983]]
    """
    keep = 0.5 ** (1.0 / HALF_LIFE)
    total = np.zeros(values.shape[1])
    first, second, weight = total.copy(), total.copy(), 0.0
    made = np.zeros_like(values, dtype=np.float64)
    for t, row in enumerate(values):
        if t >= 2:
            mean = first / weight
            var = np.maximum(second / weight - mean**2, 1e-6)
            made[t] = (row - mean) / np.sqrt(var)
        first, second, weight = keep * first + row, keep * second + row**2, keep * weight + 1.0
    return np.clip(made, -10.0, 10.0)


def make_rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs (N, 6), targets (N,), and what the same half hour of the day before says (N,)."""
    columns = load("electricity", split="all").columns
    assert columns is not None
    names = ("nswdemand", "nswprice", "vicdemand", "transfer")
    raw = np.stack([np.asarray(columns[name], np.float64) for name in names], axis=1)
    scaled, angle = standardized(raw), 2 * np.pi * np.asarray(columns["period"], np.float64)
    x = np.concatenate([scaled, np.sin(angle)[:, None], np.cos(angle)[:, None]], axis=1)
    y = scaled[AHEAD:, 0]
    yesterday = np.concatenate([np.zeros(DAY - AHEAD), scaled[: len(scaled) - DAY, 0]])
    return x[:-AHEAD].astype(np.float32), y.astype(np.float32), yesterday


def _method(label: str, program: Mapping[str, Any], published: float | None = None, **values: Any) -> Method:
    return Method(label, program, grid(**values, noise=(0.05, 1.0)), published, quick=label == "C-ACI")


METHODS = [
    _method("C-Static", {"method": "static"}),
    _method("C-ACI", {"method": "aci"}, 0.2609, q=(1e-4, 1e-3, 1e-2)),
    _method("C-OU", {"method": "ou"}, gamma=(0.998, 0.9995, 0.9999)),
    _method("forgetting RLS", {"method": "forgetting"}, forgetting=(0.998, 0.999, 0.9995)),
    _method("RL[1]-PR", {"method": "rl-pr", "capacity": 1}, 0.4631, hazard=(0.001, 0.01)),
    _method("RL[1]-PR + walk", {"method": "rl-pr", "capacity": 1}, hazard=0.001, q=(1e-4, 1e-3)),
    _method("RL[1]-OUPR*", {"method": "rl-oupr"}, 0.1995, hazard=(0.0001, 0.001, 0.01)),
]
PEERS = [
    Peer("kNN in a window", NEIGHBOURS.predict, [{"window": 48 * days, "k": 10} for days in (7, 28)]),
    replace(river_regressors()[0], grid=[{"smoothing": value} for value in (0.98, 0.99, 0.999)]),
]


def _streams(seed: int, purpose: int, count: int, x: np.ndarray, y: np.ndarray) -> Streams:
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), purpose), count)
    start = jax.vmap(lambda key: NET.init(key, (x.shape[1],)))(keys)
    xs, ys = np.broadcast_to(x, (count, *x.shape)), np.broadcast_to(y, (count, *y.shape))
    return Streams(xs, ys, ys, np.zeros_like(ys), start)


def _failure(means: np.ndarray) -> str:
    """A note for a method that lost its way."""
    failed = int(np.sum(~(means < 10.0)))
    return f"winds up in {failed} of {means.size}: forgets for ever what is not excited" if failed else ""


def run(size: Size, seed: int, progress: Progress, cells: Cells) -> Outcome:
    """Tune on the first rows, score on the others."""
    tuned, count, early, length = SIZES[size]
    x, y, yesterday = (leaf[:length] for leaf in make_rows())
    streams = {
        TUNING: _streams(seed, TUNING, tuned, x[:early], y[:early]),
        SCORED: _streams(seed, SCORED, count, x, y),
    }
    methods = [method for method in METHODS if size == "full" or method.quick]

    def score(method: Method, index: int, purpose: int, told: Progress) -> dict[str, np.ndarray]:
        setting = Setting(f"{method.label} {index}", method.program, method.grid[index])
        given = {"seed": seed, "purpose": purpose, "rows": len(y), "version": VERSION}
        more: dict[str, Any] = {"given": given, "chunk": tuned, "cells": cells, "progress": told}
        return sweep("bone-electricity", [setting], build, streams[purpose], **more)[setting.name]

    scored = slice(early, None)
    rows, chosen, tuning = [], {}, {}
    series: dict[str, np.ndarray] = {"t": np.arange(early, len(y))}
    for label, guess in (("the present value", x[:, 0]), ("the same half hour yesterday", yesterday)):
        gaps = np.abs(guess - y)[scored]
        rows.append(Row(f"mean absolute error, {label}", float(gaps.mean())))
        rows.append(Row(f"median absolute error, {label}", float(np.median(gaps))))
        series[label] = gaps
    for number, method in enumerate(methods):
        told = portion(progress, number / len(methods), (number + 1) / len(methods))
        tried = [
            costs(score(method, index, TUNING, told), streams[TUNING])["mae"]
            for index in range(len(method.grid))
        ]
        index = int(np.argmin(tried))
        gaps = np.abs(score(method, index, SCORED, told)["mean"] - y)[:, scored]
        means = gaps.mean(axis=1)
        rows.append(Row(f"mean absolute error, {method.label}", *mean_se(means), note=_failure(means)))
        median = np.median(gaps, axis=1)
        note = "published on other data" if method.published else ""
        rows.append(
            Row(f"median absolute error, {method.label}", *mean_se(median), method.published, note=note)
        )
        chosen[method.label] = dict(method.grid[index])
        tuning[method.label] = [{**v, "mae": c} for v, c in zip(method.grid, tried, strict=True)]
        series[method.label] = gaps.mean(axis=0)
    early_rows, all_rows = (
        Streams(x[None, :end], y[None, :end], y[None, :end], np.zeros((1, end)), None)
        for end in (early, len(y))
    )
    for peer in PEERS if size == "full" else []:
        if not peer.available():
            continue
        tried = [costs({"mean": peer.predict(early_rows, v, False)}, early_rows)["mae"] for v in peer.grid]
        index = int(np.argmin(tried))
        gaps = np.abs(peer.predict(all_rows, peer.grid[index], False)[0] - y)[scored]
        mean = gaps.mean()
        rows.append(Row(f"mean absolute error, {peer.label}", float(mean), note=_failure(mean)))
        rows.append(Row(f"median absolute error, {peer.label}", float(np.median(gaps))))
        chosen[peer.label], series[peer.label] = dict(peer.grid[index]), gaps
    settings = {
        "rows": len(y),
        "ahead": AHEAD,
        "half_life": HALF_LIFE,
        "network": "6-4-4-1, relu, 53 parameters; prior variance 1, noise tuned",
        "chosen": chosen,
        "tuning": tuning,
        "criterion": f"mean absolute error of the first {early} rows",
    }
    seeds = {
        "scored": f"{count} initial weights: jax.random.fold_in(jax.random.key({seed}), {SCORED}), split",
        "tuning": f"{tuned} initial weights: jax.random.fold_in(jax.random.key({seed}), {TUNING}), split",
    }
    return Outcome(tuple(rows), settings, seeds, series, {}, functools.partial(draw, series))
