"""Predictions with their observations, and numbers that judge them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from credo.core.errors import CredoError, suggest
from credo.metrics.calibration import BINS, coverage, ece
from credo.metrics.classes import by_class
from credo.metrics.losses import LossName, row_losses

__all__ = ["METRICS", "Metric", "Scores", "metric_names", "require_metrics", "summarize"]


@dataclasses.dataclass(frozen=True)
class Scores:
    """Predictions of N rows with their observations. Rows without an observation are left out.

    Attributes:
        y: the observations (N,), or (N, C) for several outputs, of which some may be NaN.
        mean, sd: the predictive mean and standard deviation, shaped as y (regression); None for class
            probabilities, and where the likelihood has none.
        log_prob: log p(y | x, past) of each row (N,), in nats.
        pit: P(Y <= y | x, past) (N,) or (N, C); uniform where the predictive is calibrated (regression). None
            where the likelihood has no distribution function.
        probs: class probabilities (N, C), or None for regression.
        others: log p(y | x, past) under other forecast methods, by their names.
        log_evidence: the log evidence that updates reported (N,).
        ok: whether the row was taken in (N,).
        loss: what the decision on each row cost (N,), where decisions were taken; see `credo.Decision`.
        action: these decisions, with a leading axis N.
        compared: class probabilities (N, C), or `mean` and `sd` side by side (N, 2), under other forecast
            methods, by their names.

    Example:
        >>> one = np.ones(2)
        >>> scores = Scores(np.array([1.0, 3.0]), one, one, -one, None, None, {}, one, one > 0)
        >>> len(scores), scores.classification, summarize(scores, ["mae"])
        (2, False, {'mae': 1.0})
    """

    y: np.ndarray
    mean: np.ndarray | None
    sd: np.ndarray | None
    log_prob: np.ndarray
    pit: np.ndarray | None
    probs: np.ndarray | None
    others: dict[str, np.ndarray]
    log_evidence: np.ndarray
    ok: np.ndarray
    loss: np.ndarray | None = None
    action: np.ndarray | None = None
    compared: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.log_prob)

    @property
    def classification(self) -> bool:
        """Whether y is a class."""
        return self.probs is not None

    @property
    def correct(self) -> np.ndarray:
        """Whether the most probable class was observed (N,)."""
        assert self.probs is not None
        return np.asarray(self.probs.argmax(axis=1) == self.y)

    @property
    def observed_pit(self) -> np.ndarray:
        """The `pit` of what was observed: outputs that are NaN in y are left out."""
        assert self.pit is not None
        several = self.pit.ndim > 1 and self.pit.shape == self.y.shape
        return self.pit[~np.isnan(self.y)] if several else self.pit

    def rows(self, where: np.ndarray | slice) -> Scores:
        """The scores of some of the rows.

        Arguments:
            where: booleans (N,), positions, or a slice.
        """
        return self._each(lambda column: column[where])

    @staticmethod
    def concatenate(parts: Sequence[Scores]) -> Scores:
        """The scores of consecutive chunks as one.

        Arguments:
            parts: the scores, at least one, all of the same task and with the same other forecasts.
        """
        return Scores(
            np.concatenate([part.y for part in parts]),
            _joined([part.mean for part in parts]),
            _joined([part.sd for part in parts]),
            np.concatenate([part.log_prob for part in parts]),
            _joined([part.pit for part in parts]),
            _joined([part.probs for part in parts]),
            {name: np.concatenate([part.others[name] for part in parts]) for name in parts[0].others},
            np.concatenate([part.log_evidence for part in parts]),
            np.concatenate([part.ok for part in parts]),
            _joined([part.loss for part in parts]),
            _joined([part.action for part in parts]),
            {name: np.concatenate([part.compared[name] for part in parts]) for name in parts[0].compared},
        )

    def _each(self, function: Callable[[np.ndarray], np.ndarray]) -> Scores:
        def optional(column: np.ndarray | None) -> np.ndarray | None:
            return None if column is None else function(column)

        return Scores(
            function(self.y),
            optional(self.mean),
            optional(self.sd),
            function(self.log_prob),
            optional(self.pit),
            optional(self.probs),
            {name: function(column) for name, column in self.others.items()},
            function(self.log_evidence),
            function(self.ok),
            optional(self.loss),
            optional(self.action),
            {name: function(column) for name, column in self.compared.items()},
        )


def _joined(columns: Sequence[np.ndarray | None]) -> np.ndarray | None:
    present = [column for column in columns if column is not None]
    return np.concatenate(present) if present else None


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


_BOTH, _CLASS, _NUMBER = ("classification", "regression"), ("classification",), ("regression",)


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
"""What is missing where a field of `Scores` is None."""


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
        Numbers by name; NaN where there are no rows.

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
