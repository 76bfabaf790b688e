"""Decisions: choose, see the reward of that choice only, learn, and record the probability of every choice.

A `Log` holds decisions with their propensities and rewards. `evaluate` says what another policy would have
earned there, with an interval; `compare` says it of several, and `confidence_sequence` at every time.
"""

from credo.bandits.estimators import (
    ESTIMATORS,
    INTERVALS,
    AgentPolicy,
    Bounds,
    Comparison,
    DirectModel,
    Estimate,
    EstimatorName,
    IntervalName,
    RowPolicy,
    Target,
    TargetPolicy,
    arm_values,
    compare,
    confidence_sequence,
    evaluate,
    target_pmfs,
)
from credo.bandits.logs import LOG_FORMATS, Log, LogFormat, LogSource, ReadCounts

__all__ = [
    "ESTIMATORS",
    "INTERVALS",
    "LOG_FORMATS",
    "AgentPolicy",
    "Bounds",
    "Comparison",
    "DirectModel",
    "Estimate",
    "EstimatorName",
    "IntervalName",
    "Log",
    "LogFormat",
    "LogSource",
    "ReadCounts",
    "RowPolicy",
    "Target",
    "TargetPolicy",
    "arm_values",
    "compare",
    "confidence_sequence",
    "evaluate",
    "target_pmfs",
]
