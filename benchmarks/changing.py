"""Run lengths around a network: against the bare learner, and against the published way to keep hypotheses.

The baseline is a transcription of what published code does: all K + 1 beliefs are dense, each takes in the
observation by Joseph's form (I - K H) P (I - K H)' + K R K', and the heaviest K are gathered afterwards. It
has the recursion of credo (a new segment learns its first observation), so that both give the same evidence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from timing import Row, Table, medians

import credo
from credo.core.trees import Unravel, ravel

HAZARD = 0.01

Scan: TypeAlias = Callable[[jax.Array, jax.Array], jax.Array]
"""From a stream to the log evidence of every row."""


def published(net: credo.MLP, start: jax.Array, unravel: Unravel, capacity: int) -> Scan:
    """The scan: log evidence of every row."""
    size = start.shape[0]
    prior = (start, jnp.eye(size))

    def logit(mean: jax.Array, x: jax.Array) -> jax.Array:
        return net(unravel(mean), x).reshape(())

    def score(mean: jax.Array, cov: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        """log of the average of p(y) over the logit, as credo integrates it."""
        rows = jax.grad(logit)(mean, x)
        eta = logit(mean, x)[None]
        var = (rows @ cov @ rows)[None, None]
        return credo.Bernoulli().linearized(eta, var).log_prob(y)

    def learn(mean: jax.Array, cov: jax.Array, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        eta = logit(mean, x)
        rows = jax.grad(logit)(mean, x)[None, :]
        p = jax.nn.sigmoid(eta)
        noise = 1.0 / (p * (1 - p))
        gain = cov @ rows.T / (rows @ cov @ rows.T + noise)
        left = jnp.eye(size) - gain @ rows
        return mean + gain[:, 0] * (y - p) * noise, left @ cov @ left.T + noise * gain @ gain.T

    def step(state: tuple[Any, ...], row: tuple[Any, ...]) -> tuple[Any, ...]:
        logs, means, covs = state
        x, y = row
        means = jnp.concatenate([means, prior[0][None]])
        covs = jnp.concatenate([covs, prior[1][None]])
        leave = jax.nn.logsumexp(logs) + jnp.log(HAZARD)
        logs = jnp.concatenate([logs + jnp.log1p(-HAZARD), leave[None]])
        logs = logs + jax.vmap(score, (0, 0, None, None))(means, covs, x, y)
        means, covs = jax.vmap(learn, (0, 0, None, None))(means, covs, x, y)
        total = jax.nn.logsumexp(logs)
        kept, index = jax.lax.top_k(logs - total, capacity)
        return (kept - jax.nn.logsumexp(kept), means[index], covs[index]), total

    empty = jnp.full(capacity, -jnp.inf).at[0].set(0.0)
    first = (empty, jnp.stack([prior[0]] * capacity), jnp.stack([prior[1]] * capacity))
    return jax.jit(lambda xs, ys: jax.lax.scan(step, first, (xs, ys))[1])


def case(table: Table, inputs: int, hidden: tuple[int, ...], count: int, few: int) -> None:
    """One network; the slow baseline sees the first `few` rows only."""
    rng = np.random.default_rng(5)
    net = credo.MLP(1, hidden, "tanh")
    params = net.init(0, (inputs,))
    start, unravel = ravel(params)
    group = f"run lengths, network of {start.shape[0]} parameters, one logit"
    xs = jnp.asarray(rng.normal(size=(count, inputs)), jnp.float32)
    ys = jnp.asarray(rng.integers(0, 2, count))
    inner = credo.RecursiveLearner(credo.Model(net, credo.Bernoulli()), credo.Full("dense"))
    learners: dict[str, credo.Learner[Any]] = {"credo, the learner itself": inner}
    learners |= {f"credo RL[{k}]-PR": credo.RunLength(inner, HAZARD, k) for k in (1, 10)}
    calls: dict[str, Callable[[], object]] = {}
    rows: dict[str, int] = {}
    evidence: dict[str, jax.Array] = {}
    for name, learner in learners.items():

        def ours(learner: credo.Learner[Any] = learner) -> jax.Array:
            evidence: jax.Array = credo.run(learner, learner.init(params), xs, ys)[1].log_evidence
            return evidence.block_until_ready()

        calls[name], rows[name], evidence[name] = ours, count, ours()
    for k in (1, 10):
        name = f'"published" RL[{k}]-PR, dense Joseph'

        scan = published(net, start, unravel, k)

        def theirs(scan: Scan = scan) -> jax.Array:
            return scan(xs[:few], ys[:few]).block_until_ready()

        calls[name] = theirs
        rows[name] = few
        gap = float(jnp.max(jnp.abs(theirs() - evidence[f"credo RL[{k}]-PR"][:few])[1:]))
        print(f"largest difference of the log evidence of a row: {gap:.1e}")
        if gap > 1e-2:
            raise RuntimeError(f"the baseline and credo differ by {gap:.1e} nats: they must do the same.")
    for name, (taken, _) in medians(calls).items():
        table.add(Row(group, name, rows[name] / taken))
    table.compare(group, "credo RL[1]-PR", "credo, the learner itself")
    for k in (1, 10):
        table.compare(group, f"credo RL[{k}]-PR", f'"published" RL[{k}]-PR, dense Joseph')


def run_lengths(table: Table, scale: float) -> None:
    """P = 51 and P = 505, one logit."""
    case(table, 2, (5, 5), int(10_000 * scale), int(2000 * scale))
    case(table, 7, (18, 18), int(300 * scale), 20)
