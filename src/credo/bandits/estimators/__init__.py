"""Off-policy evaluation: what a policy would have earned, from the log of another."""

from credo.bandits.estimators.agents import AgentPolicy
from credo.bandits.estimators.anytime import Bounds, confidence_sequence
from credo.bandits.estimators.comparison import compare
from credo.bandits.estimators.estimate import INTERVALS, Comparison, Estimate, IntervalName
from credo.bandits.estimators.evaluate import evaluate
from credo.bandits.estimators.evidence import DirectModel
from credo.bandits.estimators.regression import arm_values
from credo.bandits.estimators.targets import RowPolicy, Target, TargetPolicy, target_pmfs
from credo.bandits.estimators.terms import ESTIMATORS, EstimatorName

__all__ = [
    "ESTIMATORS",
    "INTERVALS",
    "AgentPolicy",
    "Bounds",
    "Comparison",
    "DirectModel",
    "Estimate",
    "EstimatorName",
    "IntervalName",
    "RowPolicy",
    "Target",
    "TargetPolicy",
    "arm_values",
    "compare",
    "confidence_sequence",
    "evaluate",
    "target_pmfs",
]
