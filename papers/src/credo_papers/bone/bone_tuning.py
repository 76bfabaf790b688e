"""Tuning and scoring of the BONE experiments: tune every method on some streams, and score it on others."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import numpy as np

from credo_papers.bone.bone_peers import Peer
from credo_papers.bone.bone_plan import VERSION, Method, Plan
from credo_papers.bone.bone_world import Streams, make_streams
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Size
from credo_papers.engine.plain_data import Arrays, Json, Values
from credo_papers.engine.portions import Progress, portion
from credo_papers.engine.purposes import SCORED, TUNING
from credo_papers.engine.sweep import Setting, sweep

__all__ = ["TuningResult", "costs", "measures", "tune_and_score"]


@dataclass(frozen=True)
class TuningResult:
    """A method after tuning.

    Attributes:
        method: what was tuned.
        costs: of each point of its grid, on the tuning streams; empty for a peer without a choice.
        choice: for each measure, which point of the grid.
        results: for each of those, the result on the scored streams.
    """

    method: Method | Peer
    costs: Sequence[Mapping[str, float]]
    choice: Mapping[str, int]
    results: Mapping[int, Arrays]

    def result(self, measure: str) -> Arrays:
        """Return the result of the values that were chosen for a measure."""
        return self.results[self.choice[measure]]

    def values(self, measure: str) -> Values:
        """Return the values that were chosen for a measure."""
        return self.method.grid[self.choice[measure]]

    @property
    def program(self) -> dict[str, Json]:
        """The program of the method in plain JSON values; a peer has none."""
        program: dict[str, Json] = {}
        if isinstance(self.method, Method):
            program = json.loads(json.dumps(self.method.program))
        return program

    @property
    def published(self) -> float | str | None:
        """The published number of the main measure, if there is one."""
        if isinstance(self.method, Method):
            return self.method.published
        return None


def costs(result: Arrays, streams: Streams) -> dict[str, float]:
    """Return what tuning minimises, each the mean over all streams and steps.

    They are `error` (the share of wrong labels), `mae` (the mean absolute error to y), and where there is a
    log score `nll` (in nats). A method that failed anywhere costs 1e30.

    Arguments:
        result: `mean` and perhaps `log_prob` of the forecasts (N, T).
        streams: the streams that were forecast.
    """
    mean = result["mean"].astype(np.float64)
    means = {"error": np.mean((mean > 0.5) != (streams.y > 0.5)), "mae": np.mean(np.abs(mean - streams.y))}
    if "log_prob" in result:
        means["nll"] = -result["log_prob"].mean(dtype=np.float64)
    sound = np.isfinite(mean).all() and np.isfinite(means.get("nll", 0.0))
    return {name: float(value) if sound else 1e30 for name, value in means.items()}


def measures(plan: Plan, result: Arrays, streams: Streams) -> Arrays:
    """Return one number for each stream: the RMSE or the accuracy, and the NLL in nats if there is one.

    Arguments:
        plan: the plan of the experiment.
        result: `mean` and perhaps `log_prob` of the forecasts (N, T).
        streams: the streams that were forecast, and perhaps more after them.
    """
    mean = result["mean"].astype(np.float64)
    streams = jax.tree.map(lambda leaf: leaf[: len(mean)], streams)
    if plan.binary:
        numbers = {"accuracy": np.mean((mean > 0.5) == (streams.y > 0.5), axis=1)}
    else:
        goal = streams.y if plan.to_observation else streams.truth
        numbers = {"RMSE": np.sqrt(np.mean((mean - goal) ** 2, axis=1))}
    if "log_prob" in result:
        numbers["NLL"] = -result["log_prob"].mean(axis=1, dtype=np.float64)
    return numbers


@dataclass(frozen=True)
class _Trial:
    """Runs one point of the grid of a method or of a peer on streams; finished pieces are kept in `cells`."""

    plan: Plan
    seed: int
    chunk: int
    cells: Cells

    def __call__(
        self, method: Method | Peer, index: int, purpose: int, streams: Streams, progress: Progress
    ) -> Arrays:
        plan = self.plan
        values = dict(method.grid[index])
        context: dict[str, Json] = {
            "seed": self.seed,
            "purpose": purpose,
            "version": VERSION,
            "world": dict(plan.world),
        }
        if isinstance(method, Peer):
            description = {**context, "values": values, "streams": len(streams.y)}
            predict = functools.partial(method.predict, streams, values, plan.binary)
            return self.cells.get(f"{plan.name}-{method.label}", description, lambda: {"mean": predict()})
        setting = Setting(f"{method.label} {index}", method.program, values)
        return sweep(
            plan.name,
            [setting],
            plan.build,
            streams,
            None,
            context=context,
            chunk=self.chunk,
            cells=self.cells,
            progress=progress,
        )[setting.name]


def tune_and_score(plan: Plan, size: Size, seed: int, progress: Progress, cells: Cells) -> list[TuningResult]:
    """Return every method and peer, tuned on the tuning streams and run on the scored ones.

    Arguments:
        plan: the plan of the experiment.
        size, seed, progress, cells: as for every experiment.
    """
    tuning_count, scored_count = plan.seeds[size]
    tuning = make_streams(plan.draw, seed, TUNING, tuning_count)
    streams = make_streams(plan.draw, seed, SCORED, scored_count)
    trial = _Trial(plan, seed, tuning_count, cells)
    methods: list[Method | Peer] = [*plan.methods, *(peer for peer in plan.peers if peer.available())]
    methods = [method for method in methods if size == "full" or method.quick]

    def judge(number: int) -> TuningResult:
        method = methods[number]
        part = portion(progress, number / len(methods), (number + 1) / len(methods))
        part(0.0, method.label)
        peer = isinstance(method, Peer)
        losses = []
        if not peer or len(method.grid) > 1:
            results = cells.each(
                lambda index: trial(method, index, TUNING, tuning, part), range(len(method.grid))
            )
            losses = [costs(result, tuning) for result in results]
        criteria = plan.criteria
        if peer:
            criteria = {plan.main: "error" if plan.binary else "mae"}
        choice = {
            name: int(np.argmin([cost[by] for cost in losses])) if losses else 0
            for name, by in criteria.items()
        }
        most = method.most if isinstance(method, Peer) else scored_count
        first = jax.tree.map(lambda leaf: leaf[:most], streams)
        chosen = sorted(set(choice.values()))
        scored = cells.each(lambda index: trial(method, index, SCORED, first, part), chosen)
        return TuningResult(method, losses, choice, dict(zip(chosen, scored, strict=True)))

    return cells.each(judge, range(len(methods)))
