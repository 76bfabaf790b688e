"""The learners of `bong-sarcos`: one pass of a network with a low-rank belief."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, TypedDict

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.beliefs import Gaussian
from credo.core.names import CurvatureName, RuleName
from credo.core.types import Array
from credo_papers.bong.bong_grid import make_curvature, make_learner
from credo_papers.bong.bong_sarcos_plan import NOISE_SHARE, RANK, SAMPLES
from credo_papers.bong.bong_sarcos_world import Orders
from credo_papers.engine.sweep import One

__all__ = ["SarcosProgram", "build"]

Rows: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""All rows and targets, and the rows and targets of the test."""


class SarcosProgram(TypedDict):
    """The settings that the compiled program of a learner depends on."""

    rule: RuleName
    curvature: CurvatureName
    iterations: int
    times: list[int]


def build(program: SarcosProgram) -> One[Orders, Rows]:
    """Return the function of one order: the plug-in NLPD before any row and at each of the times.

    Arguments:
        program: the learner, and the times.
    """
    net = credo.MLP(1, (20, 20), activation="gelu")

    def one(values: Mapping[str, Array], stream: Orders, shared: Rows) -> dict[str, Array]:
        x, y, x_test, y_test = (jnp.asarray(rows) for rows in shared)
        learner = make_learner(
            program["rule"],
            credo.Model(net, credo.Normal(NOISE_SHARE)),
            credo.LowRank(RANK),
            make_curvature(program["curvature"], SAMPLES),
            learning_rate=values["rate"],
            iterations=program["iterations"],
        )
        key = jax.random.key(stream["key"])
        belief = learner.init(net.init(key, (21,)), var=values["var"])
        order = jnp.asarray(stream["order"])

        def score(belief: Gaussian) -> Array:
            return -jnp.mean(learner.forecast_rows(belief, x_test, method="plugin").log_prob(y_test))

        def step(belief: Gaussian, row: Array) -> tuple[Gaussian, Array]:
            belief, info = learner.step(belief, x[row], y[row], key=key)
            return belief, info.ok

        losses = [score(belief)]
        oks = []
        start = 0
        for time in program["times"]:
            belief, ok = jax.lax.scan(step, belief, order[start:time])
            losses = [*losses, score(belief)]
            start = time
            oks.append(ok)
        return {"nlpd": jnp.stack(losses), "ok": jnp.mean(jnp.concatenate(oks))}

    return one
