"""Two moons that are turned four times by 67.5 degrees: five regimes of 200 labels; see `bone_moons`."""

from __future__ import annotations

import functools

from credo_papers.bone.bone_moons_plan import make_plan
from credo_papers.bone.bone_moons_run import run_moons

__all__ = ["PLAN", "run"]

# Plan

PLAN = make_plan(
    "bone-moons-long",
    "Two moons turned by 67.5 degrees, four times: 5 x 200 labels",
    (0.0, 67.5, 135.0, 202.5, 270.0),
    200,
    {"C-Static": 0.659, "RL[1]-PR": 0.874, "CPP-OU": 0.731, "C-ACI": 0.853, "RL[1]-OUPR*": 0.850},
    {
        "C-Static": ".903",
        "C-ACI": ".904",
        "C-OU": ".904",
        "RL[1]-PR": ".903",
        "RL[5]-PR": ".904",
        "RL[10]-PR": ".904 (K = 20)",
        "RL[1]-OUPR*": ".904",
        "CPP-OU": ".905",
        "ME-OU(8)": ".910 (another bank)",
    },
    "target: accuracy .910, NLL .290",
)

# Run

run = functools.partial(run_moons, PLAN)
"""Tunes every method on some streams, scores it on others, and draws what is believed on one of these."""
