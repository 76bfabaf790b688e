"""Logistic regression whose weights drift a little at every step and now and then jump."""

from __future__ import annotations

from credo.experiments.bone_common import Plan
from credo.experiments.bone_logistic import build, methods
from credo.experiments.bone_peers import NEIGHBOURS, river_classifiers
from credo.experiments.bone_streams import drifting_and_jumping
from credo.experiments.bone_table import run_plan
from credo.experiments.cells import Cells
from credo.experiments.records import Outcome, Progress, Size

__all__ = ["PLAN", "run"]

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


def run(size: Size, seed: int, progress: Progress, cells: Cells) -> Outcome:
    """Tune on some streams, score on others."""
    return run_plan(PLAN, size, seed, progress, cells)
