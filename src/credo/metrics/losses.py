"""The contribution of each row to the metrics that are means, curves over a stream, reliability diagrams."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import DTypeLike
from scipy.special import ndtr

from credo.core.errors import CredoError, require_choice
from credo.metrics.calibration import BINS, LEVELS, central, count_bins
from credo.metrics.scores import Scores

__all__ = ["LossName", "reliability", "row_losses", "running", "windowed"]

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
    return np.asarray(sd * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / math.sqrt(math.pi)))


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
