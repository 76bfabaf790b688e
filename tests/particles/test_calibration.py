"""Calibration by simulation: truths that come from the prior have uniform ranks among the particles."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.flows.test_operator import bent

import credo
from credo.core.types import Array
from credo.flows import Guard

MODEL = credo.Model(lambda z, x: z[0] + 0.5 * z[1], credo.StudentT(0.5, 3.0, "weighted"))
MOVE = jnp.array([[0.9, 0.3], [-0.3, 0.9]])
WALK = credo.LinearGaussian(MOVE, cov=0.25)
RUNS, STEPS = 300, 3


def ranks(learner: Any, key: Array) -> Array:
    """The weight (2,) of the particles below the truth after some observations with heavy tails."""
    first, second, third = jax.random.split(key, 3)
    belief = learner.init(jnp.zeros(2), var=1.0, key=first)

    def step(carry: tuple[Any, Array], key: Array) -> tuple[tuple[Any, Array], Array]:
        belief, truth = carry
        move, look = jax.random.split(key)
        truth = MOVE @ truth + 0.5 * jax.random.normal(move, (2,))
        y = MODEL.likelihood.sample(MODEL.outputs(truth, belief.unravel, None), look)
        belief, info = learner.step(belief, None, y)
        return (belief, truth), info.ok

    start = (belief, jax.random.normal(second, (2,)))
    (belief, truth), ok = jax.lax.scan(step, start, jax.random.split(third, STEPS))
    below = jnp.exp(belief.log_weights) @ jnp.where(belief.values < truth[None, :], 1.0, 0.0)
    return jnp.where(jnp.all(ok), below, jnp.nan)


@pytest.mark.parametrize("method", ["bootstrap", "guarded flow"])
def test_the_truth_has_uniform_ranks_among_the_particles(method: str) -> None:
    learner: Any = credo.particle_filter(MODEL, 128, dynamics=WALK)
    if method == "guarded flow":
        operator = bent(dim=2, width=2, hidden=4, embedding=0, steps=1)
        # a third of the way from the identity: an operator that is wrong, but not absurd
        params = jax.tree.map(lambda a, b: b + 0.3 * (a - b), operator.params, operator.start(0))
        operator = credo.replace(operator, params=params)
        guard = Guard(move=None)
        learner = credo.pfbr(MODEL, operator, 100, WALK, density="transitions", guard=guard)
    keys = jax.random.split(jax.random.key(0), RUNS)
    found = np.asarray(jax.jit(lambda keys: jax.lax.map(lambda key: ranks(learner, key), keys))(keys))
    for column in found.T:
        assert stats.kstest(column, "uniform").pvalue > 0.01
        # no point mass in the tails, which a set that is too narrow would have
        assert abs(np.mean((column > 0.05) & (column < 0.95)) - 0.9) < 4 * np.sqrt(0.09 / RUNS)
