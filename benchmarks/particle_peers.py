"""Particles beside cuthbert and blackjax: the same problem, the same posterior, the same clock.

The problems are the linear dynamical system of `credo reproduce pfbr-lds`, where filters go through sequences
of 25 observations, and the mean of a normal distribution, where tempered samplers take one observation after
the other. Scores are cross-entropies of the exact posterior under the kernel density estimate of the
particles; times are processor times of one update inside a compiled scan, the best of several repetitions.

    python3 -m venv .venv-particles
    .venv-particles/bin/pip install -e . cuthbert blackjax
    OPENBLAS_NUM_THREADS=1 .venv-particles/bin/python benchmarks/particle_peers.py
"""

# The peers are packages that no test needs.
# pyright: reportMissingImports=false

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.core.types import Array
from credo.datasets import linear_system
from credo_papers.engine.particle_scores import kde_cross_entropy
from credo_papers.pfbr.pfbr_gaussian_world import (
    NOISE_VAR,
    gaussian_problem,
    mean_posteriors,
    simulate_means,
)
from credo_papers.pfbr.pfbr_lds_world import exact_posteriors, linear_problem, simulate_systems
from credo_papers.pfbr.pfbr_methods import METHODS
from credo_papers.pfbr.pfbr_problem import Problem
from credo_papers.pfbr.pfbr_scores import normal_draws, weighted_set

Sets = tuple[Array, Array]
"""Particles (T, N, d) and log weights (T, N) of a sequence."""

Filter = Callable[[Array, Array], Sets]
"""A function of a key and of the observations of one sequence (T, d)."""


def of_credo(name: str, problem: Problem, count: int) -> Filter:
    """A method of the table of `credo reproduce pfbr-lds`."""
    learner = METHODS[name].build(problem, count)

    def sequence(key: Array, ys: Array) -> Sets:
        def step(belief: Any, y: Array) -> tuple[Any, Sets]:
            belief, _ = learner.step(belief, None, y, key=key)
            values, logs = weighted_set(belief, count, jax.random.fold_in(key, belief.t))
            return belief, (values, logs)

        sets: Sets = jax.lax.scan(step, problem.begin(learner, key), ys)[1]
        return sets

    return sequence


def cuthbert_particles(dim: int, count: int) -> Filter:
    """cuthbert's bootstrap filter, resampling below half of the effective size."""
    from cuthbert.filtering import filter as run
    from cuthbert.smc import particle_filter
    from cuthbertlib.resampling import systematic
    from cuthbertlib.resampling.adaptive import ess_decorator

    transition, observation = (jnp.asarray(matrix) for matrix in linear_system(dim))
    peer = particle_filter.build_filter(
        lambda key: jax.random.normal(key, (dim,)),
        lambda key, x, y: transition @ x + jax.random.normal(key, (dim,)),
        lambda before, x, y: -0.5 * jnp.sum((y - observation @ x) ** 2),
        count,
        ess_decorator(systematic.resampling, 0.5),
    )

    def sequence(key: Array, ys: Array) -> Sets:
        first, second = jax.random.split(key)
        states = run(peer, ys, peer.init_prepare(key=first), key=second)
        logs = states.log_weights[1:]
        return states.particles[1:], logs - jax.nn.logsumexp(logs, axis=1, keepdims=True)

    return sequence


def cuthbert_ensemble(dim: int, count: int) -> Filter:
    """cuthbert's stochastic ensemble Kalman filter."""
    from cuthbert.ensemble_kalman import ensemble_kalman_filter
    from cuthbert.filtering import filter as run

    transition, observation = (jnp.asarray(matrix) for matrix in linear_system(dim))
    peer = ensemble_kalman_filter.build_filter(
        lambda key: jax.random.normal(key, (dim,)),
        lambda y: lambda x, key: transition @ x + jax.random.normal(key, (dim,)),
        lambda y: (lambda x: observation @ x, jnp.eye(dim), y),
        count,
    )

    def sequence(key: Array, ys: Array) -> Sets:
        first, second = jax.random.split(key)
        states = run(peer, ys, peer.init_prepare(key=first), key=second)
        values = states.ensemble[1:]
        return values, jnp.full(values.shape[:2], -jnp.log(float(count)))

    return sequence


