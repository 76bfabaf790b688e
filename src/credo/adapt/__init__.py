"""Wrappers, which turn one learner into another.

Around any learner, non-stationarity is described by an auxiliary variable (what a regime is), a conditional
prior (what is believed when a regime begins) and a weighting (how hypotheses compare). This is the BONE
decomposition (Duran-Martin et al. 2024, arXiv 2411.10153). `Wrapper` is the base class for your own wrappers.
"""

from credo.adapt import named
from credo.adapt.banks import Each, bank
from credo.adapt.calibrated import Calibrated, Calibration
from credo.adapt.changepoints import (
    Changes,
    ChangeTimes,
    ConstantHazard,
    Continuous,
    Hazard,
    HazardFunction,
    Hypotheses,
    LearnedHazard,
    LocalPolynomial,
    Piece,
    RunLength,
    Segments,
    alarms,
    segmentation,
)
from credo.adapt.experts import Bank, Experts
from credo.adapt.loss_rates import LossRate
from credo.adapt.monitored import Monitored, Monitoring, WatchedChanges
from credo.adapt.nested import Around, Mixture
from credo.adapt.noise_scaled import NoiseScale, NoiseScaled
from credo.adapt.priors import ConditionalPrior, PriorReset, Subset
from credo.adapt.probability import ChangeProbability, Forgetting
from credo.adapt.robust import GammaWeight, InverseWishartNoise, OutlierIndicator, StudentTNoise, WoLF
from credo.adapt.running_moments import RunningMoments
from credo.adapt.soft_reset import Resettable, SoftReset
from credo.adapt.stacked import Stacked, Stacking
from credo.adapt.standardized import Scaling, Standardized, Waiting
from credo.adapt.stretched import Stretch, Stretched
from credo.adapt.weighted_past import Memory, WeightedPast
from credo.adapt.wrapper import Proposal, Wrapper
from credo.core.groups import Groups

__all__ = [
    "Around",
    "Bank",
    "Calibrated",
    "Calibration",
    "ChangeProbability",
    "ChangeTimes",
    "Changes",
    "ConditionalPrior",
    "ConstantHazard",
    "Continuous",
    "Each",
    "Experts",
    "Forgetting",
    "GammaWeight",
    "Groups",
    "Hazard",
    "HazardFunction",
    "Hypotheses",
    "InverseWishartNoise",
    "LearnedHazard",
    "LocalPolynomial",
    "LossRate",
    "Memory",
    "Mixture",
    "Monitored",
    "Monitoring",
    "NoiseScale",
    "NoiseScaled",
    "OutlierIndicator",
    "Piece",
    "PriorReset",
    "Proposal",
    "Resettable",
    "RunLength",
    "RunningMoments",
    "Scaling",
    "Segments",
    "SoftReset",
    "Stacked",
    "Stacking",
    "Standardized",
    "Stretch",
    "Stretched",
    "StudentTNoise",
    "Subset",
    "Waiting",
    "WatchedChanges",
    "WeightedPast",
    "WoLF",
    "Wrapper",
    "alarms",
    "bank",
    "named",
    "segmentation",
]
