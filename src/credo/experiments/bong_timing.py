"""What a step of every cell of the grid costs, against P, R, M, I and C, beside the exponents of the theory.

A network with one hidden layer of 8 units and C outputs classifies one row; P grows with its inputs. A
cell's step is compiled once per size. In each of five rounds the sizes are called in turn; a round's time of
a size is its least, and the exponent is the slope of log time against log size over the largest sizes, its
standard error that of the rounds' slopes. On a CPU the time is the processor's, which other programs that
wait for the same core do not lengthen. Where arrays outgrow a cache, time grows faster than work, so the
exponent of the operations that the compiler counts stands beside it. Source of the table: Jones, Chang &
Murphy 2024 (BONG, arXiv 2405.19681), complexities per step, as rederived in docs/explanation/rules.md.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.experiments.cells import Cells
from credo.experiments.records import Outcome, Progress, Row, Size, mean_se

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["AXES", "Point", "compiled", "expected", "measure", "run", "slope"]

RULES = ("bong", "blr", "bog", "bbb")
CURVATURES = ("lin-hess", "lin-ef", "mc-ef", "mc-hess")
FAMILIES = ("full", "diagonal", "low-rank")
AXES = ("P", "R", "M", "I", "C")
_HIDDEN, _ROUNDS = 8, 5


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
    stacked = full and point.rule == "blr" and not hessian  # its rows gather: I k P^2 + I^2 k^2 P
    if axis == "I":
        return 2 if stacked else 1
    if axis == "C" and point.curvature == "lin-ef":
        return 0  # one row, however many outputs
    if axis == "M" and hessian:
        return 1
    # BOG and BBB on a diagonal square M rows elementwise; C rows meet in J S J', for the log evidence
    apart = point.family == "diagonal" and point.rule in ("bog", "bbb") and axis == "M"
    return 2 if stacked or not (full or apart) else 1


def network(params: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    """One hidden layer of 8 units."""
    return params["out"] @ jnp.tanh(params["in"] @ x + params["bias"])


def compiled(point: Point) -> tuple[Callable[[], Any], float]:
    """One update of a cell, compiled and called once, which waits for its result; and its operations.

    The operations are those that the compiler counts: the body of a loop once, calls of LAPACK not at all.

    Args:
        point: the cell and its sizes; P must exceed 8 C + 8, the network's parameters without its inputs.
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
        "mc-ef": credo.MonteCarloEmpiricalFisher(point.M),
        "mc-hess": credo.MonteCarloHessian(point.M),
    }.get(point.curvature, point.curvature)
    options = {"iterations": point.I} if point.rule in ("blr", "bbb") else {}
    learner = getattr(credo, point.rule)(model, family[point.family], curvature, **options)
    belief = learner.init(params, var=0.1)
    x = jax.random.normal(keys[2], (inputs,), jnp.float32)
    args = (belief, x, jnp.asarray(0))

    def step(belief: Any, x: jax.Array, y: jax.Array) -> Any:
        return learner.update(belief, x, y, key=jax.random.key(1))

    program = jax.jit(step).lower(*args).compile()

    def call() -> Any:
        return jax.block_until_ready(program(*args))

    call()
    return call, (program.cost_analysis() or {}).get("flops", float("nan"))


def measure(points: list[Point], budget: float) -> dict[str, np.ndarray]:
    """The times of one update (5, n) of n points in five rounds, and the operations (n,) of each.

    Args:
        points: what to time; they take turns.
        budget: seconds to spend on the calls of each (at least one a round is made); a round's time is the
            least of its calls.
    """
    now = time.process_time if jax.default_backend() == "cpu" else time.perf_counter
    made = [compiled(point) for point in points]
    times = np.full((_ROUNDS, len(points)), np.inf)
    for least, (k, (call, _)) in itertools.product(times, enumerate(made)):
        began = now()
        while np.isinf(least[k]) or now() - began < budget / _ROUNDS:
            start = now()
            call()
            least[k] = min(least[k], now() - start)
    return {"seconds": times, "operations": np.array([count for _, count in made])}


def _cells(size: Size) -> Iterator[Point]:
    curvatures = CURVATURES if size == "full" else CURVATURES[:1]
    for family, curvature, rule in itertools.product(FAMILIES, curvatures, RULES):
        yield Point(rule, curvature, family)


