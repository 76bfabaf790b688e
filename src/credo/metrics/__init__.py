"""Metrics of probabilistic predictions, in NumPy: how good, how calibrated.

A `Scores` holds what was predicted and what came, one entry a row; every metric is a function of it.
`summarize` computes all
that apply, `running` gives curves over the stream, `reliability` the data of a reliability diagram.
"""

from credo.metrics.curves import reliability, running, windowed
from credo.metrics.scores import METRICS, Scores, metric_names, summarize

__all__ = ["METRICS", "Scores", "metric_names", "reliability", "running", "summarize", "windowed"]
