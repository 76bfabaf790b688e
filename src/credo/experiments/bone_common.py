"""What the BONE experiments have in common: tune every method on some streams, score it on others.

A `Plan` says which world, which learner of one regime, which methods with which grids, and what was
published. Every method takes the values of its grid that do best on the tuning streams, for labels once by
accuracy (and is scored by it) and once by log score (and is scored by that); the scored streams are seen by
the chosen values only. `bone_table.run_plan` puts it in a table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from credo.experiments.bone_peers import Peer
from credo.experiments.bone_streams import SCORED, TUNING, Streams, make_streams
from credo.experiments.cells import Arrays, Cells
from credo.experiments.records import Progress, Size
from credo.experiments.sweep import Build, Setting, portion, sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["VERSION", "Method", "Plan", "Tuned", "costs", "grid", "measures", "tune_and_score"]

SEEDS = {"quick": (5, 10), "full": (20, 60)}  # how many streams are for tuning, and how many are scored
VERSION = 2  # of the code behind the kept cells


@dataclass(frozen=True)
class Method:
    """A line of the table.

    Args:
        label: Its name, with the code of BONE.
        program: See `bone_methods.make`.
        grid: The values to choose from, at least one.
        published: The published number of the first measure.
        note: What a reader must know, such as what was measured before.
        quick: Whether it is part of the quick size, where compilation counts.
        adaptive: Whether it may be chosen as the best adaptive method.
    """

    label: str
    program: Mapping[str, Any]
    grid: Sequence[Mapping[str, float]]
    published: float | str | None = None
    note: str = ""
    quick: bool = False
    adaptive: bool = True


@dataclass(frozen=True)
class Plan:
    """An experiment of this kind.

    Args:
        name: Of the experiment.
        title: Of its figure.
        draw: One stream, from a generator of random numbers.
        build: See `sweep.Build`.
        methods: The lines of the table.
        world: The world in words and numbers, for the settings.
        binary: Whether y is 0 or 1: accuracy is measured, otherwise the RMSE to the true mean.
        criterion: What tuning minimises where y is a number: "nll", or "mae" (the mean absolute error to y).
        to_observation: Whether the RMSE is to y instead of to its true mean.
        within: In how many steps a change must be reported to count as found.
        peers: Other people's methods.
        target: What was measured before with the best adaptive method, in words.
        seeds: How many streams are for tuning, and how many are scored, at each size.
        figure: Draws `(plan, series, arrays)`; None for the common figure.
    """

    name: str
    title: str
    draw: Callable[[np.random.Generator], Streams]
    build: Build
    methods: Sequence[Method]
    world: Mapping[str, Any]
    binary: bool = False
    criterion: str = "nll"
    to_observation: bool = False
    within: int = 20
    peers: Sequence[Peer] = ()
    target: str = ""
    seeds: Mapping[str, tuple[int, int]] = field(default_factory=lambda: SEEDS)
    figure: Callable[[Plan, Mapping[str, Any], Mapping[str, Any]], Figure] | None = None

    @property
    def criteria(self) -> dict[str, str]:
        """Each measure, the main one first, and the cost by which values are chosen for it."""
        if self.binary:
            return {"accuracy": "error", "NLL": "nll"}
        return {"RMSE": self.criterion, "NLL": self.criterion}

    @property
    def main(self) -> str:
        """The measure that is published."""
        return next(iter(self.criteria))


@dataclass(frozen=True)
class Tuned:
    """A method after tuning.

    Args:
        method: What was tuned.
        costs: Of each of its grid, on the tuning streams; empty for a peer without a choice.
        chosen: For each measure, which of the grid.
        results: For each of those, what it gave on the scored streams.
    """

    method: Method | Peer
    costs: Sequence[Mapping[str, float]]
    chosen: Mapping[str, int]
    results: Mapping[int, Arrays]

    def result(self, measure: str) -> Arrays:
        """What the values that were chosen for a measure gave."""
        return self.results[self.chosen[measure]]

    def values(self, measure: str) -> Mapping[str, float]:
        """The values that were chosen for a measure."""
        return self.method.grid[self.chosen[measure]]


def grid(**values: Sequence[float] | float) -> list[dict[str, float]]:
    """All combinations.

    >>> grid(hazard=(0.1, 0.2), var=1.0)
    [{'hazard': 0.1, 'var': 1.0}, {'hazard': 0.2, 'var': 1.0}]
    """
    columns = [np.atleast_1d(np.asarray(value, float)).tolist() for value in values.values()]
    return [dict(zip(values, row, strict=True)) for row in product(*columns)]


def costs(result: Arrays, streams: Streams) -> dict[str, float]:
    """What tuning minimises: the share of wrong labels, the mean absolute error to y, and the NLL in nats
    where there is one. A method that failed anywhere costs 1e30.
    """
    mean = result["mean"].astype(np.float64)
    found = {"error": np.mean((mean > 0.5) != (streams.y > 0.5)), "mae": np.mean(np.abs(mean - streams.y))}
    if "log_prob" in result:
        found["nll"] = -result["log_prob"].mean(dtype=np.float64)
    sound = np.isfinite(mean).all() and np.isfinite(found.get("nll", 0.0))
    return {name: float(value) if sound else 1e30 for name, value in found.items()}


def measures(plan: Plan, result: Arrays, streams: Streams) -> dict[str, np.ndarray]:
    """One number a stream: RMSE to the true mean, or accuracy; and the NLL in nats where there is one."""
    mean = result["mean"].astype(np.float64)
    streams = jax.tree.map(lambda leaf: leaf[: len(mean)], streams)
    if plan.binary:
        made = {"accuracy": np.mean((mean > 0.5) == (streams.y > 0.5), axis=1)}
    else:
        goal = streams.y if plan.to_observation else streams.truth
        made = {"RMSE": np.sqrt(np.mean((mean - goal) ** 2, axis=1))}
    if "log_prob" in result:
        made["NLL"] = -result["log_prob"].mean(axis=1, dtype=np.float64)
    return made


@dataclass(frozen=True)
class _Trial:
    """Runs one of the grid of a method, or of a peer, on streams; finished parts are kept in `cells`."""

    plan: Plan
    seed: int
    chunk: int
    cells: Cells

    def __call__(
        self, method: Method | Peer, index: int, purpose: int, streams: Streams, progress: Progress
    ) -> Arrays:
        plan, values = self.plan, dict(method.grid[index])
        given: dict[str, Any] = {"seed": self.seed, "purpose": purpose, "version": VERSION}
        given["world"] = dict(plan.world)
        if isinstance(method, Peer):
            given |= {"values": values, "streams": len(streams.y)}
            return self.cells.get(
                f"{plan.name}-{method.label}",
                given,
                lambda: {"mean": method.predict(streams, values, plan.binary)},
            )
        setting = Setting(f"{method.label} {index}", method.program, values)
        more: dict[str, Any] = {"given": given, "chunk": self.chunk, "cells": self.cells}
        return sweep(plan.name, [setting], plan.build, streams, **more, progress=progress)[setting.name]


def tune_and_score(plan: Plan, size: Size, seed: int, progress: Progress, cells: Cells) -> list[Tuned]:
    """Every method and peer, tuned on the tuning streams and run on the scored ones."""
    tuning_count, scored_count = plan.seeds[size]
    tuning = make_streams(plan.draw, seed, TUNING, tuning_count)
    scored = make_streams(plan.draw, seed, SCORED, scored_count)
    run = _Trial(plan, seed, tuning_count, cells)
    every: list[Method | Peer] = [*plan.methods, *(peer for peer in plan.peers if peer.available())]
    every = [method for method in every if size == "full" or method.quick]
    done: list[Tuned] = []
    for number, method in enumerate(every):
        told = portion(progress, number / len(every), (number + 1) / len(every))
        told(0.0, method.label)
        peer = isinstance(method, Peer)
        tried = []
        if not peer or len(method.grid) > 1:
            tried = [
                costs(run(method, index, TUNING, tuning, told), tuning) for index in range(len(method.grid))
            ]
        names = {plan.main: "error" if plan.binary else "mae"} if peer else plan.criteria
        chosen = {
            name: int(np.argmin([cost[by] for cost in tried])) if tried else 0 for name, by in names.items()
        }
        most = method.most if isinstance(method, Peer) else scored_count
        some = jax.tree.map(lambda leaf, most=most: leaf[:most], scored)
        results = {index: run(method, index, SCORED, some, told) for index in set(chosen.values())}
        done.append(Tuned(method, tried, chosen, results))
    return done
