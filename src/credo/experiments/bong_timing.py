"""What a step of every cell of the grid costs, against P, R, M, I and C, beside the exponents of the theory.

A network with one hidden layer of 8 units and C outputs classifies one row; P grows with its inputs. A
cell's step is compiled once per size; its time is the least of several calls, and the exponent is the slope
of log time against log size over the largest sizes. Source of the table: Jones, Chang & Murphy 2024 (BONG,
arXiv 2405.19681), complexities per step, as rederived in docs/explanation/rules.md.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.experiments.cells import Cells
from credo.experiments.records import Outcome, Progress, Row, Size

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["AXES", "Point", "expected", "run", "seconds"]

RULES = ("bong", "blr", "bog", "bbb")
CURVATURES = ("lin-hess", "lin-ef", "mc-ef", "mc-hess")
FAMILIES = ("full", "diagonal", "low-rank")
AXES = ("P", "R", "M", "I", "C")
_HIDDEN = 8


@dataclass(frozen=True)
class Point:
    """A cell and its sizes.

    Args:
        rule, curvature, family: the cell.
        P: parameters (the network has the nearest number at or below).
        R: rank of a low-rank family.
        M: draws of a Monte Carlo curvature.
        I: inner iterations of BLR and BBB.
        C: outputs.
    """

    rule: str
    curvature: str
    family: str
    P: int = 4096
    R: int = 10
    M: int = 16
    I: int = 4
    C: int = 4

    @property
    def cell(self) -> str:
        """Its name."""
        return f"{self.rule} {self.curvature} {self.family}"


def expected(point: Point, axis: str) -> int:
    """The exponent that theory gives the most expensive term, an upper bound for what is measured.

    Args:
        point: the cell.
        axis: one of `AXES`.
    """
    full, hessian = point.family == "full", point.curvature == "mc-hess"
    if axis == "P":
        # a P x P Hessian is decomposed, and BBB's precision leaves its prior by a matrix of full rank
        return 3 if full and (hessian or point.rule == "bbb") else 2 if full else 1
    if axis == "R":
        return 2
    if axis == "I":
        return 2 if full and point.rule == "blr" else 1  # its rows gather: I k P^2 + I^2 k^2 P
    wide = point.rule in ("bong", "blr") or point.family == "low-rank"
    if axis == "M":
        return 1 if hessian or full or not wide else 2
    return 1 if full or not wide else 2


def network(params: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    """One hidden layer of 8 units."""
    return params["out"] @ jnp.tanh(params["in"] @ x + params["bias"])


def seconds(point: Point, budget: float) -> float:
    """The time of one update, compiled, in seconds: the least of the calls that fit in the budget.

    Args:
        point: what to time.
        budget: seconds to spend on calls (at least two are made).
    """
    inputs = max(1, (point.P - _HIDDEN - _HIDDEN * point.C) // _HIDDEN)
    keys = jax.random.split(jax.random.key(0), 3)
    params = {
        "in": jax.random.normal(keys[0], (_HIDDEN, inputs), jnp.float32) / inputs**0.5,
        "bias": jnp.zeros(_HIDDEN, jnp.float32),
        "out": jax.random.normal(keys[1], (point.C, _HIDDEN), jnp.float32) / _HIDDEN**0.5,
    }
    model = credo.Model(network, credo.Categorical(point.C))
    family: Any = {"full": credo.Full(), "diagonal": credo.Diagonal(), "low-rank": credo.LowRank(point.R)}
    curvature: Any = {
        "mc-ef": credo.MonteCarloFisher(point.M),
        "mc-hess": credo.MonteCarloHessian(point.M),
    }.get(point.curvature, point.curvature)
    options = {"iterations": point.I} if point.rule in ("blr", "bbb") else {}
    learner = getattr(credo, point.rule)(model, family[point.family], curvature, **options)
    belief = learner.init(params, var=0.1)
    x = jax.random.normal(keys[2], (inputs,), jnp.float32)
    args = (belief, x, jnp.asarray(0))

    def step(belief: Any, x: jax.Array, y: jax.Array) -> Any:
        return learner.update(belief, x, y, key=jax.random.key(1))

    compiled = jax.jit(step).lower(*args).compile()
    jax.block_until_ready(compiled(*args))
    best, spent, calls = float("inf"), 0.0, 0
    while calls < 2 or spent < budget:
        start = time.perf_counter()
        jax.block_until_ready(compiled(*args))
        best = min(best, taken := time.perf_counter() - start)
        spent, calls = spent + taken, calls + 1
    return best


def _cells(size: Size) -> Iterator[Point]:
    curvatures = CURVATURES if size == "full" else CURVATURES[:1]
    for family, curvature, rule in itertools.product(FAMILIES, curvatures, RULES):
        yield Point(rule, curvature, family)


def _sweeps(size: Size) -> Iterator[tuple[str, list[Point]]]:
    """Axes and the points along them."""
    for point in _cells(size):
        full, sampled = point.family == "full", point.curvature.startswith("mc")
        heavy = point.curvature == "mc-hess" or (sampled and point.rule in ("blr", "bbb"))
        if size == "quick":
            yield "P", [replace(point, P=n) for n in ((128, 512) if full else (4096, 32768))]
            continue
        wide = (10_000, 30_000, 100_000) if heavy else (10_000, 100_000, 1_000_000)
        yield "P", [replace(point, P=n) for n in ((128, 256, 512, 1024) if full else wide)]
        base = replace(point, P=512 if full else 10_000 if heavy else 30_000)
        if point.family == "low-rank":
            yield "R", [replace(base, R=n) for n in (10, 40, 160)]
        if sampled:
            yield "M", [replace(base, M=n) for n in (8, 32, 128)]
        if point.rule in ("blr", "bbb"):
            yield "I", [replace(base, I=n) for n in (2, 8, 32)]
        if point.curvature == "lin-hess":
            yield "C", [replace(base, C=n) for n in (4, 16, 64)]


def slope(sizes: Any, times: Any) -> float:
    """The slope of log time against log size over the upper half of the sizes, at least two.

    >>> round(slope([1, 10, 100], [5.0, 1.0, 100.0]), 6)
    2.0
    """
    n = max(2, (len(sizes) + 1) // 2)
    return float(np.polyfit(np.log(sizes[-n:]), np.log(times[-n:]), 1)[0])


def _timed(point: Point, budget: float) -> dict[str, np.ndarray]:
    return {"s": np.array(seconds(point, budget))}


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Time every cell; see the module.

    Args:
        size: "quick" times LIN-HESS against two values of P; "full" all 48 cells against P (to 10^6), R, M, I
            and C.
        seed: of no effect on times; part of what a finished measurement is kept under.
        progress: told after each sweep.
        cells: where finished measurements are kept.
    """
    kept = Cells() if cells is None else cells
    budget = 0.1 if size == "quick" else 0.5
    sweeps = list(_sweeps(size))
    rows, columns = [], []
    for k, (axis, points) in enumerate(sweeps):
        progress(k / len(sweeps), f"{points[0].cell} against {axis}")
        times = []
        for point in points:
            settings = {**asdict(point), "seed": seed, "budget": budget}
            timed = functools.partial(_timed, point, budget)
            found = kept.get(f"{point.cell} {axis}", settings, timed)
            times.append(float(found["s"]))
        sizes = [getattr(point, axis) for point in points]
        note = f"{times[-1] * 1e3:.3g} ms at {axis} = {sizes[-1]:,}"
        bound = expected(points[0], axis)
        rows.append(
            Row(f"{points[0].cell}: exponent of {axis}", slope(sizes, times), None, f"≤ {bound}", None, note)
        )
        columns += [(axis, p.cell, s, t) for p, s, t in zip(points, sizes, times, strict=True)]
    names = sorted({c[1] for c in columns})
    series = {
        "axis": np.array([AXES.index(c[0]) for c in columns]),
        "cell": np.array([names.index(c[1]) for c in columns]),
        "size": np.array([c[2] for c in columns]),
        "seconds": np.array([c[3] for c in columns]),
    }
    arrays = {"cells": np.array(names), "axes": np.array(AXES)}
    settings = {"base": asdict(Point("", "", "")), "hidden": _HIDDEN, "seconds of calls a point": budget}
    from credo.experiments.bong_timing_figure import draw

    def figure() -> Figure:
        return draw(series, names)

    return Outcome(tuple(rows), settings, {"keys": "0 and 1, of no effect on times"}, series, arrays, figure)
