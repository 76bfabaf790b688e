"""The learners of `bone-prices`: a logistic regression that must keep up."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping

import jax
import jax.numpy as jnp

import credo
from credo.core.types import Array, ArrayLike
from credo.covariances import Full
from credo.learners import RecursiveLearner
from credo_papers.bone.bone_learner import TracedValues, make
from credo_papers.bone.bone_plan import BoneProgram
from credo_papers.engine.any_learner import AnyBelief, AnyLearner
from credo_papers.engine.plain_data import Values

__all__ = ["make_learner", "probabilities"]


def _linear(w: Array, x: Array) -> Array:
    return x @ w


def make_learner(program: BoneProgram, values: TracedValues) -> AnyLearner:
    """Return a method around a logistic regression; see `bone_learner.make`."""
    inner = RecursiveLearner(credo.Model(_linear, credo.Bernoulli()), Full("dense"))
    return make(inner, program, values)


def probabilities(program: BoneProgram, values: Values, x: ArrayLike, y: ArrayLike) -> Array:
    """Return P(y = 1) of each row before it is learned (T,).

    Arguments:
        program, values: see `make_learner`.
        x, y: inputs (T, F) and labels (T,).
    """
    chances: Array = _probabilities(json.dumps(program, sort_keys=True), values, x, y)
    return chances


@functools.partial(jax.jit, static_argnums=0)
def _probabilities(text: str, values: Mapping[str, Array], x: Array, y: Array) -> Array:
    program: BoneProgram = json.loads(text)
    learner = make_learner(program, values)

    def step(belief: AnyBelief, row: tuple[Array, Array]) -> tuple[AnyBelief, Array]:
        belief = learner.predict(belief)
        chance = learner.forecast(belief, row[0]).mean
        return learner.update(belief, *row)[0], chance

    chances: Array = jax.lax.scan(step, learner.init(jnp.zeros(x.shape[1])), (x, y))[1]
    return chances
