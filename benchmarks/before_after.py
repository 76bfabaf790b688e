"""How fast are two checkouts? Each case runs in both in turn, in processes of their own.

    python benchmarks/before_after.py ../before        # this checkout against the one in ../before
    python benchmarks/before_after.py ../before bank   # the cases with "bank" in their names

A case is a compiled stream, but for the last, a loop in Python. Both processes of a case live side by side
and take turns, so that they meet the same load; what is compared is the median of the ratios of their turns.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["HERE", "NAMES", "TURNS", "start", "stream_of", "turn"]

HERE = Path(__file__).resolve().parent.parent
TURNS = 15


def _learner(name: str) -> tuple[Any, int, int, int]:
    """The learner of a case, its inputs, its outputs (0 for numbers), and how many rows it runs over."""
    import credo

    walk = credo.RandomWalk(1e-6)

    def linear(likelihood: Any) -> Any:
        return credo.Model(credo.Linear(1), likelihood)

    def network(width: int, outputs: int = 10) -> Any:
        return credo.Model(credo.MLP(outputs=outputs, hidden=(width,)), credo.Categorical(outputs))

    small = credo.bong(
        credo.Model(credo.MLP(1, (16,)), credo.Normal(0.1)), credo.Full("dense"), dynamics=walk
    )
    cases: dict[str, tuple[Callable[[], Any], int, int, int]] = {
        "regression, full": (lambda: credo.bong(linear(credo.Normal(0.1)), credo.Full()), 10, 0, 50_000),
        "logistic, full, P = 101": (
            lambda: credo.bong(linear(credo.Bernoulli()), credo.Full()),
            100,
            2,
            10_000,
        ),
        "logistic, diagonal": (
            lambda: credo.bong(linear(credo.Bernoulli()), credo.Diagonal()),
            10,
            2,
            100_000,
        ),
        "network, full, P = 1,033": (lambda: credo.bong(network(33), credo.Full()), 20, 10, 300),
        "network, diagonal, P = 10,000": (lambda: credo.bong(network(90), credo.Diagonal()), 100, 10, 1_500),
        "network, low rank, P = 1,033": (lambda: credo.bong(network(33), credo.LowRank(10)), 20, 10, 1_000),
        "network, low rank, P = 42,310": (lambda: credo.bong(network(53), credo.LowRank(10)), 784, 10, 60),
        "BLR, full": (lambda: credo.blr(network(33), credo.Full()), 20, 10, 60),
        "BLR, low rank, P = 42,310": (lambda: credo.blr(network(53), credo.LowRank(10)), 784, 10, 20),
        "BOG, diagonal, LIN-EF": (lambda: credo.bog(network(90), credo.Diagonal(), "lin-ef"), 100, 10, 3_000),
        "BONG, full, MC-EF": (
            lambda: credo.bong(linear(credo.Normal(0.1)), credo.Full(), "mc-ef"),
            100,
            0,
            600,
        ),
        "run length, K = 10": (lambda: credo.RunLength(small, 0.01, 10), 2, 0, 3_000),
        "experts": (
            lambda: credo.Experts([small, credo.replace(small, dynamics=credo.RandomWalk(1e-3))]),
            2,
            0,
            5_000,
        ),
        "robust": (lambda: credo.WoLF(small, 3.0), 2, 0, 10_000),
        "bank, numbers": (lambda: credo.auto(10), 10, 0, 1_000),
        "bank, 2 classes": (lambda: credo.auto(10, "classification"), 10, 2, 1_000),
        "bank, 3 classes": (lambda: credo.auto(10, "classification", 3), 10, 3, 1_000),
        "bank, 10 classes": (lambda: credo.auto(10, "classification", 10), 10, 10, 150),
        LOOP: (lambda: credo.bong(linear(credo.Normal(0.1)), credo.Full()), 10, 0, 1_000),
    }
    make, inputs, outputs, rows = cases[name]
    return make(), inputs, outputs, rows


LOOP = "regression, step by step from Python"
NAMES = (
    "regression, full",
    "logistic, full, P = 101",
    "logistic, diagonal",
    "network, full, P = 1,033",
    "network, diagonal, P = 10,000",
    "network, low rank, P = 1,033",
    "network, low rank, P = 42,310",
    "BLR, full",
    "BLR, low rank, P = 42,310",
    "BOG, diagonal, LIN-EF",
    "BONG, full, MC-EF",
    "run length, K = 10",
    "experts",
    "robust",
    "bank, numbers",
    "bank, 2 classes",
    "bank, 3 classes",
    "bank, 10 classes",
    LOOP,
)


def stream_of(name: str) -> tuple[Callable[[], None], int]:
    """A case that has run once: a function that runs it again, and its number of rows."""
    import jax
    import numpy as np

    import credo

    learner, inputs, outputs, rows = _learner(name)
    rng = np.random.default_rng(0)
    xs = jax.numpy.asarray(rng.normal(size=(rows, inputs)), np.float32)
    labels = rng.integers(0, max(outputs, 1), rows).astype(np.int32)
    ys = jax.numpy.asarray(labels if outputs else rng.normal(size=rows).astype(np.float32))
    if name.startswith("bank"):
        start = learner.init()
    else:
        inner = learner
        while not hasattr(inner, "model"):
            inner = inner.learner if hasattr(inner, "learner") else inner.learners
        start = learner.init(inner.model.apply.init(jax.random.key(0), (inputs,)), var=0.1)
    key = jax.random.key(1)

    def go() -> None:
        belief = start
        if name == LOOP:
            for x, y in zip(xs, ys, strict=True):
                belief, _ = learner.step(belief, x, y)
        else:
            belief, _ = credo.run(learner, belief, xs, ys, key=key)
        jax.block_until_ready(belief)

    go()
    return go, rows


def _worker(name: str) -> None:
    """Run the case once for each line on standard input, and print how long it took."""
    go, _ = stream_of(name)
    for _ in sys.stdin:
        started = time.perf_counter()
        go()
        print(time.perf_counter() - started, flush=True)


def start(checkout: Path, script: str, name: str) -> subprocess.Popen[str]:
    """The process of a case of a script, which works with the package of a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(checkout.resolve() / "src"), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, script, "--worker", name]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )


def turn(process: subprocess.Popen[str]) -> float:
    """The seconds of one run of a case."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def main() -> None:
    """Take turns, and print the ratios."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["--worker"]:
        return _worker(arguments[1])
    if len(arguments) not in (1, 2) or not (Path(arguments[0]) / "src" / "credo").is_dir():
        sys.exit("name the other checkout: python benchmarks/before_after.py FOLDER [CASES]")
    print(f"{'case':40} {'before, ms':>11} {'after, ms':>11} {'after / before':>15}")
    for name in (name for name in NAMES if len(arguments) == 1 or arguments[1] in name):
        before, after = (start(checkout, __file__, name) for checkout in (Path(arguments[0]), HERE))
        for process in (before, after):
            turn(process)
        pairs = [(turn(before), turn(after)) for _ in range(TURNS)]
        old, new = (statistics.median(times) for times in zip(*pairs, strict=True))
        ratio = statistics.median(b / a for a, b in pairs)
        print(f"{name:40} {1e3 * old:11.1f} {1e3 * new:11.1f} {ratio:15.3f}", flush=True)
        for process in (before, after):
            process.kill()


if __name__ == "__main__":
    main()
