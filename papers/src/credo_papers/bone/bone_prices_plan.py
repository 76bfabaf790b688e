"""The plan of `bone-prices`: methods, peers, grids and sizes."""

from __future__ import annotations

from credo_papers.bone.bone_peers import Peer, river_classifiers, river_with_detector
from credo_papers.bone.bone_plan import Method, grid
from credo_papers.bone.bone_prices_world import FIRST
from credo_papers.engine.experiment import Size

__all__ = ["EARLY", "LEAST", "LENGTH", "METHODS", "make_peers"]

EARLY: dict[Size, int] = {"quick": 300, "full": FIRST}
"""The number of rows for tuning."""

LENGTH: dict[Size, int] = {"quick": 1500, "full": 45_312}
"""The number of rows."""

LEAST = 1e-3
"""The least probability in a log score, since peers give probabilities of 0 and 1."""

METHODS = (
    Method("C-Static", {"method": "static"}, quick=True),
    Method("C-ACI", {"method": "aci"}, grid(q=(1e-3, 1e-2, 1e-1, 1.0)), quick=True),
    Method("C-OU", {"method": "ou"}, grid(gamma=(0.999, 0.99, 0.97, 0.95))),
    Method("forgetting", {"method": "forgetting"}, grid(forgetting=(0.999, 0.99, 0.97, 0.95))),
    Method("RL[5]-PR", {"method": "rl-pr", "capacity": 5}, grid(hazard=(0.01, 0.05, 0.2))),
    Method(
        "RL[5]-PR + walk",
        {"method": "rl-pr", "capacity": 5},
        grid(hazard=(0.01, 0.05), q=(1e-2, 1e-1)),
    ),
    Method("ME-OU(8)", {"method": "experts"}, grid(switching=(0.01, 0.1))),
)


def make_peers() -> list[Peer]:
    """Return River's forest, its logistic regression, and the latter with a drift detector."""
    forest, _, logistic = river_classifiers()
    return [forest, logistic, river_with_detector()]
