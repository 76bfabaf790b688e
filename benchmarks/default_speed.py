"""What the default costs by columns and classes: rows a second, the belief's memory, and compile time.

    python benchmarks/default_speed.py                           # the table of defaults-tables.md: 20 minutes
    python benchmarks/default_speed.py --columns 10,100 --classes 0,2

A cell is a scan of `credo.auto(columns, ...)` over rows of normal numbers, without reading, encoding and
scores, in processor time; 0 classes stand for numbers. Compile time is that of the scan's program, which no
cache holds.
"""

from __future__ import annotations

import argparse
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import credo

ROWS = 60
TURNS = 3


class Cost(NamedTuple):
    """The cost of a bank: rows a second, bytes of a belief, and seconds of compilation."""

    rows: float
    memory: int
    compiling: float


def cost_of(columns: int, classes: int) -> Cost:
    """The cost of the default for so many columns and classes, 0 for numbers."""
    random = np.random.default_rng(0)
    xs = jnp.asarray(random.normal(size=(ROWS, columns)), jnp.float32)
    labels = random.integers(0, classes, ROWS) if classes else random.normal(size=ROWS)
    ys = jnp.asarray(labels, jnp.int32 if classes else jnp.float32)
    learner = credo.auto(columns, "classification" if classes else "regression", max(classes, 2))
    belief = learner.init()
    started = time.process_time()
    scan = jax.jit(lambda belief, xs, ys: credo.run(learner, belief, xs, ys)).lower(belief, xs, ys).compile()
    compiling = time.process_time() - started
    jax.block_until_ready(scan(belief, xs, ys))
    best = np.inf
    for _ in range(TURNS):
        started = time.process_time()
        jax.block_until_ready(scan(belief, xs, ys))
        best = min(best, time.process_time() - started)
    memory = sum(leaf.nbytes for leaf in jax.tree.leaves(belief))
    return Cost(ROWS / best, memory, compiling)


def table(columns: list[int], classes: list[int]) -> str:
    """The costs in Markdown, a row for each number of columns."""
    names = ["numbers" if not some else f"{some} classes" for some in classes]
    lines = [f"| columns | {' | '.join(names)} |", "|--:|" + "--:|" * len(classes)]
    for width in columns:
        cells = []
        for some in classes:
            cost = cost_of(width, some)
            cells.append(f"{cost.rows:,.0f} ({cost.memory / 2**20:.1f} MB, {cost.compiling:.0f} s)")
            jax.clear_caches()
        lines.append(f"| {width:,} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    """Read the command line, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--columns", default="10,100,1000", help="by default %(default)s")
    parser.add_argument("--classes", default="0,2,10,50", help="0 for numbers; by default %(default)s")
    arguments = parser.parse_args()
    wanted = [[int(word) for word in text.split(",")] for text in (arguments.columns, arguments.classes)]
    print(f"\nRows a second of processor time (memory of the belief, compile time):\n\n{table(*wanted)}")


if __name__ == "__main__":
    main()
