"""The grid of updates against the published ones, transcribed (`published.py`), and against `posteriors`."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypedDict

import jax
import jax.numpy as jnp
import numpy as np
import published
from jax.flatten_util import ravel_pytree
from ours import linear, megabytes
from timing import Row, Table, medians

import credo
from credo.ekf import diag_fisher

RATE = 0.1
ITERATIONS = 10
SAMPLES = (1, 10, 100)


class Options(TypedDict):
    """How far an iterated rule goes."""

    learning_rate: float
    iterations: int


def finite(state: Any) -> Any:
    """The state, when it is finite: what has diverged is not timed."""
    if not all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(state)):
        raise SystemExit("a belief in this benchmark is not finite")
    return jax.block_until_ready(state)


def credo_run(learner: credo.Learner[Any], belief: Any, xs: Any, ys: Any) -> Callable[[], Any]:
    """One compiled scan of credo."""
    return lambda: finite(credo.run(learner, belief, xs, ys, key=0)[0].mean)


def published_run(update: Callable[..., Any], state: Any, xs: Any, ys: Any) -> Callable[[], Any]:
    """One compiled scan of a transcription."""
    run = published.scan(update)
    return lambda: finite(run(jax.random.key(0), state, xs, ys))


def race(
    table: Table, group: str, cases: dict[str, tuple[int, Callable[..., Any], float | None]], peers: list[Any]
) -> None:
    """Time the cases in turn; `peers` are the pairs (ours, baseline) to compare."""
    for name, (middle, first) in medians({name: call for name, (_, call, _) in cases.items()}).items():
        count, _, size = cases[name]
        table.add(Row(group, name, count / middle, max(first - middle, 0.0), size))
    for ours, baseline in peers:
        table.compare(group, ours, baseline)


def full_grid(table: Table) -> None:
    """Full covariances over P = 100 parameters: logistic regression."""
    size = 100
    count = 100
    few = 5
    rng = np.random.default_rng(3)
    x = jnp.asarray(rng.normal(size=(count, size)) / 10, jnp.float32)
    y = jnp.asarray(rng.random(count) < 0.5, jnp.int32)
    onehot = y[:, None].astype(jnp.float32)
    problem = published.bernoulli(lambda theta, row: row @ theta)
    start = published.Full(jnp.zeros(size), jnp.eye(size))
    model = credo.Model(linear, credo.Bernoulli())
    family = credo.Full()
    options = Options(learning_rate=RATE, iterations=ITERATIONS)
    learners = {"credo BLR, LIN-HESS": credo.blr(model, family, **options)}
    updates = {"published BLR, LIN-HESS": (published.full_blr_lin_hess(problem, RATE, ITERATIONS), few)}
    for samples in SAMPLES:
        bong, blr = (f"{{}} {rule}, MC-EF, M = {samples}" for rule in ("BONG", "BLR"))
        drawn = credo.MonteCarloEmpiricalFisher(samples)
        learners[bong.format("credo")] = credo.bong(model, family, drawn)
        learners[blr.format("credo")] = credo.blr(model, family, drawn, **options)
        updates[bong.format("published")] = (published.full_bong_mc_ef(problem, samples), count)
        updates[blr.format("published")] = (published.full_blr_mc_ef(problem, samples, RATE, ITERATIONS), few)
    cases: dict[str, tuple[int, Callable[..., Any], float | None]] = {}
    for name, learner in learners.items():
        belief = learner.init(jnp.zeros(size))
        cases[name] = (count, credo_run(learner, belief, x, y), megabytes(belief))
    for name, (update, length) in updates.items():
        cases[name] = (length, published_run(update, start, x[:length], onehot[:length]), None)
    pairs = [(ours, ours.replace("credo", "published")) for ours in learners]
    race(table, "grid: full, P = 100 (M draws, I = 10 iterations)", cases, pairs)


def low_rank_grid(table: Table) -> None:
    """Low-rank beliefs over networks with ten classes, LIN-HESS."""
    rng = np.random.default_rng(4)
    for inputs, hidden, count in ((64, (20,), 400), (784, (50, 50), 20)):
        few = max(count // 10, 2)
        x = jnp.asarray(rng.normal(size=(count, inputs)), jnp.float32)
        y = jnp.asarray(rng.integers(0, 10, count))
        onehot = jax.nn.one_hot(y, 10)
        net = credo.MLP(10, hidden)
        params = net.init(0, (inputs,))
        theta, unravel = ravel_pytree(params)

        def logits(v: Any, row: Any, net: credo.MLP = net, unravel: Callable[..., Any] = unravel) -> Any:
            return net(unravel(v), row)

        problem = published.categorical(logits)
        size = theta.shape[0]
        start = published.DLR(theta, jnp.full((size, 1), 100.0), jnp.zeros((size, 10)))
        model = credo.Model(net, credo.Categorical(10))
        family = credo.LowRank(10)
        bong = credo.bong(model, family)
        blr = credo.blr(model, family, learning_rate=RATE, iterations=ITERATIONS)
        belief = bong.init(params, var=0.01)
        one = "published {}, projected by the Gram matrix"
        two = "published {}, projected by the SVD"
        cases: dict[str, tuple[int, Callable[..., Any], float | None]] = {
            "credo BONG": (count, credo_run(bong, belief, x, y), megabytes(belief)),
            "credo BLR": (few, credo_run(blr, belief, x[:few], y[:few]), megabytes(belief)),
        }
        for name, project in ((one, published.project_gram), (two, published.project_svd)):
            update = published.dlr_bong_lin_hess(problem, project)
            cases[name.format("BONG")] = (few, published_run(update, start, x[:few], onehot[:few]), None)
            if project is published.project_svd:
                continue  # 30 columns, ten times a step: over a second a row
            update = published.dlr_blr_lin_hess(problem, RATE, ITERATIONS, project)
            cases[name.format("BLR")] = (2, published_run(update, start, x[:2], onehot[:2]), None)
        pairs = [("credo BONG", one.format("BONG")), ("credo BONG", two.format("BONG"))]
        race(table, f"grid: low-rank-10, P = {size:,}", cases, [*pairs, ("credo BLR", one.format("BLR"))])


FISHER: tuple[tuple[int, int | None, int, int, int], ...] = (
    (10, None, 1, 20_000, 300),
    (784, 128, 32, 20, 5),
)
"""Inputs, the width of the hidden layer, the rows of a batch, and how many batches are ours and theirs."""


def fisher(table: Table, cases: Iterable[tuple[int, int | None, int, int, int]] = FISHER) -> None:
    """`credo.ekf.diag_fisher` in a scan, and `posteriors`' own, called for each batch."""
    import peers

    rng = np.random.default_rng(5)
    for inputs, width, batch, batches, theirs in cases:
        x = rng.normal(size=(batches * batch, inputs)).astype(np.float32)
        y = rng.integers(0, 2 if width is None else 10, batches * batch)
        group = (
            f"diagonal Fisher EKF, {'P = 10, one row' if width is None else 'P = 101,770, 32 rows'} a batch"
        )
        name = "posteriors ekf.diag_fisher"
        count = theirs * batch
        peers.posteriors_ekf(table, group, name, x[:count], y[:count], width, batch)
        net = credo.Linear(1) if width is None else credo.MLP(10, (width,))
        params = jnp.zeros(inputs) if width is None else net.init(0, (inputs,))

        def log_likelihood(
            params: Any, rows: Any, net: Any = net, plain: bool = width is None
        ) -> tuple[Any, ...]:
            xs, ys = rows
            if plain:
                eta = xs @ params
                return ys * eta - jnp.logaddexp(0.0, eta), None
            logits = jax.vmap(lambda row: net(params, row))(xs)
            return jnp.take_along_axis(jax.nn.log_softmax(logits), ys[:, None], axis=1)[:, 0], None

        transform = diag_fisher.build(log_likelihood, lr=1.0, per_sample=True, init_sds=0.1)
        pairs = (jnp.asarray(x).reshape(batches, batch, -1), jnp.asarray(y).reshape(batches, batch))

        @jax.jit
        def run(state: Any, pairs: Any, transform: Any = transform) -> Any:
            first = transform.update(state, jax.tree.map(lambda leaf: leaf[0], pairs))
            rest = jax.tree.map(lambda leaf: leaf[1:], pairs)
            return jax.lax.scan(lambda s, pair: (transform.update(s, pair), None), first, rest)[0]

        state = transform.init(params)
        call = lambda run=run, state=state, pairs=pairs: finite(run(state, pairs).params)  # noqa: E731
        ours = "credo ekf.diag_fisher, scan"
        race(table, group, {ours: (batches * batch, call, megabytes(state))}, [(ours, name)])


