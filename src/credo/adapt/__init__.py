"""Wrappers: a learner in, a learner out.

Non-stationarity is an auxiliary variable (what a regime is) with a conditional prior (what is believed when a
regime begins) and a weighting (how hypotheses compare), around any learner: the BONE decomposition.
"""

from credo.adapt import named
from credo.adapt.changes import alarms, segmentation
from credo.adapt.experts import Bank, Experts, bank
from credo.adapt.hazards import ConstantHazard, Hazard, HazardFunction, LearnedHazard
from credo.adapt.hypotheses import Changes, Hypotheses, Segments
from credo.adapt.position import Continuous, LocalPolynomial, Piece
from credo.adapt.priors import PriorReset, Subset
from credo.adapt.probability import ChangeProbability, Forgetting
from credo.adapt.robust import OutlierIndicator, WoLF
from credo.adapt.robust_noise import GammaWeight, InverseWishartNoise, StudentTNoise
from credo.adapt.run_length import ChangeTimes, RunLength
from credo.adapt.soft_reset import Resettable, SoftReset
from credo.adapt.weighted_past import Memory, WeightedPast

__all__ = [
    "Bank",
    "ChangeProbability",
    "ChangeTimes",
    "Changes",
    "ConstantHazard",
    "Continuous",
    "Experts",
    "Forgetting",
    "GammaWeight",
    "Hazard",
    "HazardFunction",
    "Hypotheses",
    "InverseWishartNoise",
    "LearnedHazard",
    "LocalPolynomial",
    "Memory",
    "OutlierIndicator",
    "Piece",
    "PriorReset",
    "Resettable",
    "RunLength",
    "Segments",
    "SoftReset",
    "StudentTNoise",
    "Subset",
    "WeightedPast",
    "WoLF",
    "alarms",
    "bank",
    "named",
    "segmentation",
]
