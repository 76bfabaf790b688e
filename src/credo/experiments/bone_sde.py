"""The drift of a diffusion, dy = .8 (m - y) dt + dB, whose level m changes: learned from its increments.

The signal is small: one increment over dt = .01 has noise of standard deviation 10 in units of the drift, so
hundreds of steps say when the level changed. The publication shows plots only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import credo
from credo.experiments.bone_common import Method, Plan, grid
from credo.experiments.bone_methods import online
from credo.experiments.bone_peers import river_regressors
from credo.experiments.bone_streams import two_regimes
from credo.experiments.bone_table import run_plan
from credo.experiments.cells import Cells
from credo.experiments.records import Outcome, Progress, Size
from credo.experiments.sweep import One

__all__ = ["PLAN", "build", "run"]

MODEL = credo.Model(lambda w, x: x @ w, credo.Normal(100.0))
HAZARDS = (0.0003, 0.001, 0.003)
VARS = (1.0, 3.0, 10.0)


def _inner(program: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
    return credo.RecursiveLearner(MODEL, credo.Full("dense"))


def build(program: Mapping[str, Any]) -> One:
    """The function of one stream."""
    return online(_inner, program)


def _run_lengths(capacity: int) -> Method:
    program = {"method": "rl-pr", "capacity": capacity}
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


def run(size: Size, seed: int, progress: Progress, cells: Cells) -> Outcome:
    """Tune on some streams, score on others."""
    return run_plan(PLAN, size, seed, progress, cells)
