"""Dynamics: how parameters move between observations.

Each acts on the mean and on any covariance family, through the covariance protocol, so nothing is written
once per family. All take irregular time steps `dt` (None means 1); two steps of dt/2 equal one of dt.
"""

from credo.dynamics.base import Dynamics, Static
from credo.dynamics.inflation import Inflation, ShrinkPerturb
from credo.dynamics.linear import Decay, LinearGaussian, OrnsteinUhlenbeck, RandomWalk

__all__ = [
    "Decay",
    "Dynamics",
    "Inflation",
    "LinearGaussian",
    "OrnsteinUhlenbeck",
    "RandomWalk",
    "ShrinkPerturb",
    "Static",
]