def _sweeps(size: Size) -> Iterator[tuple[str, list[Point]]]:
    """Axes and the points along them; other sizes are small, so that the axis decides what a step costs."""
    for point in _cells(size):
        full, sampled = point.family == "full", point.curvature.startswith("mc")
        if size == "quick":
            yield "P", [replace(point, P=n) for n in ((128, 512) if full else (4096, 32768))]
            continue
        heavy = point.curvature == "mc-hess"
        cubic = full and (heavy or point.rule == "bbb")
        wide = (10_000, 30_000, 100_000) if heavy else (10_000, 100_000, 1_000_000)
        yield "P", [replace(point, P=n, I=2) for n in ((256, 512, 1024) if full else wide)]
        base = replace(point, P=256 if cubic else 1024 if full else 10_000 if heavy else 30_000, R=4, M=4)
        small = replace(base, P=4096, I=2) if point.family == "diagonal" else replace(base, I=2)
        if point.family == "low-rank":
            yield "R", [replace(base, R=n, I=2) for n in (24, 96)]
        if sampled:
            yield "M", [replace(small, M=n) for n in (32, 128)]
        if point.rule in ("blr", "bbb"):
            yield "I", [replace(base, I=n) for n in (4, 16)]
        if not sampled:
            yield "C", [replace(small, P=max(small.P, 1024), C=n) for n in (16, 64)]


def slope(sizes: Any, times: Any) -> float:
    """The slope of log time against log size over the upper half of the sizes, at least two.

    >>> round(slope([1, 10, 100], [5.0, 1.0, 100.0]), 6)
    2.0
    """
    n = max(2, (len(sizes) + 1) // 2)
    return float(np.polyfit(np.log(sizes[-n:]), np.log(times[-n:]), 1)[0])


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Time every cell; see the module.

    Args:
        size: "quick" times LIN-HESS against two values of P; "full" all 48 cells against P (to 10^6; MC-HESS
            to 10^5, full covariances to 1,024), R, M, I and C, as far as the cell has them.
        seed: of no effect on times; part of what a finished measurement is kept under.
        progress: told after each sweep.
        cells: where finished measurements are kept.
    """
    kept = Cells() if cells is None else cells
    budget = 0.1 if size == "quick" else 0.25
    sweeps = list(_sweeps(size))
    rows, columns = [], []
    for k, (axis, points) in enumerate(sweeps):
        cell = points[0].cell
        progress(k / len(sweeps), f"{cell} against {axis}")
        settings = {"points": [asdict(point) for point in points], "seed": seed, "budget": budget}
        found = kept.get(f"{cell} {axis}", settings, functools.partial(measure, points, budget))
        rounds, counts = found["seconds"], found["operations"]
        times = rounds.min(axis=0)
        sizes = [getattr(point, axis) for point in points]
        note = f"{times[-1] * 1e3:.3g} ms at {axis} = {sizes[-1]:,}"
        if axis != "I":
            note += f"; exponent of the operations {slope(sizes, counts):.2f}"
        se = mean_se([slope(sizes, each) for each in rounds])[1]
        bound = f"≤ {expected(points[0], axis)}"
        rows.append(Row(f"{cell}: exponent of {axis}", slope(sizes, times), se, bound, None, note))
        columns += [(axis, p.cell, s, t) for p, s, t in zip(points, sizes, times, strict=True)]
    names = sorted({c[1] for c in columns})
    series = {
        "axis": np.array([AXES.index(c[0]) for c in columns]),
        "cell": np.array([names.index(c[1]) for c in columns]),
        "size": np.array([c[2] for c in columns]),
        "seconds": np.array([c[3] for c in columns]),
    }
    arrays = {"cells": np.array(names), "axes": np.array(AXES)}
    settings = {
        "base": asdict(Point("", "", "")),
        "hidden": _HIDDEN,
        "seconds of calls a point": budget,
        "rounds": _ROUNDS,
    }
    from credo.experiments.bong_timing_figure import draw

    def figure() -> Figure:
        return draw(series, names)

    return Outcome(tuple(rows), settings, {"keys": "0 and 1, of no effect on times"}, series, arrays, figure)
