"""Changes among outliers: a run-length filter takes every outlier for a change, unless the learner is robust.

300 steps of a quadratic in x whose weights are drawn again with probability 0.01, under noise of Student's t
with 2.01 degrees of freedom, whose variance is 201. Tuning minimises the mean absolute error to y: densities
of a normal forecast say little here.
"""

from __future__ import annotations

import functools

import numpy as np

import credo
from credo.adapt import StudentTNoise, WoLF
from credo.core.records import replace
from credo.covariances import Full
from credo.dynamics import RandomWalk
from credo.learners import RecursiveLearner
from credo_papers.bone.bone_learner import TracedValues, online
from credo_papers.bone.bone_peers import NEIGHBOURS, river_regressors
from credo_papers.bone.bone_plan import BoneProgram, Method, Plan, grid
from credo_papers.bone.bone_table import run_plan
from credo_papers.bone.bone_world import Streams, draw_regimes, powers
from credo_papers.engine.any_learner import AnyLearner

__all__ = ["PLAN", "build", "heavy_tails", "run"]

# World


def heavy_tails(rng: np.random.Generator) -> Streams:
    """Draw 300 steps of y = (1, x, x^2) w + t, x ~ U(-2, 2), t of Student's with 2.01 degrees of freedom.

    w begins at (1, 1, 1) and is U(-3, 3)^3 again with probability 0.01.
    """
    change, regime = draw_regimes(rng, 300, 0.01)
    features = powers(rng.uniform(-2, 2, 300))
    weights = np.concatenate([np.ones((1, 3)), rng.uniform(-3, 3, size=(regime[-1], 3))])
    truth = np.sum(features * weights[regime], axis=1)
    return Streams(features, truth + rng.standard_t(2.01, size=300), truth, change, np.zeros(3))


# Learner


def _inner(program: BoneProgram, values: TracedValues) -> AnyLearner:
    model = credo.Model(lambda w, x: x @ w, credo.Normal(values.get("noise", 1.0)))
    learner = RecursiveLearner(model, Full("dense"))
    if "method" not in program:
        learner = replace(learner, dynamics=RandomWalk(values["q"]))
    if program.get("robust") == "wolf":
        return WoLF(learner, values["threshold"])
    if program.get("robust") == "student":
        evidence = program.get("evidence", "predictive")
        return StudentTNoise(learner, values["df"], program.get("iterations", 2), evidence=evidence)
    return learner


build = functools.partial(online, _inner)
"""`build(program)` makes the function of one stream; see `online`."""


# Plan

HAZARDS = (0.003, 0.01)
VARS = (1.0, 2.0, 3.0)


def _student(capacity: int) -> BoneProgram:
    return {"method": "rl-pr", "capacity": capacity, "robust": "student", "iterations": 2}


PLAN = Plan(
    name="bone-heavy-tails",
    title="Changes among outliers: Student-t noise with 2.01 degrees of freedom",
    draw=heavy_tails,
    build=build,
    methods=[
        Method("C-Static", {"method": "static"}, grid(var=VARS), "median ~2.5", adaptive=False),
        Method(
            "forgetting RLS",
            {"method": "forgetting"},
            grid(forgetting=(0.9, 0.95, 0.98), var=VARS, noise=(1.0, 5.0)),
            note="the peer: Kalman with simple inflation",
        ),
        Method("C-ACI", {"method": "aci"}, grid(q=(0.003, 0.01, 0.03, 0.1), var=VARS, noise=(1.0, 5.0))),
        Method(
            "RL[20]-PR",
            {"method": "rl-pr", "capacity": 20},
            grid(hazard=HAZARDS, var=VARS, noise=(1.0, 5.0, 20.0)),
            "median ~1.7",
            note="measured before: 1.98 (noise variance 5)",
        ),
        Method(
            "WoLF + C-ACI",
            {"robust": "wolf"},
            grid(q=(0.003, 0.01, 0.03, 0.1), threshold=(2.0, 4.0), var=VARS),
        ),
        Method(
            "WoLF + RL[20]-PR",
            {"method": "rl-pr", "capacity": 20, "robust": "wolf"},
            grid(hazard=HAZARDS, threshold=(2.0, 4.0, 6.0), var=VARS),
            "median ~1.23",
            note="measured before: mean 1.16, median 1.13",
        ),
        Method(
            "Student-t + RL[1]-PR",
            _student(1),
            grid(hazard=HAZARDS, df=2.01, var=VARS),
            note="measured before: 3.42",
        ),
        Method(
            "Student-t + RL[5]-PR",
            _student(5),
            grid(hazard=HAZARDS, df=(2.01, 3.0), var=VARS),
            note="measured before: 1.14",
            quick=True,
        ),
        Method(
            "Student-t + RL[20]-PR",
            _student(20),
            grid(hazard=HAZARDS, df=(2.01, 3.0), var=VARS),
            note="measured before: mean 1.13, median 1.10",
        ),
        Method(
            "Student-t (bound) + RL[20]-PR",
            {**_student(20), "evidence": "bound"},
            grid(hazard=(0.01, 0.03), df=2.01, var=VARS),
            note="hypotheses weighed by the variational bound",
        ),
    ],
    world={
        "steps": 300,
        "model": "y = (1, x, x^2) w + t(2.01), x ~ U(-2, 2)",
        "weights": "(1, 1, 1), then U(-3, 3)^3 with probability .01 a step",
        "published": "medians over 50 streams, read from a box plot",
    },
    criterion="mae",
    peers=[NEIGHBOURS, *river_regressors()],
    target="target: mean 1.13, median 1.10",
)

# Run

run = functools.partial(run_plan, PLAN)
"""Tunes every method on some streams, and scores it on others."""
