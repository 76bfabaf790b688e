"""The plan of `bone-bandit`: methods, grids and sizes."""

from __future__ import annotations

from credo_papers.bone.bone_plan import Method, grid
from credo_papers.engine.experiment import Size

__all__ = ["METHODS", "SIZES"]

SIZES: dict[Size, tuple[int, int, int]] = {"quick": (4, 8, 1000), "full": (10, 30, 10_000)}
"""The number of worlds for tuning, the number that are scored, and their steps."""

WIDTH = (0.25, 0.5, 1.0, 1.5, 2.0)
EXPLORE = (0.1, 0.25, 0.5)
GAMMA = (0.97, 0.985, 0.99)
VAR = (1.0, 2.0, 4.0, 8.0)
METHODS = [
    Method(
        "C-OU, UCB",
        {"method": "ou"},
        grid(gamma=GAMMA, var=VAR, width=WIDTH),
        note="measured before with C-LSSM on the chances: 2845 (realised)",
        quick=True,
    ),
    Method("C-OU, Thompson", {"method": "ou"}, grid(gamma=(0.97, 0.985), var=4.0, explore=EXPLORE)),
    Method("C-ACI, UCB", {"method": "aci"}, grid(q=(0.03, 0.1, 0.3), width=(0.0, *WIDTH))),
    Method(
        "C-ACI, Thompson",
        {"method": "aci"},
        grid(q=(0.03, 0.1), explore=(0.25, 0.5)),
        3000.0,
        note="measured before: 1658; the published one does not explore",
    ),
    Method("RL[1]-OUPR*, UCB", {"method": "rl-oupr"}, grid(hazard=(0.03, 0.1, 0.25), width=(0.0, *WIDTH))),
    Method(
        "RL[1]-OUPR*, Thompson",
        {"method": "rl-oupr"},
        grid(hazard=(0.1, 0.25), explore=EXPLORE),
        2366.7,
        note="measured before: 1640",
    ),
    Method("RL[3]-PR, UCB", {"method": "rl-pr", "capacity": 3}, grid(hazard=(0.03, 0.1), width=(0.5, 1.0))),
    Method(
        "Beta, discounted, UCB",
        {"method": "beta"},
        grid(forgetting=(0.8, 0.85, 0.9, 0.95, 0.99), width=WIDTH),
    ),
    Method(
        "Beta, discounted, Thompson",
        {"method": "beta"},
        grid(forgetting=(0.9, 0.95, 0.98, 0.99)),
        note="the peer: Thompson sampling with a discount",
    ),
    Method("Beta, static, Thompson", {"method": "beta"}, grid(forgetting=1.0), note="the peer"),
]
