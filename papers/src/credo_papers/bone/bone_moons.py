"""Two moons that are turned: a network of 51 parameters must give up what it knew, 3 x 100 labels.

The angles are 0, 180 and 360 degrees, so the third regime is the first again; `bone_moons_long` has five
regimes of 200 labels. The prior variance and the scale of the initial weights are tuned with every method.
"""

from __future__ import annotations

import functools

from credo_papers.bone.bone_moons_plan import make_plan
from credo_papers.bone.bone_moons_run import run_moons

__all__ = ["PLAN", "run"]

# Plan

PLAN = make_plan(
    "bone-moons",
    "Two moons turned by half a circle, twice: 3 x 100 labels",
    (0.0, 180.0, 360.0),
    100,
    {"C-Static": 0.6767, "RL[1]-PR": 0.7967, "CPP-OU": 0.7733, "C-ACI": 0.7667, "RL[1]-OUPR*": 0.7867},
    {
        "C-Static": ".829",
        "C-ACI": ".830",
        "C-OU": ".805",
        "RL[1]-PR": ".825",
        "RL[5]-PR": ".831",
        "RL[10]-PR": ".832 (K = 20)",
        "RL[1]-OUPR*": ".815",
        "ME-OU(8)": ".839 (another bank)",
    },
    "target: accuracy .839, NLL .414",
)

# Run

run = functools.partial(run_moons, PLAN)
"""Tunes every method on some streams, scores it on others, and draws what is believed on one of these."""
