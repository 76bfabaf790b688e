"""Numbers that judge predictions, by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from credo.core.errors import CredoError, suggest
from credo.metrics.calibration import BINS, coverage, ece
from credo.metrics.classes import by_class
from credo.metrics.losses import LossName, row_losses
from credo.metrics.scores import Scores

__all__ = ["METRICS", "Metric", "metric_names", "require_metrics", "summarize"]


class Metric(NamedTuple):
    """A metric: its function, the tasks that it is for, its meaning, and the field of `Scores` that it needs.

    Example:
        >>> METRICS["rmse"].tasks
        ('regression',)
    """

    function: Callable[[Scores], float]
    tasks: tuple[str, ...]
    meaning: str
    needs: str = "log_prob"


_BOTH = ("classification", "regression")
_CLASS = ("classification",)
_NUMBER = ("regression",)


def _mean(name: LossName) -> Callable[[Scores], float]:
    return lambda scores: _average(row_losses(scores, name), scores)


def _average(losses: np.ndarray, scores: Scores) -> float:
    """The mean over what was observed, where rows have several outputs."""
    if losses.ndim == 1 or scores.y.shape != losses.shape:
        return float(losses.mean())
    return float(losses[~np.isnan(scores.y)].mean())


def _rmse(scores: Scores) -> float:
    return float(np.sqrt(_average(row_losses(scores, "rmse"), scores)))


def _ece(scores: Scores) -> float:
    assert scores.probs is not None
    return ece(scores.probs.max(axis=1), scores.correct)


def _coverage(scores: Scores) -> float:
    return coverage(scores.observed_pit)


def _class_mean(name: str) -> Callable[[Scores], float]:
    return lambda scores: by_class(scores).mean(name)


def _evidence(scores: Scores) -> float:
    return float(scores.log_evidence.sum())


METRICS: dict[str, Metric] = {
    "nlpd": Metric(_mean("nlpd"), _BOTH, "mean negative log predictive density (nats; lower)"),
    "error": Metric(_mean("error"), _CLASS, "share of wrong classes (lower)"),
    "brier": Metric(_mean("brier"), _CLASS, "squared distance of probabilities to the one-hot label (lower)"),
    "ece": Metric(_ece, _CLASS, f"calibration error of the predicted class, {BINS} bins (lower)"),
    "ece_classwise": Metric(_class_mean("ece"), _CLASS, "calibration error of every class, averaged (lower)"),
    "auc": Metric(_class_mean("auc"), _CLASS, "area under the ROC curve, mean over classes (0.5 is chance)"),
    "average_precision": Metric(
        _class_mean("average_precision"), _CLASS, "average precision, mean over classes (higher)"
    ),
    "rmse": Metric(_rmse, _NUMBER, "root mean squared error (lower)", "mean"),
    "mae": Metric(_mean("mae"), _NUMBER, "mean absolute error (lower)", "mean"),
    "coverage_90": Metric(
        _coverage, _NUMBER, "share of y inside the central 90% interval (0.90 is right)", "pit"
    ),
    "loss": Metric(_mean("loss"), _BOTH, "mean loss of the decisions (lower)", "loss"),
    "log_evidence": Metric(_evidence, _BOTH, "total log evidence (nats; higher)"),
}
"""Every metric by its name."""


def metric_names(classification: bool) -> list[str]:
    """The metrics that apply to a task.

    Arguments:
        classification: whether classes are predicted, rather than numbers.

    Example:
        >>> metric_names(classification=True)
        ['nlpd', 'error', 'brier', 'ece', 'ece_classwise', 'auc', 'average_precision', 'loss', 'log_evidence']
    """
    task = "classification" if classification else "regression"
    return [name for name, metric in METRICS.items() if task in metric.tasks]


_MISSING = {
    "mean": "a mean, and the likelihood has none: give it one, as in Likelihood(log_prob, mean=..., var=...)",
    "pit": "a distribution function, and the likelihood has none for its outputs: give it one, as in "
    "Likelihood(log_prob, cdf=...)",
    "loss": "decisions, and none were taken: pass a loss",
}
"""The words for what is missing where a field of `Scores` is None."""


def require_metrics(names: Iterable[str]) -> None:
    """Refuse a name that is no metric.

    Arguments:
        names: the names.

    Raises:
        CredoError: a metric is unknown.

    Example:
        >>> require_metrics(["nlpd", "rmse"])
    """
    for name in names:
        if name not in METRICS:
            hint = suggest(name, METRICS)
            raise CredoError(
                f"metrics must be among {', '.join(METRICS)}; got {name!r}" + (f" ({hint})." if hint else ".")
            )


def summarize(scores: Scores, names: Iterable[str] | None = None) -> dict[str, float]:
    """Metrics of some scores.

    Arguments:
        scores: the scores of at least one row.
        names: the metrics to compute; by default all that apply, and the NLPD of every other forecast method
            as `nlpd_<method>`.

    Returns:
        Numbers by name; NaN if there are no rows.

    Raises:
        CredoError: a metric is unknown, does not apply to this task, or needs something that the likelihood
            does not have, such as a distribution function.

    Example:
        >>> probs = np.array([[0.9, 0.1], [0.2, 0.8]])
        >>> one = np.ones(2)
        >>> scores = Scores(np.array([0, 1]), None, None, np.log([0.9, 0.8]), None, probs, {}, one, one)
        >>> summarize(scores, ["error"])
        {'error': 0.0}
    """
    ours = metric_names(scores.classification)
    possible = [name for name in ours if getattr(scores, METRICS[name].needs) is not None]
    selection = possible if names is None else list(names)
    require_metrics(selection)
    for name in selection:
        if name not in ours:
            task = "classification" if scores.classification else "regression"
            raise CredoError(f"the metric {name!r} is not for {task}; these are: {', '.join(possible)}.")
        if name not in possible:
            raise CredoError(f"the metric {name!r} needs {_MISSING[METRICS[name].needs]}.", field="metrics")
    if len(scores) == 0:
        return {name: float("nan") for name in selection}
    result = {name: METRICS[name].function(scores) for name in selection}
    if names is None:
        result |= {f"nlpd_{method}": float(-values.mean()) for method, values in scores.others.items()}
    return result
