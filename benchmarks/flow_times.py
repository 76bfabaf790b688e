"""Processor times of learned Bayes rules in one process: the published operator and `credo.flows.Operator`.

    python benchmarks/flow_times.py [--dim 10] [--particles 256] [--repeats 20]

Three programs: the published network, transcribed plainly (`flow_published.py`); the same by
`credo_papers.published_flow`; and credo's own operator, without its base. For each the time of an update
without and with the density, and of a training step that learns from 25 updates: a chain of them for the
published operator, and a batch for ours. All are the least of several processor times, on one thread, after
compiling.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import jax.numpy as jnp
import numpy as np
from flow_published import chain_loss, update, update_density

from credo import flows
from credo.flows.objective import stage_loss
from credo_papers.published_flow import LinearSequences, PublishedOperator

UPDATES = 25
"""How many updates a training step learns from."""

Array = jax.Array


def milliseconds(program: Callable[[], object], repeats: int) -> float:
    """The least processor time of a call, after one that compiles."""
    jax.block_until_ready(program())
    times = []
    for _ in range(repeats):
        start = time.process_time()
        jax.block_until_ready(program())
        times.append(time.process_time() - start)
    return 1e3 * min(times)


def system(dim: int) -> tuple[Array, Array]:
    """A stable transition and an observation matrix (d, d)."""
    rng = np.random.default_rng(0)
    move = rng.normal(size=(dim, dim))
    move *= 0.95 / np.abs(np.linalg.eigvals(move)).max()
    return jnp.asarray(move, jnp.float32), jnp.asarray(rng.normal(size=(dim, dim)) * 0.3, jnp.float32)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--dim", type=int, default=10)
    parser.add_argument("--particles", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=20)
    words = parser.parse_args()
    move, look = system(words.dim)
    chain = LinearSequences(look, 1.0, move, particles=words.particles, length=UPDATES)
    _, segment = chain.observe(chain.begin(jax.random.key(0)), jax.random.key(1))
    values = segment.values
    weights = segment.log_weights
    y = segment.y[0]
    logs = segment.prior.log_prob(values)
    few = max(3, words.repeats // 5)

    def likelihood(value: Array, y: Array) -> Array:
        return chain.log_likelihood(value, None, y)

    print(
        f"d = {words.dim}, {words.particles} particles; milliseconds of processor time (ratio to the first)"
    )
    print(f"{'':32}{'update':>18}{'with density':>18}{'training step':>20}", flush=True)
    first: tuple[float, ...] = ()

    def report(name: str, *times: float) -> tuple[float, ...]:
        ratios = [f"{t:9.2f} ({own / t:5.1f}x)" for t, own in zip(times, first or times, strict=True)]
        print(f"{name:32}" + "  ".join(ratios), flush=True)
        return times

    published = PublishedOperator(dim=words.dim, observation=words.dim).begin(key=0)
    params = published.params
    plain_update = jax.jit(update)
    plain_density = jax.jit(update_density)
    plain_step = jax.jit(
        jax.value_and_grad(lambda p: chain_loss(p, values, logs, segment.y, likelihood, chain.log_forecast))
    )
    first = report(
        "published, transcribed plainly",
        milliseconds(lambda: plain_update(params, values, y), words.repeats),
        milliseconds(lambda: plain_density(params, values, y), words.repeats),
        milliseconds(lambda: plain_step(params), few),
    )
    ours = flows.Operator(dim=words.dim, base=None).begin(key=0)
    tasks = flows.LinearGaussianTasks(move, 1.0, look, 1.0, particles=words.particles)
    keys = jax.random.split(jax.random.key(0), UPDATES)
    _, stages = jax.vmap(lambda key: tasks.observe(tasks.begin(key), key))(keys)

    def batch(params: object) -> Array:
        return jnp.mean(jax.vmap(lambda stage: stage_loss(ours, params, tasks, stage, "elbo")[0])(stages))

    batch_step = jax.jit(jax.value_and_grad(batch))
    own = operator_times(ours, values, weights, y, likelihood, words.repeats)
    report("credo.flows.Operator", *own, milliseconds(lambda: batch_step(ours.params), few))

    step = jax.jit(jax.value_and_grad(lambda p: chain.segment_loss(published, p, segment)[0]))
    own = operator_times(published, values, weights, y, likelihood, words.repeats)
    report("credo_papers.published_flow", *own, milliseconds(lambda: step(params), few))
    close = abs(float(plain_step(params)[0] / step(params)[0]) - 1)
    print(f"The plain loss and credo's differ by a part of {close:.1e}.")


def operator_times(
    operator: flows.FlowOperator,
    values: Array,
    weights: Array,
    y: Array,
    likelihood: Callable[[Array, Array], Array],
    repeats: int,
) -> tuple[float, float]:
    """Times of an update without and with the density."""

    def bayes(values: Array, y: Array) -> flows.FlowMap:
        return operator.transport(operator.params, values, weights, lambda z: likelihood(z, y), None, y)

    plain = jax.jit(lambda values, y: bayes(values, y).forward(values))
    density = jax.jit(lambda values, y: bayes(values, y).forward_density(values))
    return milliseconds(lambda: plain(values, y), repeats), milliseconds(lambda: density(values, y), repeats)


if __name__ == "__main__":
    main()
