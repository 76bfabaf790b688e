"""A learner goes through sequences of observations, and every belief is scored on the way."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.types import Array, PyTree
from credo_papers.engine.any_learner import AnyBelief, AnyLearner
from credo_papers.engine.hasty import hasty
from credo_papers.engine.plain_data import Arrays
from credo_papers.pfbr.pfbr_problem import Method, Problem, in_default_precision
from credo_papers.pfbr.pfbr_scores import WeightedSet, weighted_set

__all__ = ["Judge", "follow"]

Judge: TypeAlias = Callable[[WeightedSet, PyTree, Array], Mapping[str, Array]]
"""`judge(particles, truth, key)` returns the scores of a set; `truth` is what is known at this step."""


def follow(  # noqa: PLR0913 - settings, each by its name
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
    haste: bool = False,
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
        haste: whether programs need not be fast but quickly compiled.

    Returns:
        Scores by name (n, T): those of the judge; "forecast", the log score of the forecast before each
        observation; "evidence", what the learner says of it; "ok", whether it was taken in; and "ess".
    """
    number = count if method.particles is None else method.particles
    learner = method.build(problem, number)
    keys = jax.random.split(jax.random.key(seed), len(observations))
    rows = (keys, *in_default_precision((starts, inputs, observations, truth)))
    compiled = hasty if haste else jax.jit
    way = compiled(functools.partial(_way, problem, number, before is not None))
    found: list[dict[str, Array]] = []
    for place in range(len(observations)):  # one after the other: the memory is that of one sequence
        row = jax.tree.map(lambda leaf, place=place: leaf[place], rows)
        sets = way(learner, row)
        scores = sets.scores | _judging(judge, haste)(sets.after, row[-1], sets.after_keys)
        if before is not None:
            scores |= _judging(before, haste)(sets.before, row[-1], sets.before_keys)
        found.append(scores)
    return {name: np.stack([np.asarray(scores[name]) for scores in found]) for name in found[0]}


class _Way(NamedTuple):
    """The traces of a learner at each of T steps: its own scores, and the sets that a judge scores, before
    (None if no judge asks for it) and after the observation, with the keys of the judges.
    """

    scores: dict[str, Array]
    after: WeightedSet
    after_keys: Array
    before: WeightedSet | None
    before_keys: Array


@functools.lru_cache(maxsize=16)
def _judging(judge: Judge, haste: bool) -> Callable[..., dict[str, Array]]:
    """The program of a judge, which all methods share: scores take longer to compile than most learners."""

    def judged(sets: WeightedSet, truths: PyTree, keys: Array) -> dict[str, Array]:
        scores: dict[str, Array] = jax.lax.map(lambda row: dict(judge(*row)), (sets, truths, keys))
        return scores

    if haste:
        return hasty(judged)
    return jax.jit(judged)


def _way(
    problem: Problem,
    count: int,
    foresees: bool,
    learner: AnyLearner,
    row: tuple[Array, Array | None, PyTree, Array, PyTree],
) -> _Way:
    key, start, xs, ys, _ = row
    first, second, third = jax.random.split(key, 3)

    def step(belief: AnyBelief, now: tuple[PyTree, Array, Array]) -> tuple[AnyBelief, _Way]:
        x, y, number = now
        ahead = learner.predict(belief)
        one = jax.random.fold_in(third, number)
        before = weighted_set(ahead, count, jax.random.fold_in(one, 2)) if foresees else None
        scores: dict[str, Array] = {}
        if not problem.model.batched:
            scores["forecast"] = learner.forecast(ahead, x).log_prob(y)
        belief, info = learner.update(ahead, x, y, key=second)
        after = weighted_set(belief, count, jax.random.fold_in(one, 0))
        scores |= {
            "evidence": info.log_evidence,
            "ok": info.ok,
            "ess": 1.0 / jnp.sum(jnp.exp(2.0 * after.log_weights)),
        }
        keys = jax.random.fold_in(one, 1), jax.random.fold_in(one, 3)
        return belief, _Way(scores, after, keys[0], before, keys[1])

    numbers = jnp.arange(ys.shape[0])
    _, way = jax.lax.scan(step, problem.begin(learner, first, start), (xs, ys, numbers))
    return way
