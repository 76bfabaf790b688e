"""The drift of a diffusion, dy = 0.8 (m - y) dt + dB, whose level m changes: learned from its increments.

The signal is small: one increment over dt = 0.01 has noise of standard deviation 10 in units of the drift, so
hundreds of steps say when the level changed. The publication shows plots only.
"""

from __future__ import annotations

import functools

import numpy as np

import credo
from credo.covariances import Full
from credo.learners import RecursiveLearner
from credo_papers.bone.bone_learner import TracedValues, online
from credo_papers.bone.bone_peers import river_regressors
from credo_papers.bone.bone_plan import BoneProgram, Method, Plan, grid
from credo_papers.bone.bone_table import run_plan
from credo_papers.bone.bone_world import Streams, draw_regimes
from credo_papers.engine.any_learner import AnyLearner

__all__ = ["PLAN", "build", "run", "two_regimes"]

# World


def two_regimes(rng: np.random.Generator) -> Streams:
    """Draw 5,000 steps of length 0.01 of dy = 0.8 (m - y) dt + dB.

    The level m is drawn from N(0, 4^2) again with probability 0.001. x = (1, y), and the observation is the
    increment of y over dt, whose noise has variance 100.
    """
    steps = 5000
    rate = 0.8
    dt = 0.01
    change, regime = draw_regimes(rng, steps, 0.001)
    levels = 4.0 * rng.normal(size=regime[-1] + 1)
    noise = np.sqrt(dt) * rng.normal(size=steps)
    place = 0.0
    x = np.empty((steps, 2))
    truth = np.empty(steps)
    for t in range(steps):
        x[t] = 1.0, place
        truth[t] = rate * (levels[regime[t]] - place)
        place += truth[t] * dt + noise[t]
    return Streams(x, truth + noise / dt, truth, change, np.zeros(2))


# Learner

MODEL = credo.Model(lambda w, x: x @ w, credo.Normal(100.0))


def _inner(program: BoneProgram, values: TracedValues) -> AnyLearner:
    return RecursiveLearner(MODEL, Full("dense"))


build = functools.partial(online, _inner)
"""`build(program)` makes the function of one stream; see `online`."""


# Plan

HAZARDS = (0.0003, 0.001, 0.003)
VARS = (1.0, 3.0, 10.0)


def _run_lengths(capacity: int) -> Method:
    program: BoneProgram = {"method": "rl-pr", "capacity": capacity}
    return Method(f"RL[{capacity}]-PR", program, grid(hazard=HAZARDS, var=VARS), quick=capacity == 10)


PLAN = Plan(
    name="bone-sde",
    title="The drift of a diffusion whose level changes",
    draw=two_regimes,
    build=build,
    methods=[
        Method("C-Static", {"method": "static"}, grid(var=VARS), adaptive=False),
        Method("C-ACI", {"method": "aci"}, grid(q=(1e-4, 1e-3, 1e-2, 1e-1), var=VARS)),
        Method("C-OU", {"method": "ou"}, grid(gamma=(0.99, 0.995, 0.998, 0.999), var=VARS)),
        Method(
            "forgetting RLS",
            {"method": "forgetting"},
            grid(forgetting=(0.99, 0.995, 0.998, 0.999), var=VARS),
            note="the peer: Kalman with simple inflation",
        ),
        _run_lengths(1),
        _run_lengths(10),
        _run_lengths(50),
        Method("RL[1]-OUPR*", {"method": "rl-oupr"}, grid(hazard=(1e-5, 1e-4, *HAZARDS), var=VARS)),
        Method("ME-OU(8)", {"method": "experts"}, grid(switching=(1e-4, 1e-3, 1e-2), var=VARS)),
    ],
    world={
        "steps": 5000,
        "dt": 0.01,
        "model": "dy = .8 (m - y) dt + dB, observed as dy / dt",
        "hazard": 0.001,
        "levels": "m ~ N(0, 4^2) in each regime",
        "published": "plots only",
    },
    within=500,
    peers=river_regressors()[:1],
    seeds={"quick": (4, 8), "full": (20, 40)},
)

# Run

run = functools.partial(run_plan, PLAN)
"""Tunes every method on some streams, and scores it on others."""
