"""Electricity prices, up or down, 45,312 half hours (Elec2): a logistic regression that must keep up.

Labels persist for hours and what they depend on moves, so a learner must forget; one that repeats the last
label is in the table. The first 4,000 rows are for tuning, by the log score; the others are scored. Speed is
rows a second of predicting and learning together, in the same run, without compilation.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.datasets import load
from credo.experiments.bone_figure import smooth
from credo.experiments.bone_methods import make
from credo.experiments.bone_peers import Peer, river_classifiers
from credo.experiments.bone_streams import Streams
from credo.experiments.cells import Cells
from credo.experiments.records import Outcome, Progress, Row, Size
from credo.plots import PALETTE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["METHODS", "inputs", "run"]

EARLY = {"quick": 300, "full": 4000}
LENGTH = {"quick": 1500, "full": 45_312}
LEAST = 1e-3  # peers give probabilities of 0 and 1; the log score of no method is below log(LEAST)


@dataclass(frozen=True)
class Method:
    """A method of ours, its program and what it is tuned over; see `bone_methods`."""

    label: str
    program: Mapping[str, Any]
    grid: tuple[dict[str, float], ...] = ({},)
    quick: bool = False


def _over(**values: tuple[float, ...]) -> tuple[dict[str, float], ...]:
    grid: list[dict[str, float]] = [{}]
    for name, choices in values.items():
        grid = [{**point, name: value} for point in grid for value in choices]
    return tuple(grid)


METHODS = (
    Method("C-Static", {"method": "static"}, quick=True),
    Method("C-ACI", {"method": "aci"}, _over(q=(1e-3, 1e-2, 1e-1, 1.0)), quick=True),
    Method("C-OU", {"method": "ou"}, _over(gamma=(0.999, 0.99, 0.97, 0.95))),
    Method("forgetting", {"method": "forgetting"}, _over(forgetting=(0.999, 0.99, 0.97, 0.95))),
    Method("RL[5]-PR", {"method": "rl-pr", "capacity": 5}, _over(hazard=(0.01, 0.05, 0.2))),
    Method(
        "RL[5]-PR + walk",
        {"method": "rl-pr", "capacity": 5},
        _over(hazard=(0.01, 0.05), q=(1e-2, 1e-1)),
    ),
    Method("ME-OU(8)", {"method": "experts"}, _over(switching=(0.01, 0.1))),
)


def inputs() -> tuple[np.ndarray, np.ndarray]:
    """The columns, less their mean over their standard deviation in the first 4,000 rows, and a constant."""
    data = load("electricity", split="all")
    x = np.asarray(data.x, np.float64)
    first = x[: EARLY["full"]]
    scaled = (x - first.mean(axis=0)) / np.maximum(first.std(axis=0), 1e-2)
    ones = np.ones((len(x), 1))
    return np.concatenate([np.clip(scaled, -10, 10), ones], axis=1).astype(np.float32), np.asarray(data.y)


def _linear(w: jax.Array, x: jax.Array) -> jax.Array:
    return x @ w


def _learner(program: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
    inner = credo.RecursiveLearner(credo.Model(_linear, credo.Bernoulli()), credo.Full("dense"))
    return make(inner, program, values)


@functools.partial(jax.jit, static_argnums=0)
def _probabilities(program: tuple, values: Mapping[str, Any], x: jax.Array, y: jax.Array) -> jax.Array:
    """P(y = 1) of each row before it is learned."""
    learner = _learner(dict(program), values)

    def step(belief: Any, row: Any) -> tuple[Any, jax.Array]:
        predicted = learner.predict(belief)
        chance = learner.forecast(predicted, row[0]).mean
        return learner.update(predicted, *row)[0], chance

    return jax.lax.scan(step, learner.init(jnp.zeros(x.shape[1])), (x, y))[1]


def _restarted(streams: Streams, values: Mapping[str, float], binary: bool) -> np.ndarray:
    """River's logistic regression, made anew when ADWIN sees its error change."""
    from river import drift, linear_model, optim

    fresh = lambda: linear_model.LogisticRegression(optim.SGD(values["rate"]))  # noqa: E731
    model, detector, means = fresh(), drift.ADWIN(), np.empty(streams.y.shape)
    for t, (row, y) in enumerate(zip(streams.x[0].tolist(), streams.y[0].tolist(), strict=True)):
        x = dict(enumerate(row))
        means[0, t] = model.predict_proba_one(x).get(True, 0.5)
        detector.update(float((means[0, t] > 0.5) != (y > 0.5)))
        if detector.drift_detected:
            model = fresh()
        model.learn_one(x, y > 0.5)
    return means


