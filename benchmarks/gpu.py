"""Times on a GPU, or on any other device of JAX: large beliefs, and many small ones at once.

    python benchmarks/gpu.py                        # P = 10^4 to 10^8, on JAX's first device
    python benchmarks/gpu.py --small                # P = 10^3 and 10^4, and small sets: a minute on a CPU
    python benchmarks/gpu.py --only low-rank --bandwidth 3350
    python benchmarks/gpu.py --out table.md

A case is a compiled stream of rows, taken several times; what counts is the median of the wall clock for a
row. `MB a row` is what a step must move, the belief read once and written once, and `share` what of the
device's bandwidth the step reaches with that: of the one given by `--bandwidth` in GB a second, or of the one
that copies of a large array reach. `off` is how far the end of the stream is from its end on a CPU, where the
same rows are learned by the program for a CPU: the largest difference of a mean or a variance over the
largest size. It should be below 1e-5, and is more where rounding lets one particle be drawn for another.
Beyond P = 10^7 the CPU is left out. A case that cannot run says why.
Results are printed as a table in Markdown, and progress on standard error.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from ours import linear

import credo
from credo.covariances import Family

INPUTS = 784
OUTPUTS = 10
AGREES = 1e-5
"""How far a stream may end from its end on a CPU."""

HEAD = [
    "| case | P | us a row | MB a row | GB/s | share | compile s | off | agrees |",
    "|---|--:|--:|--:|--:|--:|--:|--:|---|",
]
"""The first lines of the table."""


class Stream(NamedTuple):
    """What a case runs: a function of a belief and of rows, and what is read of the belief at its end.

    Attributes:
        run: the compiled stream; it gives the belief at the end.
        belief: the belief at the start.
        rows: the rows, as arrays whose first axis is time.
        read: numbers by which the ends on two devices are compared.
    """

    run: Callable[..., Any]
    belief: Any
    rows: tuple[Any, ...]
    read: Callable[[Any], list[Any]]


class Case(NamedTuple):
    """A line of the table: its name, its number of parameters, and how it is built."""

    name: str
    size: int
    build: Callable[[], Stream]


class Plan(NamedTuple):
    """The sizes of a run."""

    widths: tuple[int, ...] = (13, 126, 1257, 12_578, 125_786)
    inputs: int = INPUTS
    learners: int = 64
    particles: int = 1024
    seeds: int = 64
    rows: int = 20
    turns: int = 5
    compared: int = 20_000_000
    copied: int = 2**28


SMALL = Plan(widths=(13, 130), inputs=64, learners=8, particles=64, seeds=4, rows=5, turns=2, copied=2**26)

Cases: TypeAlias = Iterator[Case]


def _run(learner: Any) -> Callable[..., Any]:
    """The stream of a learner as one program."""
    return jax.jit(lambda belief, xs, ys: credo.run(learner, belief, xs, ys)[0])


def _network(family: Family, width: int, plan: Plan) -> Stream:
    rng = np.random.default_rng(0)
    net = credo.MLP(OUTPUTS, (width,))
    learner = credo.bong(credo.Model(net, credo.Categorical(OUTPUTS)), family)
    xs = rng.normal(size=(plan.rows, plan.inputs)).astype(np.float32)
    ys = rng.integers(0, OUTPUTS, plan.rows)
    belief = learner.init(net.init(0, (plan.inputs,)), var=0.01)
    return Stream(
        _run(learner), belief, (jnp.asarray(xs), jnp.asarray(ys)), lambda end: [end.mean, end.cov.diag()]
    )


def networks(name: str, family: Family, plan: Plan) -> Cases:
    """Classifiers with one hidden layer, of more and more parameters."""
    for width in plan.widths:
        size = (plan.inputs + 1) * width + (width + 1) * OUTPUTS
        yield Case(name, size, functools.partial(_network, family, width, plan))


def _regression(rows: int, inputs: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    xs = rng.normal(size=(rows, inputs)).astype(np.float32)
    ys = (xs @ rng.normal(size=inputs) + rng.normal(size=rows)).astype(np.float32)
    return jnp.asarray(xs), jnp.asarray(ys)


def bank(plan: Plan) -> Cases:
    """Full covariances of 100 weights under random walks of different speeds, mixed by their evidence."""

    def build() -> Stream:
        model = credo.Model(linear, credo.Normal(1.0))
        speeds = np.geomspace(1e-8, 1e-2, plan.learners)
        members = [credo.extended_kalman(model, dynamics=credo.RandomWalk(float(speed))) for speed in speeds]
        learner = credo.Experts(members)
        rows = _regression(10 * plan.rows, 100)

        def read(end: Any) -> list[Any]:
            distribution = learner.forecast(end, rows[0][0])
            return [distribution.mean, distribution.var]

        return Stream(_run(learner), learner.init(jnp.zeros(100, jnp.float32)), rows, read)

    yield Case(f"a bank of {plan.learners} learners", 100 * plan.learners, build)


def particles(plan: Plan) -> Cases:
    """A particle filter for ten numbers that walk, seen through a linear function."""

    def build() -> Stream:
        model = credo.Model(linear, credo.Normal(1.0))
        learner = credo.particle_filter(model, plan.particles, credo.RandomWalk(1e-2))
        rows = _regression(10 * plan.rows, 10)
        run = jax.jit(lambda belief, xs, ys: credo.run(learner, belief, xs, ys, key=2)[0])

        def read(end: Any) -> list[Any]:
            distribution = learner.forecast(end, rows[0][0])
            return [distribution.mean, distribution.var]

        return Stream(run, learner.init(jnp.zeros(10, jnp.float32), key=0), rows, read)

    yield Case(f"{plan.particles:,} particles", 10 * plan.particles, build)


def seeds(plan: Plan) -> Cases:
    """Logistic regressions of 100 weights by the curvature of draws, one for each of several keys."""

    def build() -> Stream:
        learner = credo.bong(credo.Model(linear, credo.Bernoulli()), credo.Full(), "mc-ef")
        xs, ys = _regression(10 * plan.rows, 100)
        keys = jax.random.split(jax.random.key(0), plan.seeds)

        def one(belief: Any, key: Any, xs: Any, ys: Any) -> Any:
            return credo.run(learner, belief, 0.1 * xs, ys, key=key)[0]

        run = jax.jit(lambda beliefs, xs, ys: jax.vmap(one, (0, 0, None, None))(beliefs, keys, xs, ys))
        start = learner.init(jnp.zeros(100, jnp.float32))
        beliefs = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (plan.seeds, *jnp.shape(leaf))), start)
        return Stream(run, beliefs, (xs, (ys > 0).astype(jnp.int32)), lambda end: [end.mean])

    yield Case(f"{plan.seeds} seeds under vmap", 100 * plan.seeds, build)


GROUPS: dict[str, Callable[[Plan], Cases]] = {
    "low-rank": lambda plan: networks("low rank 10", credo.LowRank(10), plan),
    "diagonal": lambda plan: networks("diagonal", credo.Diagonal(), plan),
    "bank": bank,
    "particles": particles,
    "seeds": seeds,
}


def bandwidth(size: int) -> float:
    """The bytes a second that the default device copies, read and written, for an array of so many bytes."""
    source = jnp.ones(size // 4, jnp.float32)
    copy = jax.jit(lambda values, one: values * one)
    took = [_seconds(lambda: copy(source, jnp.float32(1.0))) for _ in range(6)]
    return 2 * source.nbytes / min(took[1:])


def _seconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - started


def _end(case: Case, device: Any) -> list[np.ndarray]:
    """What a stream says at its end on a device, in the program for that device."""
    with jax.default_device(device):
        stream = case.build()
        end = stream.run(stream.belief, *stream.rows)
        return [np.asarray(values, np.float64) for values in stream.read(end)]


def off(one: list[np.ndarray], other: list[np.ndarray]) -> float:
    """The largest difference of two lists of arrays, each over the largest size in the second."""
    pairs = zip(one, other, strict=True)
    return max(float(np.max(np.abs(a - b)) / max(float(np.max(np.abs(b))), 1e-30)) for a, b in pairs)


def line(case: Case, plan: Plan, peak: float) -> str:
    """A line of the table: what one case takes on the default device."""
    start = f"| {case.name} | {case.size:,} |"
    try:
        stream = case.build()

        def call() -> Any:
            return stream.run(stream.belief, *stream.rows)

        first = _seconds(call)
        took = statistics.median(_seconds(call) for _ in range(plan.turns))
        row = took / len(stream.rows[0])
        moved = 2 * sum(leaf.nbytes for leaf in jax.tree.leaves(stream.belief) if hasattr(leaf, "nbytes"))
        text = f"{start} {1e6 * row:,.1f} | {moved / 1e6:,.3f} | {moved / row / 1e9:,.2f} |"
        text += f" {moved / row / peak:.1%} | {first - took:.1f} |"
        if case.size > plan.compared:
            return f"{text} | |"
        here = [np.asarray(values, np.float64) for values in stream.read(call())]
        gap = off(here, _end(case, jax.devices("cpu")[0]))
        return f"{text} {gap:.1e} | {'yes' if gap <= AGREES else 'no'} |"
    except Exception as error:  # a size that the device cannot hold is a result, too
        return f"{start} cannot run: {type(error).__name__}: {str(error).splitlines()[0][:90]} | | | | | | |"


def table(plan: Plan, names: list[str], peak: float | None = None) -> list[str]:
    """The lines of the table, after one that names the device."""
    device = jax.devices()[0]
    reached = bandwidth(plan.copied)
    words = f"{device.device_kind} ({device.platform}), JAX {jax.__version__}, credo {credo.__version__}"
    words += f"; copies reach {reached / 1e9:,.0f} GB/s"
    words += "." if peak is None else f", {peak / 1e9:,.0f} are given."
    lines = [words, "", *HEAD]
    for name in names:
        for case in GROUPS[name](plan):
            print(f"{case.name}, {case.size:,} parameters", file=sys.stderr, flush=True)
            lines.append(line(case, plan, peak or reached))
            jax.clear_caches()  # programs, and the arrays that they hold
    return lines


def main() -> None:
    """Run the cases, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="small sizes")
    parser.add_argument("--only", choices=list(GROUPS), action="append")
    parser.add_argument("--bandwidth", type=float, help="what the device's memory moves, in GB a second")
    parser.add_argument("--out", type=Path, help="a file for the table")
    options = parser.parse_args()
    peak = None if options.bandwidth is None else 1e9 * options.bandwidth
    text = "\n".join(table(SMALL if options.small else Plan(), options.only or list(GROUPS), peak))
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
