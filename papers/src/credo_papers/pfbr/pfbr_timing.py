"""Processor seconds of an update, measured for all methods in the same run.

The clock is that of the process, which stands still while a busy machine runs another one.
"""

from __future__ import annotations

import time

import jax
import numpy as np

from credo.core.types import Array, PyTree
from credo_papers.engine.any_learner import AnyBelief
from credo_papers.pfbr.pfbr_problem import Method, Problem, in_default_precision

__all__ = ["seconds_per_update"]

REPEATS = 7

ENOUGH = 5.0
"""The seconds after which no further run is begun."""


def seconds_per_update(
    method: Method,
    problem: Problem,
    count: int,
    observations: np.ndarray,
    inputs: PyTree = None,
    start: np.ndarray | None = None,
    repeats: int = REPEATS,
) -> float:
    """Return the processor seconds of one step: time passes, then an observation is taken in.

    A sequence is one scan, which is compiled before. The fastest of several runs counts, divided by its
    observations.

    Arguments:
        method: the method of the table.
        problem: what it is told.
        count: the number of particles, where the method has none of its own.
        observations: of one sequence (T, ...).
        inputs: of one sequence, or None.
        start: the prior mean of the sequence, or None.
        repeats: how many runs at most.
    """
    learner = method.build(problem, count if method.particles is None else method.particles)
    first, second = jax.random.split(jax.random.key(0))

    @jax.jit
    def sequence(belief: AnyBelief, xs: PyTree, ys: Array) -> AnyBelief:
        def step(belief: AnyBelief, row: tuple[PyTree, Array]) -> tuple[AnyBelief, None]:
            return learner.step(belief, *row, key=second)[0], None

        return jax.lax.scan(step, belief, (xs, ys))[0]

    belief = problem.begin(learner, first, in_default_precision(start))
    rows = in_default_precision((inputs, observations))
    jax.block_until_ready(sequence(belief, *rows))
    seconds = []
    for _ in range(repeats):
        begin = time.process_time()
        jax.block_until_ready(sequence(belief, *rows))
        seconds.append(time.process_time() - begin)
        if sum(seconds) > ENOUGH:
            break
    return min(seconds) / len(observations)
