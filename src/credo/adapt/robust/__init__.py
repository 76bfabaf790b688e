"""Learners that resist outliers.

Each method chooses how far to trust an observation, and then makes one weighted update of the learner
inside. The effective noise is R / w with a weight w in place of 1.
"""

from credo.adapt.robust.noise_levels import GammaWeight, StudentTNoise
from credo.adapt.robust.outliers import OutlierIndicator
from credo.adapt.robust.wishart import InverseWishartNoise
from credo.adapt.robust.wolf import WoLF

__all__ = ["GammaWeight", "InverseWishartNoise", "OutlierIndicator", "StudentTNoise", "WoLF"]
