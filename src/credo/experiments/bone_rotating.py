"""Logistic regression whose weights turn by 5 degrees a step: no changes, only a drift that never ends."""

from __future__ import annotations

from credo.experiments.bone_common import Plan
from credo.experiments.bone_logistic import build, methods
from credo.experiments.bone_peers import NEIGHBOURS, river_classifiers
from credo.experiments.bone_streams import rotating
from credo.experiments.bone_table import run_plan
from credo.experiments.cells import Cells
from credo.experiments.records import Outcome, Progress, Size

__all__ = ["PLAN", "run"]

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


def run(size: Size, seed: int, progress: Progress, cells: Cells) -> Outcome:
    """Tune on some streams, score on others."""
    return run_plan(PLAN, size, seed, progress, cells)
