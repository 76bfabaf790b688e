"""Off-policy evaluation: what a policy would have earned, from the log of another."""

from credo.bandits.evaluation.agents import AgentPolicy
from credo.bandits.evaluation.anytime import Bounds, confidence_sequence
from credo.bandits.evaluation.comparison import compare
from credo.bandits.evaluation.estimate import INTERVALS, Comparison, Estimate, IntervalName
from credo.bandits.evaluation.evaluate import evaluate
from credo.bandits.evaluation.evidence import DirectModel
from credo.bandits.evaluation.regression import arm_values
from credo.bandits.evaluation.targets import RowPolicy, Target, TargetPolicy, target_pmfs
from credo.bandits.evaluation.terms import ESTIMATORS, EstimatorName

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
