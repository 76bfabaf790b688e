"""credo beside the official codes, in one process: ratios of processor time, and the roofline of each case.

    python benchmarks/official.py --codes FOLDER        # the codes lie there, under the names of REPOSITORIES
    python benchmarks/official.py --codes FOLDER --clone

A case is one pass over a stream by every code, in turn, several times; what counts is the median of the
processor time of a row, on one core. A ratio above 1 says that credo is faster; beside it stands what it must
be, and what it should be (`aims.py`). The roofline is the least time in which the belief can be read and
written once, at the copy bandwidth of this machine for arrays of that size; `x roofline` is our time over it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeAlias

# One thread on one core, for a processor time that says what was computed.
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import jax
import jax.numpy as jnp
import numpy as np
import official_codes as codes
from aims import HEAD, Measured, cells
from jax.flatten_util import ravel_pytree
from timing import copy_seconds

import credo

Call: TypeAlias = Callable[[], Any]
Entry: TypeAlias = tuple[int, Call]
"""How many rows a call takes in, and the call."""

TURNS = 7
FORMS: tuple[Literal["root", "dense"], ...] = ("root", "dense")
CASES: dict[str, Callable[[], None]] = {}
LINES: list[str] = []
MEASURED: list[Measured] = []


def case(name: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Enter a function among the cases."""

    def enter(function: Callable[[], None]) -> Callable[[], None]:
        CASES[name] = function
        return function

    return enter


def race(title: str, ours: dict[str, Entry], theirs: dict[str, Entry], size: int) -> None:
    """Time all calls in turn, and write one line for each of ours against each of theirs.

    Arguments:
        title: the case.
        ours, theirs: by name, the number of rows of a call, and the call.
        size: the bytes of the belief.
    """
    calls = {**ours, **theirs}
    times: dict[str, list[float]] = {name: [] for name in calls}
    broken: dict[str, str] = {}
    for name, (_, call) in calls.items():
        try:
            jax.block_until_ready(jax.tree.leaves(call()))
        except Exception as error:  # an official code that cannot run is a result, too
            broken[name] = f"{type(error).__name__}: {str(error).splitlines()[0][:90]}"
    for _ in range(TURNS):
        for name, (rows, call) in calls.items():
            if name not in broken:
                started = time.process_time()
                jax.block_until_ready(jax.tree.leaves(call()))
                times[name].append((time.process_time() - started) / rows)
    middle = {name: statistics.median(values) for name, values in times.items() if values}
    floor = copy_seconds(size)
    for name in ours:
        if name in broken:
            raise SystemExit(f"{title}: {name} failed: {broken[name]}")
        start = f"| {title} | {name} | {middle[name] * 1e6:,.2f}"
        for peer in theirs or [""]:
            if peer in broken:
                line = f"{start} | {peer} | cannot run: {broken[peer]} | | | | | |"
                MEASURED.append(Measured(title, name, peer, None, broken[peer]))
            elif not peer:
                line = f"{start} | | | | | | | {middle[name] / floor:.1f} |"
            else:
                ratio = middle[peer] / middle[name]
                MEASURED.append(Measured(title, name, peer, ratio))
                compared = f"{middle[peer] * 1e6:,.2f} | {cells(title, name, peer, ratio)}"
                line = f"{start} | {peer} | {compared} | {middle[name] / floor:.1f} |"
            LINES.append(line)
            print(line, flush=True)


def ours(learner: credo.Learner[Any], belief: Any, xs: Any, ys: Any, key: int | None = None) -> Entry:
    """One compiled stream of credo."""
    return len(ys), lambda: credo.run(learner, belief, xs, ys, key=key)


def linear(w: Any, x: Any) -> Any:
    """A linear model."""
    return x @ w


def bytes_of(belief: Any) -> int:
    """The size of a belief."""
    return sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(belief))


