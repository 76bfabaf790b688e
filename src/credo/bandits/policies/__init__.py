"""Policies: from what is believed about the expected rewards of K arms to the probability of each arm.

The arm is drawn from these probabilities, so the probability on record, which off-policy evaluation divides
by, is exact. A policy sees only the K-dimensional distribution of the rewards, never the learner.
"""

from credo.bandits.policies.base import Policy
from credo.bandits.policies.greedy import Boltzmann, EpsilonGreedy, Fixed, Greedy, SquareCB, Uniform
from credo.bandits.policies.guarded import Guarded
from credo.bandits.policies.thompson import UCB, BayesUCB, InformationDirected, Thompson, TopTwo

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
]
