"""Bandits: choose, see the reward of that choice only, learn, and choose better, around any learner."""

from credo.bandits.best import probability_best
from credo.bandits.policies import (
    UCB,
    BayesUCB,
    Boltzmann,
    EpsilonGreedy,
    Fixed,
    Greedy,
    Guarded,
    InformationDirected,
    Policy,
    SquareCB,
    Thompson,
    TopTwo,
    Uniform,
)

__all__ = [
    "UCB",
    "BayesUCB",
    "Boltzmann",
    "EpsilonGreedy",
    "Fixed",
    "Greedy",
    "Guarded",
    "InformationDirected",
    "Policy",
    "SquareCB",
    "Thompson",
    "TopTwo",
    "Uniform",
    "probability_best",
]
