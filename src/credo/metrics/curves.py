"""Curves over a stream, and reliability diagrams."""

from __future__ import annotations

import numpy as np

from credo.core.errors import CredoError
from credo.metrics.calibration import BINS, LEVELS, central, count_bins
from credo.metrics.losses import LossName, row_losses
from credo.metrics.scores import Scores

__all__ = ["reliability", "running", "windowed"]


def _rows(scores: Scores, name: LossName) -> np.ndarray:
    """The loss of each row (N,), in double precision; the mean over those observed of several outputs."""
    losses = row_losses(scores, name, float)
    return losses if losses.ndim == 1 else np.asarray(np.nanmean(losses, axis=1))


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
    return np.sqrt(mean) if name == "rmse" else mean


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
