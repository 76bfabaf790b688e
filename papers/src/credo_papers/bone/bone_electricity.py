"""The demand for electricity one hour ahead, 45,312 half hours: a small network that must keep up.

The data stand in for the published ones (day-ahead demand, 2017 to 2021), which need a login. They are the
columns of demand and prices in New South Wales and Victoria of 1996 to 1998 ("electricity"), standardised as
published, by exponentially weighted moments of half-life 20 that end one step earlier. Numbers cannot be
compared with the published ones, but the order of the methods can. The first 4,000 rows are for tuning, with
other initial weights; errors are counted after them.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import numpy as np

from credo_papers.bone.bone_electricity_figure import draw
from credo_papers.bone.bone_electricity_learner import build
from credo_papers.bone.bone_electricity_plan import METHODS, PEERS, SIZES
from credo_papers.bone.bone_electricity_world import AHEAD, HALF_LIFE, make_rows, make_streams
from credo_papers.bone.bone_peers import Peer
from credo_papers.bone.bone_plan import VERSION, Method
from credo_papers.bone.bone_tuning import costs
from credo_papers.bone.bone_world import Streams
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.plain_data import Arrays, Json
from credo_papers.engine.portions import Progress, portion
from credo_papers.engine.purposes import SCORED, TUNING
from credo_papers.engine.quantities import Row, mean_se
from credo_papers.engine.sweep import Setting, sweep

__all__ = ["run"]


@dataclass
class _Table:
    """The rows of the table, and what stands in the settings and the series beside them.

    Attributes:
        x, y: inputs (N, 6) and targets (N,).
        early: how many rows are for tuning; errors are counted after them.
        rows, choices, tuning, series: of the outcome, as far as it is known.
    """

    x: np.ndarray
    y: np.ndarray
    early: int
    rows: list[Row] = field(default_factory=list)
    choices: dict[str, Json] = field(default_factory=dict)
    tuning: dict[str, Json] = field(default_factory=dict)
    series: Arrays = field(default_factory=dict)

    def add_guess(self, label: str, guess: np.ndarray) -> None:
        """Add a forecast (N,) that learns nothing."""
        gaps = np.abs(guess - self.y)[self.early :]
        self.rows.append(Row(f"mean absolute error, {label}", float(gaps.mean())))
        self.rows.append(Row(f"median absolute error, {label}", float(np.median(gaps))))
        self.series[label] = gaps

    def add_method(self, method: Method, losses: list[float], index: int, forecasts: np.ndarray) -> None:
        """Add a method by its forecasts (n, N), and what was tried before."""
        gaps = np.abs(forecasts - self.y)[:, self.early :]
        means = gaps.mean(axis=1)
        medians = np.median(gaps, axis=1)
        note = "published on other data" if method.published else ""
        label = method.label
        median = mean_se(medians)
        self.rows.append(Row(f"mean absolute error, {label}", *mean_se(means), None, None, _failure(means)))
        self.rows.append(Row(f"median absolute error, {label}", *median, method.published, None, note))
        self.choices[label] = dict(method.grid[index])
        self.tuning[label] = [{**v, "mae": loss} for v, loss in zip(method.grid, losses, strict=True)]
        self.series[label] = gaps.mean(axis=0)

    def add_peer(self, peer: Peer) -> None:
        """Tune a peer on the early rows, and add it by its forecasts of all."""
        early, whole = (
            Streams(self.x[None, :end], self.y[None, :end], self.y[None, :end], np.zeros((1, end)), None)
            for end in (self.early, len(self.y))
        )
        losses = [costs({"mean": peer.predict(early, values, False)}, early)["mae"] for values in peer.grid]
        index = int(np.argmin(losses))
        gaps = np.abs(peer.predict(whole, peer.grid[index], False)[0] - self.y)[self.early :]
        mean = gaps.mean()
        self.rows.append(Row(f"mean absolute error, {peer.label}", float(mean), note=_failure(mean)))
        self.rows.append(Row(f"median absolute error, {peer.label}", float(np.median(gaps))))
        self.choices[peer.label] = dict(peer.grid[index])
        self.series[peer.label] = gaps


def _failure(means: np.ndarray | np.float64) -> str:
    """A note on a method that diverged."""
    failed = int(np.sum(~(means < 10.0)))
    if failed:
        return f"winds up in {failed} of {means.size}: forgets for ever what is not excited"
    return ""


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Tune every method on the first rows, and score it on the others."""
    tuning_count, count, early, length = SIZES[size]
    x, y, yesterday = (leaf[:length] for leaf in make_rows())
    streams = {
        TUNING: make_streams(seed, TUNING, tuning_count, x[:early], y[:early]),
        SCORED: make_streams(seed, SCORED, count, x, y),
    }

    def forecast(method: Method, index: int, purpose: int, part: Progress) -> Arrays:
        setting = Setting(f"{method.label} {index}", method.program, method.grid[index])
        context: dict[str, Json] = {"seed": seed, "purpose": purpose, "rows": len(y), "version": VERSION}
        return sweep(
            "bone-electricity",
            [setting],
            build,
            streams[purpose],
            None,
            context=context,
            chunk=tuning_count,
            cells=cells,
            progress=part,
        )[setting.name]

    table = _Table(x, y, early, series={"t": np.arange(early, len(y))})
    table.add_guess("the present value", x[:, 0])
    table.add_guess("the same half hour yesterday", yesterday)
    methods = [method for method in METHODS if size == "full" or method.quick]
    kept = Cells() if cells is None else cells

    def judge(number: int) -> tuple[Method, list[float], int, np.ndarray]:
        method = methods[number]
        part = portion(progress, number / len(methods), (number + 1) / len(methods))
        results = kept.each(lambda index: forecast(method, index, TUNING, part), range(len(method.grid)))
        losses = [costs(result, streams[TUNING])["mae"] for result in results]
        index = int(np.argmin(losses))
        return method, losses, index, forecast(method, index, SCORED, part)["mean"]

    for one in kept.each(judge, range(len(methods))):
        table.add_method(*one)
    for peer in PEERS if size == "full" else []:
        if peer.available():
            table.add_peer(peer)
    settings: dict[str, Json] = {
        "rows": len(y),
        "ahead": AHEAD,
        "half_life": HALF_LIFE,
        "network": "6-4-4-1, relu, 53 parameters; prior variance 1, noise tuned",
        "chosen": table.choices,
        "tuning": table.tuning,
        "criterion": f"mean absolute error of the first {early} rows",
    }
    key = f"jax.random.fold_in(jax.random.key({seed})"
    seeds = {
        "scored": f"{count} initial weights: {key}, {SCORED}), split",
        "tuning": f"{tuning_count} initial weights: {key}, {TUNING}), split",
    }
    return Outcome(
        tuple(table.rows), settings, seeds, table.series, {}, functools.partial(draw, table.series)
    )
