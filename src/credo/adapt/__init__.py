"""Wrappers: a learner in, a learner out.

Non-stationarity is an auxiliary variable (what a regime is) with a conditional prior (what is believed when a
regime begins) and a weighting (how hypotheses compare), around any learner: the BONE decomposition.
"""

from credo.adapt.changes import alarms, segmentation
from credo.adapt.hazards import ConstantHazard, Hazard, HazardFunction, LearnedHazard
from credo.adapt.hypotheses import Changes, Hypotheses, Segments
from credo.adapt.priors import PriorReset
from credo.adapt.run_length import ChangeTimes, RunLength

__all__ = [
    "ChangeTimes",
    "Changes",
    "ConstantHazard",
    "Hazard",
    "HazardFunction",
    "Hypotheses",
    "LearnedHazard",
    "PriorReset",
    "RunLength",
    "Segments",
    "alarms",
    "segmentation",
]
