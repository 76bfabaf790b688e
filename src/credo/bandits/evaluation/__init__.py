"""Off-policy evaluation: what a policy would have earned, from the log of another."""

from credo.bandits.evaluation.confidence_sequences import Bounds, confidence_sequence
from credo.bandits.evaluation.estimate import INTERVALS, Comparison, Estimate, IntervalName
from credo.bandits.evaluation.estimator_kinds import ESTIMATORS, EstimatorName
from credo.bandits.evaluation.evaluate_policy import compare, evaluate
from credo.bandits.evaluation.regression import arm_values
from credo.bandits.evaluation.target_policies import AgentPolicy, RowPolicy, Target, TargetPolicy, target_pmfs
from credo.bandits.evaluation.weighed_rows import DirectModel

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
