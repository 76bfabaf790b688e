"""Numbers that judge predictions, by their names; and what each row adds to those that are means.

Means over rows are also taken as curves over a stream, and as reliability diagrams.

Metrics of each class against the rest: how well rare classes are ranked, believed and calibrated.

For a class c, the rows of c are the positives, all others the negatives, and p_c is the score. The metrics
need no more than the numbers of positives and negatives at each value of p_c. Where all rows are kept these
values are distinct, and the metrics are exact; in a stream they are bins, and the metrics are approximate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import DTypeLike

from credo.core.errors import CredoError, require_choice, suggest
from credo.metrics.calibration import BINS, LEVELS, add_at, central, count_bins, coverage, ece
from credo.metrics.scores import Scores

__all__ = [
    "METRICS",
    "ClassScores",
    "ClassTable",
    "LossName",
    "Metric",
    "by_class",
    "metric_names",
    "reliability",
    "require_metrics",
    "row_losses",
    "running",
    "summarize",
    "windowed",
]

LOGITS = (-18.0, 16.0)
"""The range of the log-odds that bins tell apart: from 1.5e-8 to what float32 can tell from 1."""

WIDTH = 0.25
"""The width of a bin of log-odds."""

COUNT = round((LOGITS[1] - LOGITS[0]) / WIDTH)
"""The number of bins of the log-odds."""


class ClassScores(NamedTuple):
    """Metrics of each class against the rest, with one entry a class.

    Attributes:
        rows: how many rows are of the class (C,).
        auc: the probability that a row of the class gets a greater p_c than a row of another class, where
            ties count half (C,).
        average_precision: the mean precision over the rows of the class, with rows sorted by p_c (C,); a
            ranking by chance has the share of the class.
        log_loss: the mean of -log p_c over the rows of the class, in nats (C,).
        ece: the expected calibration error of p_c over all rows, with 15 bins (C,).
        auc_error: the most by which `auc` can differ from its exact value (C,); 0 if all rows were kept.

    All but `rows` are NaN if there are no rows that they need.

    Example:
        >>> table = ClassTable(2)
        >>> table.add(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 1]))
        >>> table.scores().auc.tolist()
        [1.0, 1.0]
    """

    rows: np.ndarray
    auc: np.ndarray
    average_precision: np.ndarray
    log_loss: np.ndarray
    ece: np.ndarray
    auc_error: np.ndarray

    def mean(self, name: str) -> float:
        """The mean of a metric over the classes for which it exists; NaN if there are none."""
        values = getattr(self, name)
        there = values[~np.isnan(values)]
        if there.size:
            return float(there.mean())
        return float("nan")


def _auc(positives: np.ndarray, negatives: np.ndarray) -> float:
    """The area under the curve, from the counts at each score in ascending order."""
    pairs = positives.sum() * negatives.sum()
    below = np.cumsum(negatives) - negatives
    if pairs:
        return float((positives * (below + 0.5 * negatives)).sum() / pairs)
    return float("nan")


def _average_precision(positives: np.ndarray, negatives: np.ndarray) -> float:
    """sum_k (R_k - R_k-1) P_k over the scores k in descending order, with recall R and precision P."""
    hits = np.cumsum(positives[::-1])
    total = np.cumsum((positives + negatives)[::-1])
    if not len(hits) or not hits[-1]:
        return float("nan")
    return float((positives[::-1] * hits / np.maximum(total, 1)).sum() / hits[-1])


class ClassTable:
    """The rows of each class counted in bins of p_c, in constant memory.

    The bins of the log-odds are 0.25 wide, from -18 to 16, so that small probabilities are told apart. Rows
    within a bin count as ties: `ClassScores.auc_error` bounds what that changes.

    Arguments:
        classes: the number C of classes.

    Attributes:
        ranks: the negatives and positives in each bin of the log-odds (C, 136, 2).
        bins: for each class a table of `count_bins`, of p_c in 15 bins of equal width (C, 15, 3).
        losses: the sums of -log p_c over the rows of each class (C,).

    Example:
        >>> table = ClassTable(2)
        >>> table.add(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 1]))
        >>> table.scores().log_loss.round(3).tolist()
        [0.105, 0.223]
    """

    def __init__(self, classes: int) -> None:
        self.ranks = np.zeros((classes, COUNT, 2))
        self.bins = np.zeros((classes, BINS, 3))
        self.losses = np.zeros(classes)

    def add(self, probs: np.ndarray, y: np.ndarray, log_prob: np.ndarray | None = None) -> None:
        """Take in rows.

        Arguments:
            probs: class probabilities (n, C).
            y: class numbers (n,).
            log_prob: log p_y of each row (n,), if it is known to more digits than its probability.
        """
        classes = len(self.losses)
        label = np.asarray(y).astype(int)
        share = np.nan_to_num(np.asarray(probs, float))
        with np.errstate(divide="ignore"):
            own = np.log(share[np.arange(len(label)), label]) if log_prob is None else np.asarray(log_prob)
            logit = np.log(share) - np.log(np.maximum(1.0 - share, 1e-300))
        np.add.at(self.losses, label, -np.asarray(own, float))
        hot = label[:, None] == np.arange(classes)
        place = (np.clip(logit, LOGITS[0], LOGITS[1] - WIDTH) - LOGITS[0]) // WIDTH
        cell = np.arange(classes) * COUNT + place.astype(int)
        self.ranks += np.bincount((2 * cell + hot).ravel(), minlength=self.ranks.size).reshape(
            self.ranks.shape
        )
        level = np.arange(classes) * BINS + np.clip((share * BINS).astype(int), 0, BINS - 1)
        add_at(self.bins.reshape(-1, 3), level.ravel(), share.ravel(), hot.ravel())

    def widen(self, classes: int) -> None:
        """Make room for new classes, which are compared with the rows from here on.

        Arguments:
            classes: the number of classes, at least as many as so far.
        """
        wider = ClassTable(classes)
        for name, array in wider.arrays().items():
            array[: len(self.losses)] = getattr(self, name)
            setattr(self, name, array)

    def since(self, before: ClassTable) -> ClassTable:
        """The rows that came after those of an earlier state of this table, which may have had fewer classes.

        Arguments:
            before: the earlier state.
        """
        part = ClassTable(len(self.losses))
        for name, array in part.arrays().items():
            array += getattr(self, name)
            array[: len(before.losses)] -= getattr(before, name)
        return part

    def arrays(self) -> dict[str, np.ndarray]:
        """The counts and sums as arrays, by name."""
        return {"ranks": self.ranks, "bins": self.bins, "losses": self.losses}

    def scores(self) -> ClassScores:
        """The metrics of each class."""
        negatives = self.ranks[..., 0]
        positives = self.ranks[..., 1]
        rows = positives.sum(axis=1)
        others = negatives.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            ties = 0.5 * (positives * negatives).sum(axis=1) / (rows * others)
            log_loss = self.losses / np.where(rows > 0, rows, np.nan)
        return ClassScores(
            rows.astype(int),
            np.array([_auc(*pair) for pair in zip(positives, negatives, strict=True)]),
            np.array([_average_precision(*pair) for pair in zip(positives, negatives, strict=True)]),
            log_loss,
            _errors(self.bins),
            ties,
        )


def _errors(bins: np.ndarray) -> np.ndarray:
    """The expected calibration error of each class (C,), from tables of `count_bins` (C, bins, 3)."""
    rows = bins[..., 0].sum(axis=1)
    return np.asarray(np.abs(bins[..., 2] - bins[..., 1]).sum(axis=1) / np.where(rows > 0, rows, np.nan))


def by_class(scores: Scores) -> ClassScores:
    """Metrics of each class against the rest, exactly.

    Arguments:
        scores: the scores of N rows of a classification.

    Returns:
        The metrics, with one entry a class.

    Cost: C N log N.

    Example:
        >>> from credo.metrics import Scores
        >>> probs, one = np.array([[0.9, 0.1], [0.2, 0.8]]), np.ones(2)
        >>> scores = Scores(np.array([0, 1]), None, None, np.log([0.9, 0.8]), None, probs, {}, one, one > 0)
        >>> by_class(scores).average_precision.tolist()
        [1.0, 1.0]
    """
    assert scores.probs is not None
    table = ClassTable(scores.probs.shape[1])
    table.add(scores.probs, scores.y, scores.log_prob)
    approximate = table.scores()
    ranks: list[tuple[float, float]] = []
    for c, column in enumerate(scores.probs.T):
        values, place = np.unique(np.nan_to_num(column), return_inverse=True)
        hit = scores.y == c
        positives = np.bincount(place.ravel(), hit, minlength=len(values))
        negatives = np.bincount(place.ravel(), ~hit, minlength=len(values))
        ranks.append((_auc(positives, negatives), _average_precision(positives, negatives)))
    auc, precision = np.array(ranks).reshape(-1, 2).T
    return approximate._replace(auc=auc, average_precision=precision, auc_error=np.zeros(len(auc)))


LossName: TypeAlias = Literal["nlpd", "error", "brier", "rmse", "mae", "loss"]
"""The metrics that are means over rows; for the root mean squared error, its square is."""

_NEEDS: dict[LossName, tuple[str, str]] = {
    "error": ("probs", "class probabilities"),
    "brier": ("probs", "class probabilities"),
    "rmse": ("mean", "predictive means"),
    "mae": ("mean", "predictive means"),
    "loss": ("loss", "the losses of decisions"),
}
"""The field of `Scores` that a metric needs, and what it holds."""


def row_losses(scores: Scores, name: LossName, dtype: DTypeLike | None = None) -> np.ndarray:
    """The loss that each row adds to a metric.

    Arguments:
        scores: the scores of N rows.
        name: "nlpd", -log p(y); "error", whether the class was wrong; "brier", |p - onehot(y)|^2; "rmse",
            (y - mean)^2; "mae", |y - mean|; "loss", the loss of the decision.
        dtype: the precision of the distances of a regression; by default that of the forecasts.

    Returns:
        The losses (N,), or (N, C) for a regression with C outputs; NaN if an output was not observed.

    Raises:
        CredoError: the metric is unknown, or the scores lack what it needs.

    Example:
        >>> from credo.metrics import Scores
        >>> one = np.ones(2)
        >>> scores = Scores(np.array([1.0, 4.0]), one, one, -one, None, None, {}, one, one > 0)
        >>> row_losses(scores, "rmse").tolist()
        [0.0, 9.0]
    """
    require_choice("name", name, get_args(LossName))
    field, words = _NEEDS.get(name, ("log_prob", ""))
    if getattr(scores, field) is None:
        raise CredoError(f"{name!r} needs {words}, and these scores have none.", field="name")
    if name == "nlpd":
        return -scores.log_prob
    if name == "loss":
        return np.asarray(scores.loss, float)
    if name == "error":
        return 1.0 - scores.correct
    if name == "brier":
        assert scores.probs is not None
        onehot = np.eye(scores.probs.shape[1])[scores.y.astype(int)]
        return np.asarray(((scores.probs - onehot) ** 2).sum(axis=1))
    assert scores.mean is not None
    gap = np.asarray(scores.y - scores.mean, dtype=dtype)
    return gap**2 if name == "rmse" else np.abs(gap)


def _rows(scores: Scores, name: LossName) -> np.ndarray:
    """The loss of each row (N,), in double precision; the mean over those observed of several outputs."""
    losses = row_losses(scores, name, float)
    if losses.ndim == 1:
        return losses
    return np.asarray(np.nanmean(losses, axis=1))


def normal_cdf(z: np.ndarray) -> np.ndarray:
    """The distribution function of the standard normal distribution, of the shape of z, in double precision.

    erfc(-z / sqrt(2)) / 2 by Python's own function, which takes a tenth of a microsecond a number: that of
    SciPy is faster, but takes a third of the time of JAX to import.
    """
    return np.asarray(0.5 * _ERFC(-z / math.sqrt(2.0)), float)


_ERFC = np.frompyfunc(math.erfc, 1, 1)


def normal_crps(y: np.ndarray, mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """The continuous ranked probability score of normal forecasts, of the shape of y, in its unit.

    sd (z (2 Phi(z) - 1) + 2 phi(z) - 1 / sqrt(pi)) with z = (y - mean) / sd (Gneiting and Raftery 2007,
    equation 21): the absolute error that a forecast without a spread would have, lower is better.

    Arguments:
        y: what was observed.
        mean, sd: the mean and the standard deviation of each forecast.

    Example:
        >>> normal_crps(np.array([1.0]), np.array([0.0]), np.array([1e-9])).round(6).tolist()
        [1.0]
    """
    z = (y - mean) / sd
    density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    return np.asarray(sd * (z * (2 * normal_cdf(z) - 1) + 2 * density - 1 / math.sqrt(math.pi)))


def running(scores: Scores, name: LossName) -> np.ndarray:
    """A metric over all rows so far.

    Arguments:
        scores: the scores of N rows.
        name: "nlpd", "error", "brier", "rmse", "mae" or "loss".

    Returns:
        The curve (N,), whose entry n is the metric of the rows up to n.

    Example:
        >>> one = np.ones(2)
        >>> scores = Scores(np.array([1.0, 3.0]), one, one, -one, None, None, {}, one, one > 0)
        >>> running(scores, "mae").tolist()
        [0.0, 1.0]
    """
    mean = np.cumsum(_rows(scores, name)) / np.arange(1, len(scores) + 1)
    if name == "rmse":
        return np.sqrt(mean)
    return mean


def windowed(scores: Scores, name: LossName, window: int) -> np.ndarray:
    """A metric over the latest rows.

    Arguments:
        scores: the scores of N rows.
        name: see `running`.
        window: how many of the latest rows to average over; at the start there are fewer.

    Returns:
        The curve (N,).

    Example:
        >>> one = np.ones(3)
        >>> scores = Scores(np.array([1.0, 3.0, 5.0]), one, one, -one, None, None, {}, one, one > 0)
        >>> windowed(scores, "mae", 2).tolist()
        [0.0, 1.0, 3.0]
    """
    total = np.concatenate([[0.0], np.cumsum(_rows(scores, name))])
    stop = np.arange(1, len(scores) + 1)
    start = np.maximum(stop - window, 0)
    mean = (total[stop] - total[start]) / (stop - start)
    return np.asarray(np.sqrt(np.maximum(mean, 0.0)) if name == "rmse" else mean)


def reliability(scores: Scores, bins: int = BINS) -> dict[str, np.ndarray]:
    """Predicted beside observed frequencies, for a reliability diagram.

    Arguments:
        scores: the scores of N rows.
        bins: the number of bins of the confidence (classification).

    Returns:
        For a classification `predicted` (the mean confidence of each bin), `observed` (its accuracy) and
        `count`, each (bins,); empty bins are NaN. For a regression `predicted`, the levels 0.05 to 0.95 of
        central intervals, `observed`, the shares of y inside them, and `count`, each (19,).

    Raises:
        CredoError: the likelihood of a regression has no distribution function.

    Example:
        >>> probs, one = np.array([[0.9, 0.1], [0.2, 0.8]]), np.ones(2)
        >>> scores = Scores(np.array([0, 1]), None, None, np.log([0.9, 0.8]), None, probs, {}, one, one > 0)
        >>> reliability(scores, bins=2)["observed"].tolist()
        [nan, 1.0]
    """
    if scores.probs is not None:
        count, confidence, correct = count_bins(scores.probs.max(axis=1), scores.correct, bins).T
        safe = np.where(count > 0, count, np.nan)
        return {"predicted": confidence / safe, "observed": correct / safe, "count": count.astype(int)}
    if scores.pit is None:
        raise CredoError("a reliability diagram needs a distribution function, and the likelihood has none.")
    inside = central(scores.observed_pit).reshape(-1)
    count = count_bins(inside, np.ones(len(inside)), LEVELS)[:, 0]
    levels = np.arange(1, LEVELS) / LEVELS
    share = np.cumsum(count)[:-1] / max(len(inside), 1)
    return {"predicted": levels, "observed": share, "count": np.full(len(levels), len(inside))}


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
