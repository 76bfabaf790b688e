"""Learners that resist outliers.

Each method chooses how far to trust an observation, and then makes one weighted update of the learner
inside. The effective noise is R / w with a weight w in place of 1.
"""

from credo.adapt.robust.noise_levels import GammaWeight, InverseWishartNoise, StudentTNoise
from credo.adapt.robust.outliers import OutlierIndicator, WoLF

__all__ = ["GammaWeight", "InverseWishartNoise", "OutlierIndicator", "StudentTNoise", "WoLF"]