def blackjax_tempered(dim: int, count: int, moves: int = 5) -> Filter:
    """blackjax's adaptive tempered SMC with random walks, from one posterior to the next."""
    import blackjax
    from blackjax.smc import adaptive_tempered, resampling
    from blackjax.smc.tempered import TemperedSMCState

    def sequence(key: Array, ys: Array) -> Sets:
        def step(carry: tuple[Array, Array, Array], row: tuple[Array, Array]) -> Any:
            values, total, seen = carry
            y, own = row
            sd = 2.38 / dim**0.5 * jnp.std(values, axis=0)

            def log_prior(x: Array) -> Array:
                return -0.5 * jnp.sum(x**2) * (1.0 + seen / NOISE_VAR) + jnp.sum(x * total) / NOISE_VAR

            kernel = blackjax.additive_step_random_walk.build_kernel()
            sampler = adaptive_tempered.build_kernel(
                log_prior,
                lambda x: -0.5 * jnp.sum((y - x) ** 2) / NOISE_VAR,
                lambda key, state, density, **_: kernel(
                    key, state, density, lambda k, x: sd * jax.random.normal(k, x.shape)
                ),
                blackjax.additive_step_random_walk.init,
                resampling.systematic,
                0.5,
            )
            start = blackjax.smc.tempered.init(values)

            def advance(both: tuple[TemperedSMCState, Array]) -> tuple[TemperedSMCState, Array]:
                state, own = both
                own, now = jax.random.split(own)
                return sampler(now, state, moves, {})[0], own

            state, _ = jax.lax.while_loop(lambda both: both[0].tempering_param < 1.0, advance, (start, own))
            logs = jnp.log(state.weights)
            return (state.particles, total + y, seen + 1.0), (state.particles, logs)

        first, second = jax.random.split(key)
        start = (jax.random.normal(first, (count, dim)), jnp.zeros(dim), jnp.zeros(()))
        sets: Sets = jax.lax.scan(step, start, (ys, jax.random.split(second, ys.shape[0])))[1]
        return sets

    return sequence


def measure(name: str, sequence: Filter, ys: np.ndarray, mean: Array, cov: Array, repeats: int) -> None:
    """Print the mean cross-entropy over sequences and steps, and the milliseconds of an update."""
    compiled = jax.jit(sequence)
    keys = jax.random.split(jax.random.key(0), len(ys))

    @jax.jit
    def score(values: Array, logs: Array, mean: Array, cov: Array) -> Array:
        def one(row: tuple[Array, Array, Array, Array]) -> Array:
            values, logs, mean, cov = row
            draws, excess = normal_draws(mean, cov, jax.random.key(1), 2000)
            return kde_cross_entropy(draws, values, logs) - excess

        return jnp.mean(jax.lax.map(one, (values, logs, mean, cov)))

    scores = [
        float(score(*compiled(key, y), m, c))
        for key, y, m, c in zip(keys, jnp.asarray(ys), mean, cov, strict=True)
    ]
    seconds = []
    for _ in range(repeats):
        begin = time.process_time()
        jax.block_until_ready(compiled(keys[0], jnp.asarray(ys[0])))
        seconds.append(time.process_time() - begin)
    print(f"{name:44s} {np.mean(scores):8.3f} nats  {min(seconds) / ys.shape[1] * 1e3:8.3f} ms", flush=True)


def main() -> None:
    """Measure every method on both problems."""
    parser = argparse.ArgumentParser(description="Particles beside cuthbert and blackjax.")
    parser.add_argument("--dim", type=int, default=10, choices=[2, 10])
    parser.add_argument("--particles", type=int, default=256)
    parser.add_argument("--sequences", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    dim = options.dim
    count = options.particles
    print(f"credo {credo.__version__}, {count} particles, {options.sequences} sequences")
    ys = simulate_systems(dim, 0, options.sequences).observations
    truth = exact_posteriors(dim, ys)
    print(f"linear dynamical system, d = {dim}, 25 observations")
    filters = {f"credo: {name}": of_credo(name, linear_problem(dim), count) for name in FILTERS}
    filters |= {
        "cuthbert: bootstrap particle filter": cuthbert_particles(dim, count),
        "cuthbert: ensemble Kalman filter": cuthbert_ensemble(dim, count),
    }
    for name, sequence in filters.items():
        measure(name, sequence, ys, truth.mean, truth.cov, options.repeats)
    ys = simulate_means(2, 0, options.sequences, length=30)
    exact = mean_posteriors(ys)
    print("mean of a normal distribution, d = 2, 30 observations")
    samplers = {f"credo: {name}": of_credo(name, gaussian_problem(2), count) for name in SAMPLERS}
    samplers["blackjax: adaptive tempered SMC"] = blackjax_tempered(2, count)
    for name, sequence in samplers.items():
        measure(name, sequence, ys, exact.mean, exact.cov, options.repeats)


FILTERS = ("exact draws", "affine map", "bootstrap, systematic", "stochastic EnKF")
SAMPLERS = ("exact draws", "tempered SMC", "bootstrap with MALA")

if __name__ == "__main__":
    main()
