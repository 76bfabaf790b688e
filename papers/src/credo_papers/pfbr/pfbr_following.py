"""A learner goes through sequences of observations, and every belief is scored on the way."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.types import Array, PyTree
from credo_papers.engine.any_learner import AnyBelief, AnyLearner
from credo_papers.engine.plain_data import Arrays
from credo_papers.pfbr.pfbr_problem import Method, Problem, in_default_precision
from credo_papers.pfbr.pfbr_scores import WeightedSet, weighted_set

__all__ = ["Judge", "follow"]

Judge: TypeAlias = Callable[[WeightedSet, PyTree, Array], Mapping[str, Array]]
"""`judge(particles, truth, key)` returns the scores of a set; `truth` is what is known at this step."""


def follow(
    method: Method,
    problem: Problem,
    count: int,
    observations: np.ndarray,
    truth: PyTree,
    judge: Judge,
    *,
    seed: int,
    inputs: PyTree = None,
    starts: np.ndarray | None = None,
    before: Judge | None = None,
) -> Arrays:
    """Take a method through n sequences of T observations, and score every belief.

    Arguments:
        method: the method of the table.
        problem: what it is told.
        count: the number of particles, where the method has none of its own.
        observations: (n, T, ...).
        truth: a tree of arrays with leading axes (n, T), of which the judge sees one step.
        judge: scores a set.
        seed: the seed of all draws. Sequence k has the key fold_in(seed, k).
        inputs: a tree of arrays with leading axes (n, T), or None.
        starts: the prior mean of each sequence (n, d); None means that of the problem.
        before: scores the predicted belief, before the observation is taken in.

    Returns:
        Scores by name (n, T): those of the judge; "forecast", the log score of the forecast before each
        observation; "evidence", what the learner says of it; "ok", whether it was taken in; and "ess".
    """
    number = count if method.particles is None else method.particles
    learner = method.build(problem, number)
    keys = jax.random.split(jax.random.key(seed), len(observations))
    rows = (keys, *in_default_precision((starts, inputs, observations, truth)))
    program = _program(learner, functools.partial(_one, problem, judge, before, number))
    return {name: np.asarray(values) for name, values in program(learner, rows).items()}


def _program(learner: AnyLearner, one: Callable[..., dict[str, Array]]) -> Callable[..., dict[str, Array]]:
    """Sequences one after the other: the memory is that of one."""
    return jax.jit(lambda learner, rows: jax.lax.map(functools.partial(one, learner), rows))


def _one(
    problem: Problem,
    judge: Judge,
    foresee: Judge | None,
    count: int,
    learner: AnyLearner,
    row: tuple[Array, Array | None, PyTree, Array, PyTree],
) -> dict[str, Array]:
    key, start, xs, ys, truths = row
    first, second, third = jax.random.split(key, 3)

    def step(
        belief: AnyBelief, now: tuple[PyTree, Array, PyTree, Array]
    ) -> tuple[AnyBelief, dict[str, Array]]:
        x, y, truth, number = now
        before = learner.predict(belief)
        one = jax.random.fold_in(third, number)
        scores: dict[str, Array] = {}
        if foresee is not None:
            keys = jax.random.fold_in(one, 2), jax.random.fold_in(one, 3)
            scores |= foresee(weighted_set(before, count, keys[0]), truth, keys[1])
        if not problem.model.batched:
            scores["forecast"] = learner.forecast(before, x).log_prob(y)
        belief, info = learner.update(before, x, y, key=second)
        particles = weighted_set(belief, count, jax.random.fold_in(one, 0))
        scores |= judge(particles, truth, jax.random.fold_in(one, 1))
        extra = {
            "evidence": info.log_evidence,
            "ok": info.ok,
            "ess": 1.0 / jnp.sum(jnp.exp(2.0 * particles.log_weights)),
        }
        return belief, scores | extra

    numbers = jnp.arange(ys.shape[0])
    _, scores = jax.lax.scan(step, problem.begin(learner, first, start), (xs, ys, truths, numbers))
    return scores
