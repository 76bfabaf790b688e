"""Metrics of probabilistic predictions, in NumPy: how good they are, and how well calibrated.

A `Scores` holds predictions and observations, with one entry for each row. Every metric is a function of it.
`summarize` computes all that apply, `running` and `windowed` give curves over the stream, and `reliability`
the data of a reliability diagram.

Metrics are means of the losses of rows (`row_losses`), or are read from tables of rows counted in bins of
probability (`count_bins`). Both can be added up, so that the running scores of an endless stream are the
same numbers.
"""

from credo.metrics.calibration import (
    BINS,
    LEVELS,
    add_to_bins,
    central,
    count_bins,
    coverage,
    coverage_of,
    ece,
    ece_of,
)
from credo.metrics.scores import Scores
from credo.metrics.summary import (
    METRICS,
    ClassScores,
    ClassTable,
    LossName,
    Metric,
    by_class,
    metric_names,
    normal_crps,
    reliability,
    require_metrics,
    row_losses,
    running,
    summarize,
    windowed,
)

__all__ = [
    "BINS",
    "LEVELS",
    "METRICS",
    "ClassScores",
    "ClassTable",
    "LossName",
    "Metric",
    "Scores",
    "add_to_bins",
    "by_class",
    "central",
    "count_bins",
    "coverage",
    "coverage_of",
    "ece",
    "ece_of",
    "metric_names",
    "normal_crps",
    "reliability",
    "require_metrics",
    "row_losses",
    "running",
    "summarize",
    "windowed",
]
