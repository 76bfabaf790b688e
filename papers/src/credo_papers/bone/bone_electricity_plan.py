"""The plan of `bone-electricity`: methods, peers, grids and sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from credo_papers.bone.bone_peers import NEIGHBOURS, Peer, river_regressors
from credo_papers.bone.bone_plan import BoneProgram, Method, grid
from credo_papers.engine.experiment import Size

__all__ = ["METHODS", "PEERS", "SIZES"]

SIZES: dict[Size, tuple[int, int, int, int]] = {
    "quick": (2, 2, 1000, 3000),
    "full": (10, 20, 4000, 45_312),
}
"""Initial weights for tuning and for scoring, the rows for tuning, and all rows."""


def _method(
    label: str, program: BoneProgram, published: float | None = None, **values: Sequence[float] | float
) -> Method:
    return Method(label, program, grid(**values, noise=(0.05, 1.0)), published, quick=label == "C-ACI")


METHODS = [
    _method("C-Static", {"method": "static"}),
    _method("C-ACI", {"method": "aci"}, 0.2609, q=(1e-4, 1e-3, 1e-2)),
    _method("C-OU", {"method": "ou"}, gamma=(0.998, 0.9995, 0.9999)),
    _method("forgetting RLS", {"method": "forgetting"}, forgetting=(0.998, 0.999, 0.9995)),
    _method("RL[1]-PR", {"method": "rl-pr", "capacity": 1}, 0.4631, hazard=(0.001, 0.01)),
    _method("RL[1]-PR + walk", {"method": "rl-pr", "capacity": 1}, hazard=0.001, q=(1e-4, 1e-3)),
    _method("RL[1]-OUPR*", {"method": "rl-oupr"}, 0.1995, hazard=(0.0001, 0.001, 0.01)),
]
PEERS = [
    Peer("kNN in a window", NEIGHBOURS.predict, [{"window": 48 * days, "k": 10} for days in (7, 28)]),
    replace(river_regressors()[0], grid=[{"smoothing": value} for value in (0.98, 0.99, 0.999)]),
]
