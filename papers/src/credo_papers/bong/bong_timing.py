"""The cost of a step of every cell of the grid, against P, R, M, I and C, beside the exponents of the theory.

A network with one hidden layer of 8 units and C outputs classifies one row; P grows with its inputs. The step
of a cell is compiled once for each size. In each of five rounds the sizes are called in turn, and the time of
a size is the least of its round. The exponent is the slope of log time against log size over the largest
sizes, and its standard error is that of the slopes of the rounds. On a CPU the time is the processor's, which
other programs that wait for the same core do not lengthen. If arrays outgrow a cache, time grows faster
than work, so the exponent of the operations that the compiler counts stands beside it. Source of the table:
Jones, Chang & Murphy 2024 (BONG, arXiv 2405.19681), complexities per step, as derived again in
docs/explanation/rules.md.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Sequence
from dataclasses import asdict

import jax
import numpy as np

from credo_papers.bong.bong_timing_figure import draw
from credo_papers.bong.bong_timing_learner import compiled
from credo_papers.bong.bong_timing_plan import AXES, BASE, HIDDEN, ROUNDS, Point, expected, sweeps
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.plain_data import Arrays, Json
from credo_papers.engine.portions import Progress
from credo_papers.engine.quantities import Row, mean_se

__all__ = ["measure", "run", "slope"]


def measure(points: Sequence[Point], budget: float) -> Arrays:
    """Return the `seconds` of an update (5, n) of n points in five rounds, and the `operations` (n,) of each.

    Arguments:
        points: what to time; they take turns.
        budget: seconds to spend on the calls of each (at least one a round is made); a round's time is the
            least of its calls.
    """
    now = time.process_time if jax.default_backend() == "cpu" else time.perf_counter
    updates = [compiled(point) for point in points]
    times = np.full((ROUNDS, len(points)), np.inf)
    for least, (k, (call, _)) in itertools.product(times, enumerate(updates)):
        began = now()
        while np.isinf(least[k]) or now() - began < budget / ROUNDS:
            start = now()
            call()
            least[k] = min(least[k], now() - start)
    return {"seconds": times, "operations": np.array([count for _, count in updates])}


def slope(sizes: Sequence[int], times: Sequence[float] | np.ndarray) -> float:
    """Return the slope of log time against log size over the upper half of the sizes, at least two.

    Arguments:
        sizes, times: of equal length, at least 2.

    Example:
        >>> round(slope([1, 10, 100], [5.0, 1.0, 100.0]), 6)
        2.0
    """
    n = max(2, (len(sizes) + 1) // 2)
    return float(np.polyfit(np.log(sizes[-n:]), np.log(times[-n:]), 1)[0])


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Time every cell; the seed does not affect times, but finished measurements are kept under it."""
    cells = Cells() if cells is None else cells
    budget = 0.1 if size == "quick" else 0.25
    plan = list(sweeps(size))
    rows = []
    columns = []
    for k, (axis, points) in enumerate(plan):
        cell = points[0].cell
        progress(k / len(plan), f"{cell} against {axis}")
        description = {"points": [asdict(point) for point in points], "seed": seed, "budget": budget}
        times = cells.get(
            f"{cell} {axis}", description, functools.partial(measure, points, budget), here=True
        )
        rounds = times["seconds"]
        counts = times["operations"]
        least = rounds.min(axis=0)
        sizes = [getattr(point, axis) for point in points]
        note = f"{least[-1] * 1e3:.3g} ms at {axis} = {sizes[-1]:,}"
        if axis != "I":
            note += f"; exponent of the operations {slope(sizes, counts):.2f}"
        se = mean_se([slope(sizes, each) for each in rounds])[1]
        bound = f"≤ {expected(points[0], axis)}"
        rows.append(Row(f"{cell}: exponent of {axis}", slope(sizes, least), se, bound, None, note))
        columns += [(axis, p.cell, s, t) for p, s, t in zip(points, sizes, least, strict=True)]
    names = sorted({column[1] for column in columns})
    series = {
        "axis": np.array([AXES.index(column[0]) for column in columns]),
        "cell": np.array([names.index(column[1]) for column in columns]),
        "size": np.array([column[2] for column in columns]),
        "seconds": np.array([column[3] for column in columns]),
    }
    arrays = {"cells": np.array(names), "axes": np.array(AXES)}
    settings: dict[str, Json] = {
        "base": BASE,
        "hidden": HIDDEN,
        "seconds of calls a point": budget,
        "rounds": ROUNDS,
    }
    seeds = {"keys": "0 and 1, of no effect on times"}
    figure = functools.partial(draw, series, names)
    return Outcome(tuple(rows), settings, seeds, series, arrays, figure)
