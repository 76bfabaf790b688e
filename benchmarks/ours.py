"""credo's cases."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from timing import Row, Table, seconds

import credo
from credo.core.names import CurvatureName
from credo.covariances import Family


def linear(w: jax.Array, x: jax.Array) -> jax.Array:
    """A linear model."""
    return x @ w


def megabytes(belief: object) -> float:
    """The size of a belief."""
    return sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(belief)) / 1e6


def scan(
    table: Table,
    group: str,
    what: str,
    learner: credo.Learner[Any],
    belief: Any,
    x: np.ndarray,
    y: np.ndarray,
) -> float:
    """Rows a second of one compiled scan."""
    xs = jnp.asarray(x)
    ys = jnp.asarray(y)
    best, first = seconds(lambda: jax.block_until_ready(credo.run(learner, belief, xs, ys)))
    return table.add(Row(group, what, len(x) / best, first - best, megabytes(belief)))


def loop(
    table: Table,
    group: str,
    what: str,
    learner: credo.Learner[Any],
    belief: Any,
    x: np.ndarray,
    y: np.ndarray,
) -> float:
    """Rows a second of a Python loop of `step`, one row at a time."""

    def go() -> None:
        state = belief
        for a, b in zip(x, y, strict=True):
            state, _ = learner.step(state, a, b)
        jax.block_until_ready(state)

    best, _ = seconds(go)
    return table.add(Row(group, what, len(x) / best, None, megabytes(belief)))


def regression(size: int) -> tuple[credo.Learner[Any], Any]:
    """Bayesian linear regression with known noise, full covariance."""
    learner = credo.extended_kalman(credo.Model(linear, credo.Normal(1.0)))
    return learner, learner.init(jnp.zeros(size))


def logistic(
    size: int, family: Family, curvature: CurvatureName = "lin-hess"
) -> tuple[credo.Learner[Any], Any]:
    """Bayesian logistic regression."""
    learner = credo.bong(credo.Model(linear, credo.Bernoulli()), family, curvature)
    return learner, learner.init(jnp.zeros(size))


def network(
    width: int, inputs: int, family: Family, curvature: CurvatureName = "lin-hess"
) -> tuple[credo.Learner[Any], Any, int]:
    """A classifier inputs-width-10 with a Gaussian over all its weights."""
    net = credo.MLP(10, (width,))
    params = net.init(0, (inputs,))
    learner = credo.bong(credo.Model(net, credo.Categorical(10)), family, curvature)
    belief = learner.init(params, var=0.01)
    return learner, belief, belief.size