def _peers() -> list[Peer]:
    forest, _, logistic = river_classifiers()
    rates = [{"rate": rate} for rate in (0.01, 0.03, 0.1, 0.3)]
    return [forest, logistic, Peer("River logistic regression + ADWIN", _restarted, rates, package="river")]


def _log_score(chance: np.ndarray, y: np.ndarray) -> np.ndarray:
    kept = np.clip(chance, LEAST, 1.0 - LEAST)
    return -np.log(np.where(y == 1, kept, 1.0 - kept))


def _timed(call: Callable[[], np.ndarray], warm: bool) -> tuple[np.ndarray, float]:
    if warm:
        call()
    start = time.perf_counter()
    chance = call()
    return chance, time.perf_counter() - start


def run(size: Size, seed: int, progress: Progress, cells: Cells) -> Outcome:
    """Tune on the first rows, score on the others."""
    early, length = EARLY[size], LENGTH[size]
    x, y = (leaf[:length] for leaf in inputs())
    scored, rows, chosen = slice(early, None), [], {}
    series: dict[str, np.ndarray] = {"t": np.arange(early, length)}

    def add(label: str, chance: np.ndarray, seconds: float | None, values: Mapping[str, float]) -> None:
        wrong, score = (chance > 0.5) != y, _log_score(chance, y)
        note = ", ".join(f"{name} {value:g}" for name, value in values.items())
        if not np.all(np.isfinite(chance)):
            note = "winds up: forgets for ever what is not excited; " + note
        rows.append(Row(f"error, {label}", float(wrong[scored].mean()), note=note))
        rows.append(Row(f"NLPD in nats, {label}", float(score[scored].mean())))
        if seconds is not None:
            rows.append(Row(f"rows a second, {label}", len(y) / seconds))
        chosen[label], series[label] = dict(values), wrong[scored].astype(float)

    last = np.concatenate([[0.5], np.where(y[:-1] == 1, 0.9, 0.1)])
    add("the last label", last, None, {})
    methods = [method for method in METHODS if size == "full" or method.quick]
    for number, method in enumerate(methods):
        progress(0.5 * number / len(methods), method.label)
        program = tuple(sorted(method.program.items()))

        def ours(values: Mapping[str, float], count: int, program: tuple = program) -> np.ndarray:
            return np.asarray(_probabilities(program, values, x[:count], y[:count]))

        costs = [_log_score(ours(values, early), y[:early]).mean() for values in method.grid]
        best: Mapping[str, float] = method.grid[int(np.nanargmin(costs))]
        add(method.label, *_timed(functools.partial(ours, best, length), True), best)
    peers = [peer for peer in _peers() if size == "full" and peer.available()]
    for number, peer in enumerate(peers):
        progress(0.5 + 0.5 * number / len(peers), peer.label)

        def theirs(values: Mapping[str, float], count: int, peer: Peer = peer) -> np.ndarray:
            labels = y[None, :count].astype(float)
            return peer.predict(Streams(x[None, :count], labels, labels, labels, None), values, True)[0]

        setting = peer.grid[0]
        if len(peer.grid) > 1:
            costs = [_log_score(theirs(values, early), y[:early]).mean() for values in peer.grid]
            setting = peer.grid[int(np.nanargmin(costs))]
        add(peer.label, *_timed(functools.partial(theirs, setting, length), False), setting)
    settings = {
        "rows": len(y),
        "model": "logistic regression of the columns and a constant; prior variance 1, full covariance",
        "chosen": chosen,
        "criterion": f"log score of the first {early} rows",
        "least probability in a log score": LEAST,
        "left out": [peer.label for peer in _peers() if peer not in peers and peer.label not in chosen],
    }
    seeds = {"all": "no random numbers, but River's forest (its seed is 0)"}
    return Outcome(tuple(rows), settings, seeds, series, {}, functools.partial(_draw, series))


def _draw(series: Mapping[str, np.ndarray]) -> Figure:
    """The error of the latest four weeks, for every method."""
    figure = new_figure()
    figure.suptitle("Electricity prices, up or down")
    axes = figure.subplots()
    window = min(48 * 28, len(series["t"]) // 4)
    for number, label in enumerate(label for label in series if label != "t"):
        line = "-" if number < len(PALETTE) - 1 else "--"
        axes.plot(series["t"], smooth(series[label], window), line, label=label, lw=1.5)
    axes.set(xlabel="half hour", ylabel=f"error of the latest {window} rows")
    axes.legend(loc="upper right", ncols=3)
    return figure
