"""Off-policy evaluation: what a policy would have earned, from the log of another."""

from credo.bandits.evaluation.confidence_sequences import Bounds, confidence_sequence
from credo.bandits.evaluation.estimate import INTERVALS, Comparison, Estimate, IntervalName
from credo.bandits.evaluation.estimator_kinds import ESTIMATORS, EstimatorName
from credo.bandits.evaluation.evaluate_policy import compare, evaluate_policy
from credo.bandits.evaluation.over_time import Course, Part, Support, evaluate_over_time, log_support
from credo.bandits.evaluation.regression import arm_values
from credo.bandits.evaluation.slates import SlateEstimatorName, evaluate_slates
from credo.bandits.evaluation.target_policies import AgentPolicy, RowPolicy, Target, TargetPolicy, target_pmfs
from credo.bandits.evaluation.weighed_rows import DirectModel

__all__ = [
    "ESTIMATORS",
    "INTERVALS",
    "AgentPolicy",
    "Bounds",
    "Comparison",
    "Course",
    "DirectModel",
    "Estimate",
    "EstimatorName",
    "IntervalName",
    "Part",
    "RowPolicy",
    "SlateEstimatorName",
    "Support",
    "Target",
    "TargetPolicy",
    "arm_values",
    "compare",
    "confidence_sequence",
    "evaluate_over_time",
    "evaluate_policy",
    "evaluate_slates",
    "log_support",
    "target_pmfs",
]
