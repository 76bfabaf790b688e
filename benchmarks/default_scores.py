"""The scores of forecasts that were made row by row, the same for credo and for its peers.

Probabilities are clipped at 1e-6 and normalised again. A regression is scored from row 11 on, since the first
ten targets say where its numbers lie. A peer that gives numbers only is given a normal forecast around each.
Its standard deviation is the root mean square of the peer's own errors on the rows before, where the past
fades by the factor of `FORGETTING` that turns out best for this peer on this stream: a choice in hindsight
that favours the peer. The error of its very first forecast, which is 0 for many, does not count.
"""

from __future__ import annotations

import math
from typing import TypedDict

import numpy as np
from scipy.signal import lfilter
from scipy.stats import norm

from credo.metrics import count_bins, ece_of

__all__ = [
    "FIRST",
    "FORGETTING",
    "LEVELS",
    "Scores",
    "bounded",
    "class_scores",
    "normal_scores",
    "number_scores",
    "running_normal",
    "spread_of_errors",
]

LEAST = 1e-6
BINS = 15
SETTLED = 2000
"""Rows after which calibration is scored once more."""

FIRST = 10
"""Rows of a regression that are not scored."""

FORGETTING = (1.0, 0.99, 0.95)
"""How the errors of a peer's past may fade."""

LEVELS = np.arange(0.025, 1.0, 0.05)
"""The levels of the quantiles from which the CRPS is taken."""


class Scores(TypedDict, total=False):
    """The scores of a peer on a stream.

    Example:
        >>> scores: Scores = {"log_loss": 0.3, "error": 0.1}
    """

    rows: int
    log_loss: float
    error: float
    rmse: float
    ece: float
    ece_settled: float | None
    coverage: float
    coverage_settled: float | None
    crps: float
    worst: float
    seconds: float
    rows_per_second: float


def bounded(probs: np.ndarray) -> np.ndarray:
    """Probabilities (N, C) without any below 1e-6; a row that has no forecast is uniform."""
    probs = np.where(np.isfinite(probs) & (probs > 0.0), probs, 0.0)
    total = probs.sum(axis=1, keepdims=True)
    probs = np.where(total > 0.0, probs / np.where(total > 0.0, total, 1.0), 1.0 / probs.shape[1])
    probs = np.maximum(probs, LEAST)
    normalised: np.ndarray = probs / probs.sum(axis=1, keepdims=True)
    return normalised


def class_scores(probs: np.ndarray, labels: np.ndarray) -> Scores:
    """The scores of class probabilities (N, C) of labels (N,), which are class numbers."""
    probs = bounded(probs)
    losses = -np.log(probs[np.arange(len(labels)), labels])
    right = probs.argmax(axis=1) == labels
    confidence = probs.max(axis=1)

    def ece(start: int) -> float:
        return ece_of(count_bins(confidence[start:], right[start:], BINS))

    return {
        "rows": len(labels),
        "log_loss": float(losses.mean()),
        "error": float(1.0 - right.mean()),
        "ece": ece(0),
        "ece_settled": ece(SETTLED) if len(labels) > SETTLED else None,
        "worst": float(losses.max()),
    }


def spread_of_errors(mean: np.ndarray, y: np.ndarray, forgetting: float) -> np.ndarray:
    """The root mean square of the errors before each row; it is at least a millionth of the targets' size.

    Arguments:
        mean, y: the forecasts and the targets (N,).
        forgetting: the weight of a row's error beside that of the next row, up to 1.
    """
    with np.errstate(over="ignore"):
        squares = np.concatenate([[0.0], (y - mean)[1:] ** 2])
    weights = np.concatenate([[0.0], np.ones(len(y) - 1)])
    total, weight = (lfilter([1.0], [1.0, -forgetting], column) for column in (squares, weights))
    before = np.concatenate([[0.0], total[:-1] / np.maximum(weight[:-1], 1.0)])
    least = 1e-6 * max(float(np.abs(y).max()), 1e-12)
    spread: np.ndarray = np.maximum(np.sqrt(before), least)
    return spread


def running_normal(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the spread (N,) of the targets before each row: the forecast of who says nothing."""
    rows = np.maximum(np.arange(len(y)), 1)
    running = np.concatenate([[0.0], np.cumsum(y)[:-1]]) / rows
    squares = np.concatenate([[0.0], np.cumsum(y**2)[:-1]]) / rows
    return running, np.sqrt(np.maximum(squares - running**2, 1e-12))


def normal_scores(mean: np.ndarray, sd: np.ndarray, y: np.ndarray) -> Scores:
    """The scores of normal forecasts (N,) of numbers (N,).

    A row without a mean is forecast by the mean and the spread of the targets before it, and a standard
    deviation that is absent is taken from the errors so far.
    """
    running, spread = running_normal(y)
    absent = ~(np.isfinite(mean) & (np.abs(mean) < 1e100))
    mean = np.where(absent, running, mean)
    candidates = []
    for forgetting in FORGETTING if np.isnan(sd).any() else (1.0,):
        own = np.where(np.isfinite(sd), sd, spread_of_errors(mean, y, forgetting))
        candidates.append(_normal(mean, np.where(absent, spread, own), y))
    return min(candidates, key=lambda scores: scores["log_loss"])


def _normal(mean: np.ndarray, sd: np.ndarray, y: np.ndarray) -> Scores:
    z = (y - mean) / sd
    losses = 0.5 * z**2 + np.log(sd * math.sqrt(2.0 * math.pi))
    quantiles = mean[:, None] + sd[:, None] * norm.ppf(LEVELS)
    return number_scores(mean, -losses, norm.cdf(z), quantiles, y)


def number_scores(
    mean: np.ndarray, log_prob: np.ndarray, pit: np.ndarray, quantiles: np.ndarray, y: np.ndarray
) -> Scores:
    """The scores of forecasts of numbers. Arrays have a row for each target; the first ten are left out.

    Arguments:
        mean: the forecast means (N,).
        log_prob: the log densities of the targets (N,).
        pit: the forecast probabilities of a smaller target (N,).
        quantiles: the quantiles at `LEVELS` (N, L).
        y: the targets (N,).
    """
    mean, log_prob, pit, quantiles, y = (
        array[FIRST:].astype(float) for array in (mean, log_prob, pit, quantiles, y)
    )
    inside = np.abs(2.0 * pit - 1.0) <= 0.9
    gap = y[:, None] - quantiles
    pinball = np.maximum(LEVELS * gap, (LEVELS - 1.0) * gap)
    return {
        "rows": len(y),
        "log_loss": float(-log_prob.mean()),
        "rmse": float(np.sqrt(np.mean((y - mean) ** 2))),
        "coverage": float(inside.mean()),
        "coverage_settled": float(inside[SETTLED:].mean()) if len(y) > SETTLED else None,
        "crps": float(2.0 * pinball.mean()),
        "worst": float(-log_prob.min()),
    }
