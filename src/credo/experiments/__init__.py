"""Experiments: published results, run again with credo, beside the published numbers.

`reproduce(name)` runs one and writes its numbers, the data and the figure; `names()` lists them. An
experiment is a module with a function `run(size, seed, progress) -> Outcome` and a line in `catalogue`. The
"quick" size is the same experiment with fewer seeds, under a minute on two cores.

Numbers are means over seeds with their standard error, s / sqrt(n); hyper-parameters are tuned on streams
that are not scored.
"""

from credo.experiments.catalogue import names
from credo.experiments.records import Experiment, Outcome, Result, Row
from credo.experiments.runner import reproduce

__all__ = ["Experiment", "Outcome", "Result", "Row", "names", "reproduce"]
