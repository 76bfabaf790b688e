"""The learners of `bone-bandit`: one for every arm, and Thompson sampling between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import jax
import jax.numpy as jnp

import credo
from credo.core.trees import as_like
from credo.core.types import Array, Key
from credo.covariances import Diagonal
from credo.experiments.bone.bone_bandit_world import ARMS, Worlds
from credo.experiments.bone.bone_learner import TracedValues, make
from credo.experiments.bone.bone_plan import BoneProgram
from credo.experiments.engine.any_learner import AnyBelief, AnyLearner
from credo.experiments.engine.sweep import One
from credo.learners import BetaBernoulli, RecursiveLearner

__all__ = ["build"]

MODEL = credo.Model(lambda w, x: w, credo.Bernoulli())

State: TypeAlias = tuple[AnyBelief, Key]
"""The beliefs of all arms, and the key of the choices."""


def _arm(program: BoneProgram, values: TracedValues) -> AnyLearner:
    if program.get("method") == "beta":
        return BetaBernoulli(forgetting=values["forgetting"])
    return make(RecursiveLearner(MODEL, Diagonal()), program, values)


def build(program: BoneProgram) -> One[Worlds, None]:
    """Return the function of one world: for each 50th part of it, the pseudo-regret and the published regret.

    Arguments:
        program: see `bone_learner.make`; the method "beta" is a conjugate learner.
    """

    def one(values: Mapping[str, Array], world: Worlds, shared: None) -> dict[str, Array]:
        learner = _arm(program, values)
        first = learner.init(jnp.zeros(1), var=values.get("var", 1.0))
        beliefs = jax.tree.map(lambda leaf: jnp.stack([leaf] * ARMS), first)
        key = jax.random.wrap_key_data(jnp.asarray(world.key))

        def pull(state: State, row: tuple[Array, Array]) -> tuple[State, Array]:
            beliefs, key = state
            chance, reward = row
            beliefs = jax.vmap(learner.predict)(beliefs)
            mean, sd = jax.vmap(lambda belief: (belief.mean, jnp.sqrt(belief.var)))(beliefs)
            mean, sd = mean.reshape(ARMS), sd.reshape(ARMS)
            key, draw = jax.random.split(key)
            noise = jax.random.normal(draw, (ARMS,), mean.dtype)
            arm = jnp.argmax(mean + as_like(values["explore"], mean) * sd * noise)
            weights = (jnp.arange(ARMS) == arm).astype(mean.dtype)

            def learn(belief: AnyBelief, y: Array, weight: Array) -> AnyBelief:
                return learner.update(belief, jnp.zeros(()), y, weight=weight)[0]

            regret = jnp.stack([jnp.max(chance) - chance[arm], jnp.max(reward) - reward[arm]])
            return (jax.vmap(learn)(beliefs, reward, weights), key), regret

        rows = (jnp.asarray(world.chance), jnp.asarray(world.reward))
        regrets: Array = jax.lax.scan(pull, (beliefs, key), rows)[1]
        parts = regrets.reshape(50, -1, 2).sum(axis=1)
        return {"pseudo": parts[:, 0], "realised": parts[:, 1]}

    return one
