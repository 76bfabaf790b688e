"""Electricity prices, up or down, 45,312 half hours (Elec2): a logistic regression that must keep up.

Labels persist for hours, and what they depend on moves, so a learner must forget; a forecast that repeats the
last label is in the table. The first 4,000 rows are for tuning by the log score; the others are scored. Speed
is in rows a second of predicting and learning together, in the same run, without compilation.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from credo_papers.bone.bone_peers import Peer
from credo_papers.bone.bone_plan import BoneProgram
from credo_papers.bone.bone_prices_figure import draw
from credo_papers.bone.bone_prices_learner import probabilities
from credo_papers.bone.bone_prices_plan import EARLY, LEAST, LENGTH, METHODS, make_peers
from credo_papers.bone.bone_prices_world import make_rows
from credo_papers.bone.bone_world import Streams
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.plain_data import Arrays, Json, Values
from credo_papers.engine.portions import Progress
from credo_papers.engine.quantities import Row

__all__ = ["log_scores", "run"]

Forecast = Callable[[Values, int], np.ndarray]
"""`forecast(values, count)` returns P(y = 1) of the first rows (count,), each before it is learned."""


def log_scores(chance: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return -log P of each label in nats, with probabilities at least `LEAST`.

    Arguments:
        chance: P(y = 1) of each row (T,).
        y: labels 0 or 1 (T,).
    """
    bounded = np.clip(chance, LEAST, 1.0 - LEAST)
    scores: np.ndarray = -np.log(np.where(y == 1, bounded, 1.0 - bounded))
    return scores


@dataclass
class _Table:
    """The rows of the table, and what stands in the settings and the series beside them.

    Attributes:
        y: the labels (T,).
        early: how many rows are for tuning; the others are scored.
        rows, choices, series: of the outcome, as far as it is known.
    """

    y: np.ndarray
    early: int
    rows: list[Row] = field(default_factory=list)
    choices: dict[str, Json] = field(default_factory=dict)
    series: Arrays = field(default_factory=dict)

    def best(self, grid: Sequence[Values], forecast: Forecast) -> Values:
        """The values with the best log score of the early rows."""
        y = self.y[: self.early]
        costs = [log_scores(forecast(values, self.early), y).mean() for values in grid]
        return grid[int(np.nanargmin(costs))]

    def add(self, label: str, values: Values, chance: np.ndarray, seconds: float | None) -> None:
        """Add a method by its forecasts (T,) and how long they took."""
        wrong = (chance > 0.5) != self.y
        score = log_scores(chance, self.y)
        note = ", ".join(f"{name} {value:g}" for name, value in values.items())
        if not np.all(np.isfinite(chance)):
            note = "winds up: forgets for ever what is not excited; " + note
        self.rows.append(Row(f"error, {label}", float(wrong[self.early :].mean()), note=note))
        self.rows.append(Row(f"NLPD in nats, {label}", float(score[self.early :].mean())))
        if seconds is not None:
            self.rows.append(Row(f"rows a second, {label}", len(self.y) / seconds))
        self.choices[label] = dict(values)
        self.series[label] = wrong[self.early :].astype(float)

    def add_timed(self, label: str, values: Values, forecast: Forecast) -> None:
        """Add a method, and time it."""
        start = time.perf_counter()
        chance = forecast(values, len(self.y))
        self.add(label, values, chance, time.perf_counter() - start)


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Tune every method on the first rows, and score it on the others."""
    early = EARLY[size]
    length = LENGTH[size]
    x, y = (leaf[:length] for leaf in make_rows())
    table = _Table(y, early, series={"t": np.arange(early, length)})
    last = np.concatenate([[0.5], np.where(y[:-1] == 1, 0.9, 0.1)])
    table.add("the last label", {}, last, None)

    def ours(program: BoneProgram, values: Values, count: int) -> np.ndarray:
        return np.asarray(probabilities(program, values, x[:count], y[:count]))

    def theirs(peer: Peer, values: Values, count: int) -> np.ndarray:
        labels = y[None, :count].astype(float)
        means = peer.predict(Streams(x[None, :count], labels, labels, labels, None), values, True)
        chance: np.ndarray = means[0]
        return chance

    methods = [method for method in METHODS if size == "full" or method.quick]
    for number, method in enumerate(methods):
        progress(0.5 * number / len(methods), method.label)
        forecast = functools.partial(ours, method.program)
        values = table.best(method.grid, forecast)
        forecast(values, length)  # compiles the program, which is not timed
        table.add_timed(method.label, values, forecast)
    peers = [peer for peer in make_peers() if size == "full" and peer.available()]
    for number, peer in enumerate(peers):
        progress(0.5 + 0.5 * number / len(peers), peer.label)
        forecast = functools.partial(theirs, peer)
        values = table.best(peer.grid, forecast) if len(peer.grid) > 1 else peer.grid[0]
        table.add_timed(peer.label, values, forecast)
    labels = [peer.label for peer in make_peers()]
    settings: dict[str, Json] = {
        "rows": len(y),
        "model": "logistic regression of the columns and a constant; prior variance 1, full covariance",
        "chosen": table.choices,
        "criterion": f"log score of the first {early} rows",
        "least probability in a log score": LEAST,
        "left out": [label for label in labels if label not in table.choices],
    }
    seeds = {"all": "no random numbers, but River's forest (its seed is 0)"}
    figure = functools.partial(draw, table.series)
    return Outcome(tuple(table.rows), settings, seeds, table.series, {}, figure)