def memory() -> str:
    """Peak memory at P = 10^6 of every LIN cell that is not full, each in a process of its own."""
    from memory import CURVATURES, FAMILIES, RULES

    cases = [["none"], *map(list, itertools.product(FAMILIES, RULES, CURVATURES))]
    cases += [[family, rule, "lin-hess", "plain"] for family in FAMILIES for rule in RULES]
    lines = [
        "\n## memory, network 784-1257-10, P = 999,325\n",
        "Three steps; 10 inner iterations for BLR and BBB. BOG and BBB have learning rate 1e-6: with the",
        "default 0.01 steps of BBB / low rank / LIN-HESS are refused. `finite`: so is the belief, and no",
        "step was refused. `s a step`: one run of the three, compiled, on a busy machine.",
        "`dense rows`: credo is not told that the layers are dense; a Jacobian is then 10 rows of 4 MB.\n",
        "| what | belief MB | peak MB of the process | s a step | finite |",
        "|---|--:|--:|--:|---|",
    ]
    for case in cases:
        made = subprocess.run(
            [sys.executable, str(Path(__file__).with_name("memory.py")), *case],
            capture_output=True,
            text=True,
            check=True,
        )
        lines.append("| " + " | ".join(made.stdout.rstrip("\n").split("\t")) + " |")
        print(lines[-1], flush=True)
    return "\n".join(lines)
