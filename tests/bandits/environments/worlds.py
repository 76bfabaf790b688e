"""Small worlds of every kind, and how the tests run them."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

import credo
from credo.bandits import environments
from credo.core.types import Array, PyTree

STEPS = 12
ROWS = np.arange(15.0).reshape(5, 3)
LABELS = np.array([0, 1, 2, 1, 0])
PLAN = np.array([[True, False, True], [False, True, True]])

WORLDS: dict[str, environments.AnyEnvironment] = {
    "bernoulli": environments.BernoulliArms(
        chances=np.array([0.2, 0.9, 0.5]), motion=environments.Drifts(0.003)
    ),
    "gaussian": environments.GaussianArms(3, var=np.array([1.0, 4.0, 9.0]), motion=environments.Jumps(0.2)),
    "linear": environments.ContextualArms(3, 4, distribution="sphere", motion=environments.Drifts(0.01)),
    "products": environments.Products(3, 2, likelihood=credo.Bernoulli(), turnover=0.5),
    "wheel": environments.RewardUnit(environments.Wheel(0.5), 50.0),
    "rows": environments.Intercept(environments.Classification(ROWS, LABELS, noise_var=0.01)),
    "known": environments.KnownRewards({"a": ROWS}, ROWS),
    "replay": environments.LoggedReplay(
        ROWS, LABELS, np.array([1.0, np.nan, 2.0, 3.0, 0.5]), np.array([0.2, 0.5, 1.0, 0.5, 0.2])
    ),
    "chance": environments.ArmsByChance(environments.GaussianArms(3), 0.3, 0.3, present=1),
    "plan": environments.ArmsByPlan(environments.GaussianArms(3), PLAN),
}


class Steps(NamedTuple):
    """What happened in every step of a run, with a leading axis of steps."""

    context: environments.Context
    means: Array
    reward: Array
    regret: Array


def step(world: environments.AnyEnvironment, state: Any, key: Array, arm: Array) -> tuple[Any, Steps]:
    now, later = jax.random.split(key)
    seen = Steps(
        world.context(state),
        world.means(state),
        world.reward(state, arm, now),
        world.regret(state, arm),
    )
    return world.advance(state, arm, later), seen


@jax.jit
def run(world: environments.AnyEnvironment, key: Array, arms: Array) -> tuple[PyTree, Steps]:
    """A run as one scan: the last state, and all steps."""
    first, rest = jax.random.split(key)
    keys = jax.random.split(rest, len(arms))
    return jax.lax.scan(lambda state, row: step(world, state, *row), world.start(first), (keys, arms))


def run_in_a_loop(world: environments.AnyEnvironment, key: Array, arms: Array) -> tuple[PyTree, Steps]:
    """The same run, step by step."""
    first, rest = jax.random.split(key)
    keys, one = jax.random.split(rest, len(arms)), jax.jit(step)
    state, steps = jax.jit(lambda key: world.start(key))(first), []
    for key, arm in zip(keys, arms, strict=True):
        state, seen = one(world, state, key, arm)
        steps.append(seen)
    return state, jax.tree.map(lambda *leaves: jax.numpy.stack(leaves), *steps)


runs = jax.jit(jax.vmap(run, in_axes=(None, 0, None)))
"""Many runs at once, one for every key."""
