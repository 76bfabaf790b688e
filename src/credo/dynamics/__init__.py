"""Dynamics: how parameters move between observations.

Each acts on the mean and, through the covariance protocol, on any covariance family, so that nothing is
written once per family. All accept irregular time steps `dt` (None means 1). Two steps of dt/2 equal one step
of dt.
"""

from credo.dynamics.base import Dynamics, Static
from credo.dynamics.inflation import Inflation, PriorBound, ShrinkPerturb
from credo.dynamics.linear import Decay, LinearGaussian, OrnsteinUhlenbeck, RandomWalk
from credo.dynamics.transition import Transition

__all__ = [
    "Decay",
    "Dynamics",
    "Inflation",
    "LinearGaussian",
    "OrnsteinUhlenbeck",
    "PriorBound",
    "RandomWalk",
    "ShrinkPerturb",
    "Static",
    "Transition",
]
