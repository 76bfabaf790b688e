"""A curve in pieces: quadratics in the distance from where the piece began, each joined to the last.

Features depend on the segment, so each hypothesis carries its own origin (`LocalPolynomial`). RL-PR lets a
new piece begin anywhere; RL-MMPR lets it begin where the mixture of all hypotheses says the curve is
(`Continuous`), which is how these curves were made; CPT-MMPR where each hypothesis says it is.
"""

from __future__ import annotations

import functools

import numpy as np

import credo
from credo.adapt import ChangeTimes, Continuous, LocalPolynomial, RunLength
from credo.core.types import Array
from credo.covariances import Full
from credo.learners import RecursiveLearner
from credo_papers.bone.bone_learner import TracedValues, online
from credo_papers.bone.bone_peers import NEIGHBOURS, river_regressors
from credo_papers.bone.bone_plan import BoneProgram, Method, Plan, grid
from credo_papers.bone.bone_table import run_plan
from credo_papers.bone.bone_world import Streams, draw_regimes
from credo_papers.engine.any_learner import AnyLearner

__all__ = ["PLAN", "build", "piecewise_polynomial", "run"]

# World


def piecewise_polynomial(rng: np.random.Generator) -> Streams:
    """Draw quadratics in x minus the x at which the segment began; each begins where the last one ends.

    There are 500 points x, sorted over (-5, 5), of which the first 300 are used. A segment begins with
    probability 0.01, and has a slope and a curvature from U(-3, 3). The noise has a standard deviation of
    0.2.
    """
    steps = 300
    change, regime = draw_regimes(rng, steps, 0.01)
    x = np.sort(rng.uniform(-5, 5, 500))[:steps]
    shape = rng.uniform(-3, 3, size=(regime[-1] + 1, 2))
    level = rng.uniform(-3, 3)
    starts = np.flatnonzero(change | (np.arange(steps) == 0))
    truth = np.empty(steps)
    for number, first in enumerate(starts):
        last = starts[number + 1] if number + 1 < len(starts) else steps
        # The first x of the next segment too: the value there is its level.
        gap = x[first : last + 1] - x[first]
        value = level + gap * shape[number, 0] + gap**2 * shape[number, 1]
        truth[first:last] = value[: last - first]
        level = value[-1]
    return Streams(x[:, None], truth + 0.2 * rng.normal(size=steps), truth, change, np.zeros(3))


# Learner

NOISE_VAR = 0.04


def _local(w: Array, x: Array) -> Array:
    return x @ w


def _global(w: Array, x: Array) -> Array:
    return w[0] + x[0] * w[1] + x[0] * x[0] * w[2]


def _inner(program: BoneProgram, values: TracedValues) -> AnyLearner:
    whole = program.get("features", "local") == "global"
    model = credo.Model(_global if whole else _local, credo.Normal(NOISE_VAR))
    learner = RecursiveLearner(model, Full("dense"))
    if whole:
        return learner
    piece = LocalPolynomial(learner, 2)
    pieces = program.get("pieces")
    capacity = program.get("capacity", 0)
    if pieces == "one":
        return piece
    if pieces == "reset":
        return RunLength(piece, values["hazard"], capacity)
    wrapper = ChangeTimes if pieces == "each" else RunLength
    return wrapper(piece, values["hazard"], capacity, Continuous(values["jump"]))


build = functools.partial(online, _inner)
"""`build(program)` makes the function of one stream; see `online`."""


# Plan

VAR = 3.0
HAZARDS = (0.003, 0.01, 0.03)


def _reset(capacity: int, published: float, note: str = "") -> Method:
    program: BoneProgram = {"pieces": "reset", "capacity": capacity}
    return Method(f"RL[{capacity}]-PR", program, grid(hazard=HAZARDS, var=VAR), published, note)


def _joined(capacity: int, published: float | None, note: str = "") -> Method:
    program: BoneProgram = {"pieces": "joined", "capacity": capacity}
    values = grid(hazard=HAZARDS, jump=(0.0, 1e-3), var=VAR)
    return Method(f"RL[{capacity}]-MMPR", program, values, published, note, quick=capacity == 5)


PLAN = Plan(
    name="bone-polynomial",
    title="A curve in pieces: the value carries over a change, the shape does not",
    draw=piecewise_polynomial,
    build=build,
    methods=[
        Method("one polynomial", {"pieces": "one"}, grid(var=VAR), "median ~6 (C-F)", adaptive=False),
        Method(
            "forgetting RLS on (1, x, x^2)",
            {"method": "forgetting", "features": "global"},
            grid(forgetting=(0.5, 0.6, 0.7, 0.8, 0.9), var=(3.0, 10.0)),
            note="the peer: Kalman with simple inflation",
        ),
        _reset(1, 6.09, "measured before: .555"),
        _reset(5, 3.93, "measured before: .363"),
        _reset(10, 3.51),
        _joined(1, 2.87, "measured before: 1.07"),
        _joined(5, 2.22, "measured before: .237"),
        _joined(10, 2.19),
        _joined(20, None, "measured before: .231"),
        Method(
            "CPT[20]-MMPR",
            {"pieces": "each", "capacity": 20},
            grid(hazard=HAZARDS, jump=0.0, var=VAR),
            note="a successor for every hypothesis",
        ),
    ],
    world={
        "steps": 300,
        "model": "y = a + b u + c u^2 + N(0, .2^2), u = x - the first x of the segment",
        "x": "500 sorted draws of U(-5, 5), of which the first 300",
        "hazard": 0.01,
        "a": "where the segment before ends (the first: U(-3, 3))",
        "b, c": "U(-3, 3)",
        "published": "means of the RMSE to y over 100 streams of about 500 points; coefficients not known",
    },
    to_observation=True,
    peers=[NEIGHBOURS, *river_regressors()],
    target="target: RMSE to y .24; the noise alone is .2",
)

# Run

run = functools.partial(run_plan, PLAN)
"""Tunes every method on some streams, and scores it on others."""
