"""The methods and sizes of `bayesopt-ackley`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from credo_papers.engine.experiment import Size

__all__ = [
    "EVALUATIONS",
    "FEATURES",
    "FEATURE_NOISE",
    "INITIAL",
    "INPUT_VAR",
    "LENGTHS",
    "METHODS",
    "NETWORK_LENGTHS",
    "NETWORK_NOISE",
    "PANELS",
    "RANK",
    "SEEDS",
    "WIDTH",
    "LearnerName",
    "Method",
]

# How many points are tried, and how many of them are spread evenly before a learner is asked.
EVALUATIONS = 10
INITIAL = 3

SEEDS: dict[Size, int] = {"quick": 20, "full": 100}

PANELS = (1, 4, 10)
"""The evaluations after which the belief is shown."""

# The bank of random features: how many, their length scales, and the noise variances.
BANK_FEATURES = 128
BANK_LENGTHS = (0.1, 0.14, 0.2, 0.28, 0.4, 0.56, 0.8)
BANK_NOISES = (1e-4, 3e-2)

LearnerName: TypeAlias = Literal["bank", "features", "sine networks", "elu network"]


@dataclass(frozen=True)
class Method:
    """A learner and a policy.

    Attributes:
        label: the name in table and figure.
        learner: the learner; see `bayesopt_ackley_learner`.
        policy: "ucb" or "thompson".
        note: what it is, in the table.
        quick: whether the quick size has it.
    """

    label: str
    learner: LearnerName
    policy: Literal["ucb", "thompson"]
    note: str = ""
    quick: bool = True


LENGTHS = (0.1, 0.14, 0.2, 0.28, 0.4, 0.56, 0.8)
"""The length scales of the random features, for inputs between -1 and 1."""

# How many random features there are, and the noise variance of standardised values.
FEATURES = 128
FEATURE_NOISE = 1e-4

NETWORK_LENGTHS = LENGTHS[:5]
"""The length scales at which the sine networks start."""

# The width of the sine networks, the rank of their belief, the noise variance, and the prior variance of
# the first layer in units of 1 / length^2.
WIDTH = 100
RANK = 10
NETWORK_NOISE = 1e-3
INPUT_VAR = 1e-3

METHODS = (
    Method("random features, UCB", "bank", "ucb", "seven length scales and two noises, weighed by evidence"),
    Method("random features, Thompson", "features", "thompson", "7 lengths, noise 1e-4"),
    Method("neural low-rank, UCB", "sine networks", "ucb", "5 sine networks, rank 10"),
    Method("neural low-rank, Thompson", "sine networks", "thompson", "5 sine networks, rank 10"),
    Method("one ELU network, Thompson", "elu network", "thompson", "MLP 50-50, rank 10", quick=False),
)
"""The methods that are compared. Settings were tuned by hand on keys 1000 to 1059, which are not scored."""
