"""Changepoints: hypotheses about when the current regime began.

    log w'(r + 1) = log w(r) + log(1 - H(r)) + log p(y | x, belief of r)
    log w'(0)     = logsumexp_r [log w(r) + log H(r)] + log p(y | x, conditional prior)

with the run length r and the hazard H (Adams & MacKay 2007). `RunLength` merges the successors of all
hypotheses into one, and `ChangeTimes` keeps them apart.
"""

from credo.adapt.changepoints.hazards import ConstantHazard, Hazard, HazardFunction, LearnedHazard
from credo.adapt.changepoints.position import Continuous, LocalPolynomial, Piece
from credo.adapt.changepoints.slots import (
    ChangeReport,
    Changes,
    ChangeTimes,
    Hypotheses,
    RunLength,
    Segments,
    alarms,
    segmentation,
)

__all__ = [
    "ChangeReport",
    "ChangeTimes",
    "Changes",
    "ConstantHazard",
    "Continuous",
    "Hazard",
    "HazardFunction",
    "Hypotheses",
    "LearnedHazard",
    "LocalPolynomial",
    "Piece",
    "RunLength",
    "Segments",
    "alarms",
    "segmentation",
]
