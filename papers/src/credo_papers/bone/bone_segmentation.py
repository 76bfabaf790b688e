"""Piecewise linear regression: how well the regime is found again after each change, and when it began.

300 steps of a quadratic in x whose three weights are drawn again with probability 0.009 (BONE, section on
segmentation). The exact filter keeps all run lengths; five are enough.
"""

from __future__ import annotations

import functools

import numpy as np

import credo
from credo.covariances import Full
from credo.learners import RecursiveLearner
from credo_papers.bone.bone_figure import draw_run_lengths
from credo_papers.bone.bone_learner import TracedValues, online
from credo_papers.bone.bone_peers import NEIGHBOURS, river_regressors
from credo_papers.bone.bone_plan import BoneProgram, Method, Plan, grid
from credo_papers.bone.bone_table import run_plan
from credo_papers.bone.bone_world import Streams, draw_regimes, powers
from credo_papers.engine.any_learner import AnyLearner

__all__ = ["PLAN", "build", "piecewise_linear", "run"]

# World


def piecewise_linear(rng: np.random.Generator) -> Streams:
    """Draw 300 steps of y = (1, x, x^2) w + N(0, 1), x ~ U(-2, 2).

    w ~ N(0, 3 I) is drawn again with probability 0.009.
    """
    change, regime = draw_regimes(rng, 300, 0.009)
    features = powers(rng.uniform(-2, 2, 300))
    weights = rng.normal(size=(regime[-1] + 1, 3)) * np.sqrt(3.0)
    truth = np.sum(features * weights[regime], axis=1)
    return Streams(features, truth + rng.normal(size=300), truth, change, np.zeros(3))


# Learner

MODEL = credo.Model(lambda w, x: x @ w, credo.Normal(1.0))


def _inner(program: BoneProgram, values: TracedValues) -> AnyLearner:
    return RecursiveLearner(MODEL, Full("dense"))


build = functools.partial(online, _inner)
"""`build(program)` makes the function of one stream; see `online`."""


# Plan

HAZARDS = (0.003, 0.009, 0.03)
VAR = 3.0  # of the weights, as drawn


def _run_lengths(capacity: int, note: str) -> Method:
    program: BoneProgram = {"method": "rl-pr", "capacity": capacity}
    return Method(f"RL[{capacity}]-PR", program, grid(hazard=HAZARDS, var=VAR), note=note)


PLAN = Plan(
    name="bone-segmentation",
    title="Piecewise linear regression: scores, and when the regime began (RL[5]-PR)",
    draw=piecewise_linear,
    build=build,
    methods=[
        Method(
            "C-Static", {"method": "static"}, grid(var=VAR), None, "measured before: 2.655", adaptive=False
        ),
        Method(
            "C-ACI", {"method": "aci"}, grid(q=(0.01, 0.03, 0.1, 0.3), var=VAR), note="measured before: 1.144"
        ),
        Method(
            "C-OU",
            {"method": "ou"},
            grid(gamma=(0.95, 0.97, 0.98, 0.99, 0.995), var=VAR),
            note="measured before: 1.138",
        ),
        Method(
            "forgetting RLS",
            {"method": "forgetting"},
            grid(forgetting=(0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95), var=VAR),
            note="the peer: Kalman with simple inflation; measured before: 1.16",
            quick=True,
        ),
        _run_lengths(1, "measured before: .853"),
        Method(
            "RL[5]-PR",
            {"method": "rl-pr", "capacity": 5, "lengths": 200},
            grid(hazard=HAZARDS, var=VAR),
            note="measured before: .805 ± .05 on 30 other streams",
            quick=True,
        ),
        _run_lengths(300, "exact Bayes for this world; measured before: .806 ± .05"),
        Method("RLCC[10]-PR", {"method": "rlcc-pr", "capacity": 10}, grid(b=(30.0, 100.0, 300.0), var=VAR)),
        Method(
            "RL[1]-OUPR*",
            {"method": "rl-oupr"},
            grid(hazard=(0.001, *HAZARDS, 0.1), var=VAR),
            note="measured before: .957",
        ),
        Method("CPP-OU", {"method": "cpp-ou"}, grid(strength=(3.0, 10.0, 30.0, 100.0), var=VAR)),
        Method("ME-OU(8)", {"method": "experts"}, grid(switching=(0.01, 0.03, 0.1, 0.2), var=VAR)),
    ],
    world={
        "steps": 300,
        "model": "y = (1, x, x^2) w + N(0, 1), x ~ U(-2, 2)",
        "hazard": 0.009,
        "weights": "N(0, 3 I) in each regime",
        "published": "a heat map only",
    },
    peers=[NEIGHBOURS, *river_regressors()],
    target="measured before: .805 ± .05 (RL[5]-PR, 30 other streams), exact Bayes .806",
    figure=draw_run_lengths,
)

# Run

run = functools.partial(run_plan, PLAN)
"""Tunes every method on some streams, and scores it on others."""
