"""What was predicted and what came, and numbers that judge it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from credo.core.errors import CredoError, suggest

__all__ = ["METRICS", "Metric", "Scores", "ece", "metric_names", "summarize"]

BINS = 15


@dataclasses.dataclass(frozen=True)
class Scores:
    """Predictions of N rows beside their observations; rows without an observation are left out.

    Attributes:
        y: what came (N,) or (N, C) for several outputs.
        mean, sd: the predictive mean and standard deviation, shaped as y (regression; class probabilities
            have none).
        log_prob: log p(y | x, past) of each row (N,), in nats.
        pit: P(Y <= y | x, past) (N,) or (N, C); uniform where the predictive is calibrated (regression).
        probs: class probabilities (N, C), or None for regression.
        others: log p(y | x, past) by other forecast methods, by their names.
        log_evidence: what updates reported (N,).
        ok: whether the row was taken in (N,).
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

    def __len__(self) -> int:
        return len(self.log_prob)

    @property
    def classification(self) -> bool:
        """Whether y is a class."""
        return self.probs is not None

    @property
    def correct(self) -> np.ndarray:
        """Whether the most probable class came, (N,)."""
        assert self.probs is not None
        return self.probs.argmax(axis=1) == self.y

    def rows(self, where: np.ndarray | slice) -> Scores:
        """The scores of some of the rows."""

        def take(value: object) -> object:
            if isinstance(value, dict):
                return {name: item[where] for name, item in value.items()}
            return value[where] if isinstance(value, np.ndarray) else value

        return Scores(**{f.name: take(getattr(self, f.name)) for f in dataclasses.fields(self)})  # type: ignore[arg-type]

    @staticmethod
    def concatenate(parts: Sequence[Scores]) -> Scores:
        """Scores of consecutive chunks as one."""

        def join(values: list) -> object:
            if values[0] is None:
                return None
            if isinstance(values[0], dict):
                return {name: np.concatenate([v[name] for v in values]) for name in values[0]}
            return np.concatenate(values)

        fields = dataclasses.fields(Scores)
        return Scores(**{f.name: join([getattr(p, f.name) for p in parts]) for f in fields})  # type: ignore[arg-type]


class Metric(NamedTuple):
    """A metric: its function, which tasks it is for, and what it says."""

    function: Callable[[Scores], float]
    tasks: tuple[str, ...]
    meaning: str


_BOTH, _CLASS, _NUMBER = ("classification", "regression"), ("classification",), ("regression",)


def ece(confidence: np.ndarray, correct: np.ndarray, bins: int = BINS) -> float:
    """Expected calibration error: sum_b (n_b / N) |accuracy_b - confidence_b| over bins of equal width.

    Arguments:
        confidence: the largest class probability of each row (N,).
        correct: whether that class came (N,).
        bins: how many bins.
    """
    which = np.clip((confidence * bins).astype(int), 0, bins - 1)
    gaps = np.bincount(which, correct - confidence, minlength=bins)
    return float(np.abs(gaps).sum() / len(confidence))


def _brier(s: Scores) -> float:
    assert s.probs is not None
    onehot = np.eye(s.probs.shape[1])[s.y.astype(int)]
    return float(((s.probs - onehot) ** 2).sum(axis=1).mean())


def _ece(s: Scores) -> float:
    assert s.probs is not None
    return ece(s.probs.max(axis=1), s.correct)


def _coverage(s: Scores) -> float:
    assert s.pit is not None
    return float(((s.pit >= 0.05) & (s.pit <= 0.95)).mean())


METRICS: dict[str, Metric] = {
    "nlpd": Metric(
        lambda s: float(-s.log_prob.mean()), _BOTH, "mean negative log predictive density (nats; lower)"
    ),
    "error": Metric(lambda s: float(1 - s.correct.mean()), _CLASS, "share of wrong classes (lower)"),
    "brier": Metric(_brier, _CLASS, "squared distance of probabilities to the one-hot label (lower)"),
    "ece": Metric(_ece, _CLASS, "expected calibration error, 15 bins (lower)"),
    "rmse": Metric(
        lambda s: float(np.sqrt(((s.y - s.mean) ** 2).mean())), _NUMBER, "root mean squared error (lower)"
    ),
    "mae": Metric(lambda s: float(np.abs(s.y - s.mean).mean()), _NUMBER, "mean absolute error (lower)"),
    "coverage": Metric(_coverage, _NUMBER, "share of y inside the central 90% interval (0.90 is right)"),
    "log_evidence": Metric(lambda s: float(s.log_evidence.sum()), _BOTH, "total log evidence (nats; higher)"),
}
"""Every metric by its name."""


def metric_names(classification: bool) -> list[str]:
    """The metrics that apply to a task."""
    task = "classification" if classification else "regression"
    return [name for name, metric in METRICS.items() if task in metric.tasks]


def summarize(scores: Scores, names: Iterable[str] | None = None) -> dict[str, float]:
    """Metrics of some scores.

    Arguments:
        scores: at least one row.
        names: which metrics; by default all that apply, and the NLPD of every other forecast method as
            `nlpd_<method>`.

    Raises:
        CredoError: a metric is unknown, or is not for this task.

    Example:
        >>> probs = np.array([[0.9, 0.1], [0.2, 0.8]])
        >>> one = np.ones(2)
        >>> scores = Scores(np.array([0, 1]), None, None, np.log([0.9, 0.8]), None, probs, {}, one, one)
        >>> summarize(scores, ["error"])
        {'error': 0.0}
    """
    possible = metric_names(scores.classification)
    chosen = possible if names is None else list(names)
    for name in chosen:
        if name not in METRICS:
            hint = suggest(name, METRICS)
            raise CredoError(
                f"metrics must be among {', '.join(METRICS)}; got {name!r}" + (f" ({hint})." if hint else ".")
            )
        if name not in possible:
            task = "classification" if scores.classification else "regression"
            raise CredoError(f"the metric {name!r} is not for {task}; these are: {', '.join(possible)}.")
    if len(scores) == 0:
        return {name: float("nan") for name in chosen}
    result = {name: METRICS[name].function(scores) for name in chosen}
    if names is None:
        result |= {f"nlpd_{method}": float(-values.mean()) for method, values in scores.others.items()}
    return result
