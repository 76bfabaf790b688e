"""Calibration metrics, which are computed from counts of rows in bins of probability.

A table of bins is (bins, 3): for each bin how many rows fell into it, the sum of their probabilities, and how
many of them were right. Tables of consecutive rows are added, so that a stream needs constant memory.
"""

from __future__ import annotations

import numpy as np

__all__ = [
    "BINS",
    "LEVELS",
    "add_to_bins",
    "central",
    "count_bins",
    "coverage",
    "coverage_of",
    "ece",
    "ece_of",
]

BINS = 15
"""The default number of bins of the confidence: that of Guo et al. (2017), "On calibration of modern neural
networks"."""

LEVELS = 20
"""The bins of the central probability of a regression, so that each interval of 5%, 10%, ... ends at one."""


def count_bins(probability: np.ndarray, correct: np.ndarray, bins: int = BINS) -> np.ndarray:
    """Count rows in bins of equal width.

    Arguments:
        probability: the probability of each row, in [0, 1] (N,); NaN counts as 0.
        correct: whether the row was right (N,).
        bins: the number of bins.

    Returns:
        The table (bins, 3).

    Example:
        >>> count_bins(np.array([0.1, 0.9, 0.8]), np.array([False, True, True]), bins=2).tolist()
        [[1.0, 0.1, 0.0], [2.0, 1.7000000000000002, 2.0]]
    """
    table = np.zeros((bins, 3))
    add_to_bins(table, probability, correct)
    return table


def add_to_bins(table: np.ndarray, probability: np.ndarray, correct: np.ndarray) -> None:
    """Count further rows in a table of bins, in their order: so the bits of the sums do not depend on how
    rows are grouped.

    Arguments:
        table: (bins, 3), see `count_bins`; it is changed.
        probability: the probability of each row, in [0, 1] (N,); NaN counts as 0.
        correct: whether the row was right (N,).

    Example:
        >>> table = count_bins(np.array([0.1]), np.array([False]), bins=2)
        >>> add_to_bins(table, np.array([0.9, 0.8]), np.array([True, True]))
        >>> table.tolist()
        [[1.0, 0.1, 0.0], [2.0, 1.7000000000000002, 2.0]]
    """
    value = np.nan_to_num(probability)
    bins = len(table)
    which = np.clip((value * bins).astype(int), 0, bins - 1)
    add_at(table, which, value, correct)


def add_at(table: np.ndarray, which: np.ndarray, value: np.ndarray, correct: np.ndarray) -> None:
    """Count rows (N,) in the bins `which` (N,) of a table (bins, 3), which is changed, in their order."""
    bins = len(table)
    table[:, 0] += np.bincount(which, minlength=bins)
    np.add.at(table[:, 1], which, value.astype(float))  # one by one; the other columns are whole numbers
    table[:, 2] += np.bincount(which, correct, minlength=bins)


def ece_of(table: np.ndarray) -> float:
    """The expected calibration error of a table of bins, or NaN if there are no rows.

        sum_b (n_b / N) |accuracy_b - confidence_b|

    Arguments:
        table: (bins, 3), see `count_bins`; the probability is that of the most probable class.

    Example:
        >>> round(ece_of(np.array([[4.0, 3.0, 2.0], [0.0, 0.0, 0.0]])), 3)
        0.25
    """
    rows = table[:, 0].sum()
    if rows:
        return float(np.abs(table[:, 2] - table[:, 1]).sum() / rows)
    return float("nan")


def ece(confidence: np.ndarray, correct: np.ndarray, bins: int = BINS) -> float:
    """The expected calibration error: sum_b (n_b / N) |accuracy_b - confidence_b|.

    Arguments:
        confidence: the largest class probability of each row (N,).
        correct: whether that class was observed (N,).
        bins: the number of bins of equal width.

    Example:
        >>> round(ece(np.ones(10), np.arange(10) < 7), 3)
        0.3
    """
    return ece_of(count_bins(confidence, correct, bins))


def central(pit: np.ndarray) -> np.ndarray:
    """The probability of the smallest central interval that holds y: |2 P(Y <= y) - 1|.

    Arguments:
        pit: P(Y <= y), of any shape. If it is NaN because nothing was forecast, the result is 1.

    Example:
        >>> central(np.array([0.5, 0.95])).round(3).tolist()
        [0.0, 0.9]
    """
    return np.nan_to_num(np.abs(2.0 * np.asarray(pit, float) - 1.0), nan=1.0)


def coverage_of(table: np.ndarray, level: float = 0.9) -> float:
    """The share of rows inside the central interval of a given probability, or NaN if there are no rows.

    Arguments:
        table: (bins, 3), see `count_bins`; the probability is that of `central`.
        level: the probability of the interval, at the end of a bin.

    Example:
        >>> coverage_of(count_bins(central(np.array([0.5, 0.2, 0.99])), np.ones(3), LEVELS)).hex()[:6]
        '0x1.55'
    """
    rows = table[:, 0].sum()
    if rows:
        return float(table[: round(level * len(table)), 0].sum() / rows)
    return float("nan")


def coverage(pit: np.ndarray, level: float = 0.9) -> float:
    """The share of y inside the central interval of a given probability, which it equals if calibrated.

    Arguments:
        pit: P(Y <= y | x, past) of each row, of any shape.
        level: the probability of the interval, a multiple of 0.05.

    Example:
        >>> coverage(np.array([0.01, 0.2, 0.5, 0.97]))
        0.5
    """
    inside = central(pit).reshape(-1)
    return coverage_of(count_bins(inside, np.ones(len(inside)), LEVELS), level)
