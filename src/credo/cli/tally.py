"""Running scores in constant memory: our forecasts beside simple baselines on the very same rows.

Sums are kept of blocks of rows; where there are too many blocks, neighbours are merged, so that a curve over
any stream has at most `BLOCKS` points. All of it is a handful of arrays, saved with the belief, so that a
resumed run continues its curves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from credo.metrics import Scores

__all__ = ["BINS", "RECENT", "Tally"]

BINS = 20
"""Bins of the confidence (classification) or of the central probability (regression)."""

RECENT = 200
"""Latest rows of a regression that are kept for the plot of its predictive bands."""

BLOCKS = 1000
COLUMNS = ("rows", "nlpd", "loss", "plugin", "extra", "base_nlpd", "base_loss", "last_loss")
"""What is summed: `loss` is 0/1 or the squared error, `extra` the Brier score or the absolute error."""


class Tally:
    """Scores of a stream so far.

    Arguments:
        task: "classification" or "regression".
        classes: how many there are.
    """

    def __init__(self, task: str, classes: int = 0) -> None:
        self.task = task
        self.scored = 0
        self.size = 1
        self.sums = np.zeros((0, len(COLUMNS)))
        self.bins = np.zeros((BINS, 3))
        self.counts = np.zeros(classes)
        self.last = np.full(1, np.nan)
        self.recent = np.zeros((0, 4))
        self.trace = np.zeros((0, 3))

    def class_baseline(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How the class frequencies so far predict each label, which then is counted.

        Arguments:
            y: (n,) class numbers, in the order of the rows.

        Returns:
            The log probability of each label, and whether it was not the most frequent class so far.
        """
        n, classes = len(y), len(self.counts)
        hot = np.zeros((n, classes))
        hot[np.arange(n), y] = 1.0
        before = (
            self.counts + np.concatenate([np.zeros((1, classes)), np.cumsum(hot, axis=0)[:-1]]) if n else hot
        )
        self.counts = self.counts + hot.sum(axis=0)
        log_prob = np.log((before[np.arange(n), y] + 1.0) / (before.sum(axis=1) + classes))
        return log_prob, (before.argmax(axis=1) != y).astype(float)

    def add(self, scores: Scores, base_log_prob: np.ndarray, base_loss: np.ndarray) -> None:
        """Take in the scores of consecutive rows, in the target's own units, beside the baseline's."""
        n = len(scores)
        if n == 0:
            return
        y = np.asarray(scores.y, float)
        if scores.probs is not None:
            loss = 1.0 - scores.correct
            extra = ((scores.probs - np.eye(scores.probs.shape[1])[scores.y.astype(int)]) ** 2).sum(axis=1)
            before = np.concatenate([self.last, y[:-1]])
            last_loss = (before != y).astype(float)
            self._bin(scores.probs.max(axis=1), scores.correct)
        else:
            mean, sd = np.asarray(scores.mean, float), np.asarray(scores.sd, float)
            gap = y - mean
            loss, extra = gap**2, np.abs(gap)
            before = np.concatenate([self.last, y[:-1]])
            last_loss = np.where(np.isnan(before), gap, y - before) ** 2
            self._bin(np.abs(2.0 * np.asarray(scores.pit, float) - 1.0), np.ones(n))
            rows = np.stack([np.arange(self.scored + 1, self.scored + n + 1), y, mean, sd], axis=1)
            self.recent = np.concatenate([self.recent, rows])[-RECENT:]
        plugin = -scores.others.get("plugin", scores.log_prob)
        columns = (np.ones(n), -scores.log_prob, loss, plugin, extra, -base_log_prob, base_loss, last_loss)
        self._append(np.stack(columns, axis=1).astype(float))
        self.last = y[-1:]

    def mark(self, rows: int, norm: float, sd: float) -> None:
        """Note the norm of the mean parameters and the mean posterior sd after so many rows."""
        self.trace = np.concatenate([self.trace, [[rows, norm, sd]]])
        if len(self.trace) > 2 * BLOCKS:
            self.trace = self.trace[1::2]

    def _bin(self, value: np.ndarray, hit: np.ndarray) -> None:
        value = np.nan_to_num(value)
        which = np.clip((value * BINS).astype(int), 0, BINS - 1)
        for place, weight in enumerate((np.ones(len(value)), value, hit)):
            self.bins[:, place] += np.bincount(which, weight, minlength=BINS)

    def _append(self, rows: np.ndarray) -> None:
        block = (self.scored + np.arange(len(rows))) // self.size
        grown = np.zeros((int(block[-1]) + 1, len(COLUMNS)))
        grown[: len(self.sums)] = self.sums
        np.add.at(grown, block, rows)
        self.scored += len(rows)
        while len(grown) > 2 * BLOCKS:
            grown = np.concatenate([grown, np.zeros((len(grown) % 2, len(COLUMNS)))])
            grown = grown[::2] + grown[1::2]
            self.size *= 2
        self.sums = grown

    def curve(self, name: str, window: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The mean of a column over all rows so far, or over about `window` of them, and at how many rows.

        A mean of squared errors is given as its root.
        """
        column = self.sums[:, COLUMNS.index(name)]
        total, rows = np.cumsum(column), np.cumsum(self.sums[:, 0])
        upto, span = total, rows
        if window is not None:
            back = max(1, round(window / self.size))
            with np.errstate(invalid="ignore"):  # a learner that has diverged has infinite sums
                upto = total - np.concatenate([np.zeros(min(back, len(total))), total[:-back]])
            span = rows - np.concatenate([np.zeros(min(back, len(rows))), rows[:-back]])
        mean = upto / np.maximum(span, 1.0)
        return rows, np.sqrt(np.maximum(mean, 0.0)) if self.task == "regression" and name.endswith(
            "loss"
        ) else mean

    def latest(self, name: str) -> float:
        """The mean of a column over all rows (for squared errors its root); NaN before any row."""
        if not self.scored:
            return float("nan")
        mean = float(self.sums[:, COLUMNS.index(name)].sum() / self.scored)
        return mean**0.5 if self.task == "regression" and name.endswith("loss") else mean

    def metrics(self, uncertain: bool) -> dict[str, float]:
        """Our metrics by name.

        Arguments:
            uncertain: whether the forecasts were linearised ones, so that plug-in ones are reported beside
                them.
        """
        words = ("error", "brier") if self.task == "classification" else ("rmse", "mae")
        made = {"nlpd": self.latest("nlpd"), words[0]: self.latest("loss"), words[1]: self.latest("extra")}
        if uncertain:
            made["nlpd_plugin"] = self.latest("plugin")
        if self.scored and self.task == "classification":
            made["ece"] = float(np.abs(self.bins[:, 2] - self.bins[:, 1]).sum() / self.scored)
        elif self.scored:
            made["coverage_90"] = float(self.bins[: round(0.9 * BINS), 0].sum() / self.scored)
        return made

    def baseline(self) -> dict[str, float]:
        """The baseline's metrics by name: running class frequencies, or the running mean and spread."""
        word = "error" if self.task == "classification" else "rmse"
        return {"nlpd": self.latest("base_nlpd"), word: self.latest("base_loss")}

    def arrays(self) -> dict[str, np.ndarray]:
        """The state as arrays."""
        names = ("sums", "bins", "counts", "last", "recent", "trace")
        return {name: getattr(self, name) for name in names} | {"size": np.array([self.scored, self.size])}

    @staticmethod
    def from_arrays(task: str, arrays: dict[str, Any]) -> Tally:
        """Restore what `arrays` gave."""
        tally = Tally(task)
        for name, value in arrays.items():
            if name == "size":
                tally.scored, tally.size = (int(number) for number in value)
            else:
                setattr(tally, name, np.array(value, float))
        return tally
