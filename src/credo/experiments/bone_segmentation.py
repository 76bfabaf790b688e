"""Piecewise linear regression: how well the regime is found again after each change, and when it began.

300 steps of a quadratic in x whose three weights are drawn anew with probability .009 (BONE, section on
segmentation). The exact filter keeps all run lengths; five are enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import credo
from credo.experiments.bone_common import Method, Plan, grid
from credo.experiments.bone_figure import draw_run_lengths
from credo.experiments.bone_methods import online
from credo.experiments.bone_peers import NEIGHBOURS, river_regressors
from credo.experiments.bone_streams import piecewise_linear
from credo.experiments.bone_table import run_plan
from credo.experiments.cells import Cells
from credo.experiments.records import Outcome, Progress, Size
from credo.experiments.sweep import One

__all__ = ["PLAN", "build", "run"]

MODEL = credo.Model(lambda w, x: x @ w, credo.Normal(1.0))
HAZARDS = (0.003, 0.009, 0.03)
VAR = 3.0  # of the weights, as drawn


def _inner(program: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
    return credo.RecursiveLearner(MODEL, credo.Full("dense"))


def build(program: Mapping[str, Any]) -> One:
    """The function of one stream."""
    return online(_inner, program)


def _run_lengths(capacity: int, note: str, **further: Any) -> Method:
    program = {"method": "rl-pr", "capacity": capacity, **further}
    quick = "lengths" in further
    return Method(f"RL[{capacity}]-PR", program, grid(hazard=HAZARDS, var=VAR), note=note, quick=quick)


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
        _run_lengths(5, "measured before: .805 ± .05 on 30 other streams", lengths=200),
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


def run(size: Size, seed: int, progress: Progress, cells: Cells) -> Outcome:
    """Tune on some streams, score on others."""
    return run_plan(PLAN, size, seed, progress, cells)
