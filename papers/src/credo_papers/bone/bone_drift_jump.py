"""Logistic regression whose weights drift a little at every step and now and then jump."""

from __future__ import annotations

import functools

import numpy as np

from credo_papers.bone.bone_logistic_learner import build
from credo_papers.bone.bone_logistic_plan import methods
from credo_papers.bone.bone_peers import NEIGHBOURS, river_classifiers
from credo_papers.bone.bone_plan import Plan
from credo_papers.bone.bone_table import run_plan
from credo_papers.bone.bone_world import Streams, draw_labels, draw_regimes

__all__ = ["PLAN", "drifting_and_jumping", "run"]

# World


def drifting_and_jumping(rng: np.random.Generator) -> Streams:
    """Draw 720 labels of a logistic regression whose weights drift and jump.

    They walk by N(0, 0.01^2) a step, and jump to U(-2, 2)^2 with probability 0.01.
    """
    change, regime = draw_regimes(rng, 720, 0.01)
    jumps = rng.uniform(-2, 2, size=(regime[-1] + 1, 2))
    walk = np.cumsum(0.01 * rng.normal(size=(720, 2)), axis=0)
    start = np.maximum.accumulate(np.where(change, np.arange(720), 0))
    weights = jumps[regime] + walk - walk[start]
    return draw_labels(rng, rng.uniform(-3, 3, size=(720, 2)), weights, change)


# Plan

PLAN = Plan(
    name="bone-drift-jump",
    title="Logistic regression with drift and jumps",
    draw=drifting_and_jumping,
    build=build,
    methods=methods(
        (1.0, 1.3333, 3.0),
        {"C-ACI": 0.7650, "RL[1]-PR": 0.6085, "RL[1]-OUPR*": 0.7653, "CPP-OU": 0.7636},
        {
            "C-Static": ".664",
            "C-ACI": ".774",
            "C-OU": ".773",
            "RL[1]-PR": ".692",
            "RL[5]-PR": ".779",
            "RL[20]-PR": ".782 (published for 8 and more: about .78)",
            "RL[1]-OUPR*": ".774",
            "CPP-OU": ".774",
            "ME-OU(8)": ".777 (another bank)",
        },
        quick=("RL[5]-PR",),
    ),
    world={
        "steps": 720,
        "model": "P(y = 1) = sigmoid(x' w), x ~ U(-3, 3)^2",
        "weights": "walk by N(0, .01^2) a step, jump to U(-2, 2)^2 with probability .01",
        "published": "100 streams, tuned on one",
    },
    binary=True,
    peers=[NEIGHBOURS, *river_classifiers()],
    target="target: accuracy .782, NLL .463; with the weights known .817",
)

# Run

run = functools.partial(run_plan, PLAN)
"""Tunes every method on some streams, and scores it on others."""
