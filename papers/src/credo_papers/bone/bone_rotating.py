"""Logistic regression whose weights turn by 5 degrees a step: no changes, only a drift that never ends."""

from __future__ import annotations

import functools

import numpy as np

from credo_papers.bone.bone_logistic_learner import build
from credo_papers.bone.bone_logistic_plan import methods
from credo_papers.bone.bone_peers import NEIGHBOURS, river_classifiers
from credo_papers.bone.bone_plan import Plan
from credo_papers.bone.bone_table import run_plan
from credo_papers.bone.bone_world import Streams, draw_labels

__all__ = ["PLAN", "rotating", "run"]

# World


def rotating(rng: np.random.Generator) -> Streams:
    """Draw 720 labels of a logistic regression whose weights, of length 10, turn by 5 degrees a step."""
    angle = np.deg2rad(5.0) * np.arange(720)
    weights = 10.0 * np.stack([np.sin(angle), np.cos(angle)], axis=1)
    return draw_labels(rng, rng.uniform(-3, 3, size=(720, 2)), weights, np.zeros(720))


# Plan

PLAN = Plan(
    name="bone-rotating",
    title="Rotating logistic regression, 5 degrees a step",
    draw=rotating,
    build=build,
    methods=methods(
        (1.0, 3.0, 10.0, 50.0),
        {"C-ACI": 0.7154, "RL[1]-PR": 0.4989, "RL[1]-OUPR*": 0.8544, "CPP-OU": 0.7418},
        {
            "C-Static": ".503",
            "C-ACI": ".845",
            "C-OU": ".870",
            "RL[1]-PR": ".505",
            "RL[5]-PR": ".814",
            "RL[20]-PR": ".775",
            "RL[1]-OUPR*": ".864",
            "CPP-OU": ".813",
            "ME-OU(8)": ".828 (another bank)",
        },
    ),
    world={
        "steps": 720,
        "model": "P(y = 1) = sigmoid(x' w), x ~ U(-3, 3)^2, |w| = 10, turning by 5 degrees a step",
        "published": "100 streams, tuned on one",
    },
    binary=True,
    peers=[NEIGHBOURS, *river_classifiers()],
    target="target: accuracy .870, NLL .360",
)

# Run

run = functools.partial(run_plan, PLAN)
"""Tunes every method on some streams, and scores it on others."""
