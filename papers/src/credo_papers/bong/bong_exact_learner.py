"""The learners of `bong-linreg` and `bong-logreg`: every cell of the grid on ten weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

import jax
import jax.numpy as jnp

import credo
from credo.beliefs import Gaussian
from credo.core.types import Array
from credo_papers.bong.bong_exact_plan import ITERATIONS, RANK, SAMPLES, Cell
from credo_papers.bong.bong_exact_world import NOISE_VAR, D, Streams, Task
from credo_papers.bong.bong_grid import make_curvature, make_family, make_learner
from credo_papers.engine.sweep import One

__all__ = ["ExactProgram", "build"]


class ExactProgram(TypedDict):
    """The settings that the compiled program of a cell depends on."""

    cell: Cell
    task: Task
    times: list[int]


def _linear(w: Array, x: Array) -> Array:
    return x @ w


def build(program: ExactProgram) -> One[Streams, None]:
    """Return the function of one stream: means, dense covariances, and the share of accepted updates.

    Arguments:
        program: the cell, the task, and the times at which to look at the belief.
    """
    family, curvature, rule = program["cell"]
    likelihood = credo.Normal(NOISE_VAR) if program["task"] == "linreg" else credo.Bernoulli()
    times = jnp.asarray(program["times"])

    def one(values: Mapping[str, Array], stream: Streams, shared: None) -> dict[str, Array]:
        learner = make_learner(
            rule,
            credo.Model(_linear, likelihood),
            make_family(family, RANK),
            make_curvature(curvature, SAMPLES, RANK),
            learning_rate=values["rate"],
            iterations=ITERATIONS,
        )
        key = jax.random.key(stream["key"])

        def step(belief: Gaussian, row: tuple[Array, Array]) -> tuple[Gaussian, tuple[Array, Array, Array]]:
            belief, info = learner.step(belief, *row, key=key)
            return belief, (belief.mean, belief.cov.dense(), info.ok)

        rows = (jnp.asarray(stream["x"]), jnp.asarray(stream["y"]))
        _, (means, covs, ok) = jax.lax.scan(step, learner.init(jnp.zeros(D), var=1.0), rows)
        return {"mean": means[times - 1], "cov": covs[times - 1], "ok": jnp.mean(ok)}

    return one
