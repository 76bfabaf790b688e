"""Metrics of each class against the rest: how well rare classes are ranked, believed and calibrated.

For a class c, the rows of c are the positives, all others the negatives, and p_c is the score. The metrics
need no more than the numbers of positives and negatives at each value of p_c. Where all rows are kept these
values are distinct, and the metrics are exact; in a stream they are bins, and the metrics are approximate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from credo.metrics.calibration import BINS
from credo.metrics.scores import Scores

__all__ = ["ClassScores", "ClassTable", "by_class"]

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
        self.losses += np.bincount(label, -own, minlength=classes)
        hot = label[:, None] == np.arange(classes)
        place = (np.clip(logit, LOGITS[0], LOGITS[1] - WIDTH) - LOGITS[0]) // WIDTH
        cell = np.arange(classes) * COUNT + place.astype(int)
        self.ranks += np.bincount((2 * cell + hot).ravel(), minlength=self.ranks.size).reshape(
            self.ranks.shape
        )
        level = np.arange(classes) * BINS + np.clip((share * BINS).astype(int), 0, BINS - 1)
        columns = [
            np.bincount(level.ravel(), weight, minlength=classes * BINS)
            for weight in (None, share.ravel(), hot.ravel().astype(float))
        ]
        self.bins += np.stack(columns, axis=1).reshape(self.bins.shape)

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
