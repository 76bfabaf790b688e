"""An agent in service: a `Bandit` gives decisions ids, waits for late rewards, and can be saved."""

from credo.bandits.service.bandit import Bandit, ContextSchema, Reading, Slate
from credo.bandits.service.decision import ArmDecision, Counts, Explanation, Observed, RewardStatus
from credo.bandits.service.features import ContextFeature, Features

__all__ = [
    "ArmDecision",
    "Bandit",
    "ContextFeature",
    "ContextSchema",
    "Counts",
    "Explanation",
    "Features",
    "Observed",
    "Reading",
    "RewardStatus",
    "Slate",
]
