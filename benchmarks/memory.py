"""Peak memory of one process that takes three steps at P = 10^6; started by `grid.py`.

    python benchmarks/memory.py FAMILY RULE CURVATURE [plain]
    python benchmarks/memory.py bank [ROWS]
    python benchmarks/memory.py low-rank-rows [ROWS] [WIDTH]

`plain` hides from credo that the layers are dense, so that a Jacobian is an array of C rows of length P, as
it is for any model but a network of dense layers. `none` in place of FAMILY runs the network alone. `bank`
learns a stream of two classes and ten columns, a million rows where nothing else is said, by the default
estimator, and prints what the process holds after each tenth; a part of it is what malloc keeps free.
`low-rank-rows` takes rows one by one into a `Pack` of rank 10 with P = 10^6, and prints the peak over its own
arrays: the old directions stay until the new ones are known to be finite, since a refused row changes no bit.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from ours import megabytes
from timing import held_megabytes, peak_megabytes

import credo
from credo.estimators import OnlineClassifier

FAMILIES = {"diagonal": credo.Diagonal(), "low-rank": credo.LowRank(10)}
RULES = ("bong", "blr", "bog", "bbb")
CURVATURES = ("lin-hess", "lin-ef")


def main(family: str, rule: str = "bong", curvature: str = "lin-hess", rows: str = "outer") -> None:
    """Print what was run, the size of its belief, the peak, seconds a step, and whether all is finite."""
    net = credo.MLP(10, (1257,))
    params = net.init(0, (784,))
    if family == "none":
        jax.block_until_ready(jax.jit(net)(params, jnp.ones(784)))
        print(f"the network alone\t{megabytes(params):.1f}\t{peak_megabytes():,.0f}\t\t")
        return
    apply = (lambda params, x: net(params, x)) if rows == "plain" else net
    # plain gradients need a small rate for no step to be refused; memory does not depend on it
    options = {"learning_rate": 1e-6} if rule in ("bog", "bbb") else {}
    model = credo.Model(apply, credo.Categorical(10))
    learner = getattr(credo, rule)(model, FAMILIES[family], curvature, **options)
    belief = learner.init(params, var=0.01)
    xs = jnp.ones((3, 784))
    ys = jnp.arange(3)
    jax.block_until_ready(credo.run(learner, belief, xs, ys))
    peak = peak_megabytes()
    start = time.perf_counter()
    end, info = jax.block_until_ready(credo.run(learner, belief, xs, ys))
    taken = (time.perf_counter() - start) / 3
    finite = all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(end))
    sound = "yes" if finite and bool(jnp.all(info.ok)) else "no"
    words = f"{rule.upper()}, {family}, {curvature.upper()}{', dense rows' if rows == 'plain' else ''}"
    print(f"{words}\t{megabytes(belief):.1f}\t{peak:,.0f}\t{taken:.2f}\t{sound}")


def bank(rows: str = "1000000") -> None:
    """Print the megabytes that are held after each tenth of a stream, which should not grow."""
    rng = np.random.default_rng(0)
    learner = OnlineClassifier()
    weights = rng.normal(size=10)
    tenth = int(rows) // 10
    for part in range(10):
        for _ in range(tenth // 1000):
            x = rng.normal(size=(1000, 10))
            learner.partial_fit(x, (x @ weights + rng.logistic(size=1000) > 0).astype(int), classes=[0, 1])
        print(f"{(part + 1) * tenth:,}\t{held_megabytes():,.0f}", flush=True)


def low_rank_rows(rows: str = "10", width: str = "1257") -> float:
    """Print, and return, the peak of a process that takes rows one by one, over the bytes of its belief.

    Left out is what the process holds without a belief: Python, JAX and compiled programs.
    """
    net = credo.MLP(10, (int(width),))
    learner = credo.bong(credo.Model(net, credo.Categorical(10)), FAMILIES["low-rank"])
    live = credo.pack(learner, learner.init(net.init(0, (784,)), var=0.01))
    own = megabytes(live.belief)
    xs = np.random.default_rng(0).normal(size=(int(rows), 784)).astype(np.float32)
    live.step(xs[0], 0)  # compiles
    gc.collect()
    without = held_megabytes() - own
    forget_peak()
    for number, x in enumerate(xs):
        live.step(x, number % 10)
    peak = peak_megabytes() - without
    print(f"low rank, P = {live.belief.size:,}\t{own:.1f}\t{peak:.1f}\t{peak / own:.2f} times its arrays")
    return peak / own


def forget_peak() -> None:
    """Let the largest memory of this process count from now on."""
    with open("/proc/self/clear_refs", "w") as references:
        references.write("5")


if __name__ == "__main__":
    parts: dict[str, Callable[..., object]] = {"bank": bank, "low-rank-rows": low_rank_rows}
    name, *others = sys.argv[1:]
    parts[name](*others) if name in parts else main(name, *others)