@case("full")
def full() -> None:
    """The extended Kalman filter with one output."""
    for size, count in ((100, 2000), (500, 400), (1000, 100)):
        rng = np.random.default_rng(0)
        xs = jnp.asarray(rng.normal(size=(count, size)) / np.sqrt(size), jnp.float32)
        ys = jnp.asarray(rng.normal(size=count), jnp.float32)
        model = credo.Model(linear, credo.Normal(1.0))
        learners = {form: credo.extended_kalman(model, form=form) for form in FORMS}
        beliefs = {form: learner.init(jnp.zeros(size)) for form, learner in learners.items()}
        few = max(count // 20, 5)
        race(
            f"full EKF, one output, P = {size:,}",
            {f"credo, {form}": ours(learners[form], beliefs[form], xs, ys) for form in learners},
            {
                "BONG, update alone": (count, codes.bong_full(linear, size, xs, ys, alone=True)),
                "BONG, as it runs": (count, codes.bong_full(linear, size, xs, ys, alone=False)),
                "rebayes, update alone": (count, codes.rebayes_full(linear, size, xs, ys)),
                "rebayes-mini": (few, codes.rebayes_mini_full(linear, size, xs[:few], ys[:few, None])),
            },
            4 * size**2,
        )


@case("kalman")
def kalman() -> None:
    """A tracker with a position and a speed, and a filter of ten numbers with four outputs."""
    rng = np.random.default_rng(1)
    tracker = ("D = 2, one output", np.array([[1.0, 1.0], [0.0, 1.0]]), np.eye(1, 2))
    turn = 0.9 * np.linalg.qr(rng.normal(size=(10, 10)))[0]
    for name, move, seen in (tracker, ("D = 10, 4 outputs", turn, rng.normal(size=(4, 10)))):
        size = len(move)
        outputs = len(seen)
        parts = (move, seen, 0.01 * np.eye(size), np.eye(outputs))
        matrices = [jnp.asarray(each, jnp.float32) for each in parts]
        ys = jnp.asarray(rng.normal(size=(20_000, outputs)), jnp.float32)
        learners = {form: credo.kalman(*matrices, form=form) for form in FORMS}
        beliefs = {form: learners[form].init(jnp.zeros(size)) for form in FORMS}
        race(
            f"Kalman scan, {name}",
            {f"credo, {form}": ours(learners[form], beliefs[form], None, ys) for form in FORMS},
            {"dynamax lgssm_filter": (len(ys), codes.dynamax_kalman(matrices, ys))},
            bytes_of(beliefs["dense"]),
        )


@case("draws")
def draws() -> None:
    """BONG with the empirical Fisher of draws."""
    size = 100
    count = 500
    few = 60
    rng = np.random.default_rng(3)
    xs = jnp.asarray(rng.normal(size=(count, size)) / 10, jnp.float32)
    ys = jnp.asarray(rng.random(count) < 0.5, jnp.int32)
    model = credo.Model(linear, credo.Bernoulli())
    for samples in (1, 10, 100):
        learner = credo.bong(model, credo.Full(), credo.MonteCarloEmpiricalFisher(samples))
        call = codes.bong_monte_carlo(linear, size, xs[:few], ys[:few].astype(jnp.float32), samples)
        race(
            f"BONG, full, MC-EF, P = 100, M = {samples}",
            {"credo": ours(learner, learner.init(jnp.zeros(size)), xs, ys, key=0)},
            {"BONG, update alone": (few, call)},
            4 * size**2,
        )


@case("low-rank")
def low_rank() -> None:
    """Rank 10 over networks with ten classes, LIN-HESS."""
    for inputs, hidden, count in ((64, (20,), 200), (784, (50, 50), 20), (784, (128,), 12)):
        rng = np.random.default_rng(4)
        xs = jnp.asarray(rng.normal(size=(count, inputs)), jnp.float32)
        ys = jnp.asarray(rng.integers(0, 10, count))
        onehot = jax.nn.one_hot(ys, 10)
        net = credo.MLP(10, hidden)
        params = net.init(0, (inputs,))
        theta, unravel = ravel_pytree(params)

        def logits(v: Any, row: Any, net: Any = net, unravel: Any = unravel) -> Any:
            return net(unravel(v), row)

        learner = credo.bong(credo.Model(net, credo.Categorical(10)), credo.LowRank(10))
        belief = learner.init(params, var=0.01)
        few = max(count // 4, 3)
        setting = (logits, theta, 0.01, 10, xs[:few], onehot[:few])
        race(
            f"low rank 10, P = {theta.shape[0]:,}",
            {"credo": ours(learner, belief, xs, ys)},
            {
                "BONG, update alone": (few, codes.bong_low_rank(*setting)),
                "rebayes LOFI": (few, codes.rebayes_lofi(*setting)),
            },
            bytes_of(belief),
        )


@case("diagonal")
def diagonal() -> None:
    """Diagonal LIN-EF over networks with ten classes, one row a batch."""
    for inputs, width, count in ((784, 126, 300), (784, 1257, 40)):
        rng = np.random.default_rng(5)
        x = rng.normal(size=(count, inputs)).astype(np.float32)
        y = rng.integers(0, 10, count)
        net = credo.MLP(10, (width,))
        params = net.init(0, (inputs,))
        learner = credo.bong(credo.Model(net, credo.Categorical(10)), credo.Diagonal(), "lin-ef")
        belief = learner.init(params, var=0.01)
        few = max(count // 5, 8)
        race(
            f"diagonal LIN-EF, P = {belief.size:,}",
            {"credo": ours(learner, belief, jnp.asarray(x), jnp.asarray(y))},
            {"posteriors ekf.diag_fisher": (few, codes.posteriors_diagonal(inputs, width, x[:few], y[:few]))},
            bytes_of(belief),
        )


@case("run-lengths")
def run_lengths() -> None:
    """Run lengths with one hypothesis around a network with one output."""
    for inputs, hidden, count in ((2, (5, 5), 2000), (7, (18, 18), 100)):
        rng = np.random.default_rng(6)
        xs = jnp.asarray(rng.normal(size=(count, inputs)), jnp.float32)
        ys = jnp.asarray(rng.normal(size=count), jnp.float32)
        net = credo.MLP(1, hidden, "tanh")
        params = net.init(0, (inputs,))
        theta, unravel = ravel_pytree(params)

        def output(v: Any, row: Any, net: Any = net, unravel: Any = unravel) -> Any:
            return net(unravel(v), row)

        inner = credo.extended_kalman(credo.Model(net, credo.Normal(1.0)), form="dense")
        learner = credo.RunLength(inner, 0.01, 1)
        few = max(count // 10, 10)
        bare = {"the bare learner": ours(inner, inner.init(params), xs, ys)}
        bare["rebayes-mini RLPRFilter"] = (
            few,
            codes.rebayes_mini_run_lengths(output, theta, 1, xs[:few], ys[:few]),
        )
        race(
            f"RunLength K = 1, P = {theta.shape[0]}",
            {"credo": ours(learner, learner.init(params), xs, ys)},
            bare,
            4 * theta.shape[0] ** 2,
        )


@case("python")
def python() -> None:
    """One row at a time from Python, D = 10."""
    from river import linear_model

    count = 2000
    size = 10
    rng = np.random.default_rng(7)
    x = rng.normal(size=(count, size)).astype(np.float32)
    y = (x @ rng.normal(size=size)).astype(np.float32)
    rows: list[dict[Any, Any]] = [dict(enumerate(map(float, row))) for row in x]
    targets = [float(value) for value in y]
    learner = credo.extended_kalman(credo.Model(linear, credo.Normal(1.0)))
    start = learner.init(jnp.zeros(size))

    def loop() -> Any:
        belief = start
        for row, target in zip(x, y, strict=True):
            belief, _ = learner.step(belief, row, target)
        return belief

    def river() -> Any:
        model = linear_model.BayesianLinearRegression()
        for row, target in zip(rows, targets, strict=True):
            model.predict_one(row)
            model.learn_one(row, target)

    live = credo.pack(learner, start)

    def packed() -> None:
        for row, target in zip(x, y, strict=True):
            live.forecast(row)
            live.step(row, target)

    cases = {"credo, learner.step": (count, loop), "credo.pack, forecast + step": (count, packed)}
    dispatch = "asynchronous" if jax.config.read("jax_cpu_enable_async_dispatch") else "synchronous"
    peer = {"River BayesianLinearRegression": (count, river)}
    race(f"one row from Python, D = 10, {dispatch} dispatch", cases, peer, 4 * size**2)


@case("keyed")
def keyed() -> None:
    """A hundred thousand learners of ten parameters, stepped together."""
    count = 100_000
    size = 10
    rng = np.random.default_rng(8)
    x = jnp.asarray(rng.normal(size=(count, size)), jnp.float32)
    y = jnp.asarray(rng.normal(size=count), jnp.float32)
    learner = credo.extended_kalman(credo.Model(linear, credo.Normal(1.0)))
    one = learner.init(jnp.zeros(size))
    beliefs = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *jnp.shape(leaf))), one)
    step = jax.jit(jax.vmap(lambda belief, x, y: learner.step(belief, x, y)[0]))
    race(
        "100,000 learners, D = 10, vmap",
        {"credo": (count, lambda: step(beliefs, x, y))},
        {},
        bytes_of(one),
    )


def main() -> None:
    """Run the cases and print a table in Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--codes", type=Path, required=True, help="the folder of the official codes")
    parser.add_argument("--clone", action="store_true", help="clone those that are missing")
    parser.add_argument("--only", choices=list(CASES), action="append")
    parser.add_argument(
        "--site", type=Path, action="append", default=[], help="a folder of their requirements"
    )
    parser.add_argument(
        "--synchronous",
        action="store_true",
        help="dispatch in the calling thread (docs/how-to/python-loop.md)",
    )
    parser.add_argument("--out", type=Path, help="a file for the table")
    options = parser.parse_args()
    jax.config.update("jax_cpu_enable_async_dispatch", not options.synchronous)
    sys.path.extend(str(folder) for folder in options.site)
    codes.open_codes(options.codes, clone=options.clone)
    print("\n".join(HEAD))
    for name, run in CASES.items():
        if not options.only or name in options.only:
            run()
    if options.out:
        options.out.write_text("\n".join(HEAD + LINES) + "\n")


if __name__ == "__main__":
    main()
