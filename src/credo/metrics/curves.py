"""Curves over a stream, and reliability diagrams."""

from __future__ import annotations

import numpy as np

from credo.metrics.scores import BINS, Scores

__all__ = ["per_row", "reliability", "running", "windowed"]


def per_row(scores: Scores, name: str) -> np.ndarray:
    """The contribution (N,) of each row to a mean metric: nlpd, error, rmse (squared) or mae."""
    if name == "nlpd":
        return -scores.log_prob
    if name == "error":
        return 1.0 - scores.correct
    assert scores.mean is not None
    gap = np.asarray(scores.y - scores.mean, dtype=float).reshape(len(scores), -1)
    return (gap**2).mean(axis=1) if name == "rmse" else np.abs(gap).mean(axis=1)


def running(scores: Scores, name: str) -> np.ndarray:
    """The metric over all rows so far, (N,)."""
    mean = np.cumsum(per_row(scores, name)) / np.arange(1, len(scores) + 1)
    return np.sqrt(mean) if name == "rmse" else mean


def windowed(scores: Scores, name: str, window: int) -> np.ndarray:
    """The metric over the latest `window` rows (fewer at the start), (N,)."""
    total = np.concatenate([[0.0], np.cumsum(per_row(scores, name))])
    stop = np.arange(1, len(scores) + 1)
    start = np.maximum(stop - window, 0)
    mean = (total[stop] - total[start]) / (stop - start)
    return np.sqrt(np.maximum(mean, 0.0)) if name == "rmse" else mean


def reliability(scores: Scores, bins: int = BINS) -> dict[str, np.ndarray]:
    """Predicted beside observed frequencies.

    Returns:
        For classification: `predicted` (mean confidence of each bin), `observed` (accuracy) and `count`. For
        regression: `predicted` levels of central intervals, `observed` shares of y inside them, and `count`.
        Empty bins are NaN.
    """
    if scores.probs is not None:
        confidence, correct = scores.probs.max(axis=1), scores.correct
        which = np.clip((confidence * bins).astype(int), 0, bins - 1)
        count = np.bincount(which, minlength=bins)
        safe = np.where(count > 0, count, np.nan)
        predicted = np.bincount(which, confidence, minlength=bins) / safe
        return {
            "predicted": predicted,
            "observed": np.bincount(which, correct, minlength=bins) / safe,
            "count": count,
        }
    assert scores.pit is not None
    levels = np.linspace(0.05, 0.95, 19)
    pit = scores.pit.reshape(-1)
    inside = [np.mean(np.abs(pit - 0.5) <= level / 2) for level in levels]
    return {"predicted": levels, "observed": np.asarray(inside), "count": np.full(len(levels), pit.size)}
