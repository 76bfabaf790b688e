"""The plan of `bone-bandit`: methods, grids and sizes."""

from __future__ import annotations

from credo.experiments.bone.bone_plan import Method, grid
from credo.experiments.engine.experiment import Size

__all__ = ["METHODS", "SIZES"]

SIZES: dict[Size, tuple[int, int, int]] = {"quick": (4, 8, 1000), "full": (10, 30, 10_000)}
"""How many worlds are for tuning, how many are scored, and their steps."""

EXPLORE = (0.0, 0.25, 0.5, 1.0)
METHODS = [
    Method(
        "C-OU",
        {"method": "ou"},
        grid(gamma=(0.97, 0.985, 0.99), var=(2.0, 4.0, 8.0), explore=(0.1, 0.25, 0.5)),
        note="measured before with C-LSSM on the chances: 2845 (realised)",
        quick=True,
    ),
    Method(
        "C-ACI",
        {"method": "aci"},
        grid(q=(0.03, 0.1, 0.3), explore=EXPLORE),
        3000.0,
        note="measured before: 1658; the published one does not explore",
    ),
    Method(
        "RL[1]-OUPR*",
        {"method": "rl-oupr"},
        grid(hazard=(0.03, 0.1, 0.25), explore=EXPLORE),
        2366.7,
        note="measured before: 1640",
    ),
    Method("RL[3]-PR", {"method": "rl-pr", "capacity": 3}, grid(hazard=(0.03, 0.1), explore=(0.5, 1.0))),
    Method(
        "Beta, discounted",
        {"method": "beta"},
        grid(forgetting=(0.8, 0.85, 0.9, 0.95, 0.99), explore=(0.1, 0.25, 0.5, 1.0)),
        note="the peer: Thompson sampling with a discount",
    ),
    Method("Beta, static", {"method": "beta"}, grid(forgetting=1.0, explore=(0.5, 1.0)), note="the peer"),
]
