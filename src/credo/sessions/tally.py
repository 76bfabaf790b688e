"""Running scores in constant memory: our forecasts beside simple baselines on the very same rows.

Sums are kept of blocks of rows; if there are too many blocks, neighbours are merged, so that a curve over
any stream has at most 2 `BLOCKS` points. A handful of arrays, saved with the belief, lets a resumed run
continue.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

import numpy as np

from credo.metrics import (
    BINS,
    LEVELS,
    ClassTable,
    Scores,
    add_to_bins,
    central,
    count_bins,
    coverage_of,
    ece_of,
    normal_crps,
    row_losses,
)
from credo.metrics.summary import normal_cdf
from credo.recipes.options import TaskName
from credo.tables.schema import TARGET_KINDS

__all__ = ["ColumnName", "Tally"]


LEAST_STEP = 32
"""The least rows between two notes."""


class Marks:
    """Notes at 16 to 32 rows while the number of rows doubles.

    Attributes:
        trace: how the weights settle (n, 3): rows, the norm of their mean, and their mean posterior sd.
        times: when rows were observed, if that is noted (n, 2): their number among those that were learned
            from, and the time in seconds since 1970.

    Example:
        >>> marks = Marks()
        >>> marks.mark_time(1, 0.0)
        >>> marks.mark_time(marks.next_mark(1), 60.0)
        >>> [column.tolist() for column in marks.timeline()]
        [[1.0, 32.0], [0.0, 60.0]]
    """

    def __init__(self) -> None:
        self.trace = np.zeros((0, 3))
        self.times = np.zeros((0, 2))

    def mark(self, rows: int, norm: float, sd: float) -> None:
        """Note how the weights settle.

        Arguments:
            rows: how many rows were learned from.
            norm: the norm of the mean parameters.
            sd: the mean posterior standard deviation.
        """
        self.trace = np.concatenate([self.trace, [[rows, norm, sd]]])

    def mark_time(self, rows: int, seconds: float) -> None:
        """Note when a row was observed.

        Arguments:
            rows: its number among the rows that were learned from, from 1.
            seconds: the time in seconds since 1970.
        """
        self.times = np.concatenate([self.times, [[rows, seconds]]])

    @staticmethod
    def next_mark(rows: int) -> int:
        """After how many rows `mark` is due next: 16 to 32 times while their number doubles, however they are
        grouped into calls.

        Arguments:
            rows: how many rows were learned from.
        """
        step = max(LEAST_STEP, (1 << rows.bit_length()) // 32)
        return (rows // step + 1) * step

    def timeline(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The rows whose times were noted and these times (n,), None if they are fewer than 2 or fall."""
        rows, seconds = self.times.T
        if len(rows) < 2 or (np.diff(seconds) < 0).any():
            return None
        return (rows, seconds)


RECENT = 200
"""Latest rows of a regression that are kept for the plot of its predictive bands."""

BLOCKS = 1000

WIDTH = 2 * 1.6448536269514722
"""The standard deviations that the central interval of 90% of a normal distribution is wide."""

ColumnName: TypeAlias = Literal[
    "rows", "nlpd", "loss", "compared", "extra", "base_nlpd", "base_loss", "last_loss"
]
"""The quantities that are summed: `loss` is 0/1 or the squared error, `extra` the Brier score or the absolute
error; of the `base`line too, and of the last value as a forecast. `compared` is the NLPD of a forecast beside
ours: a plug-in one for single learners, and for a bank that of its members before it is scaled."""

_COLUMNS: tuple[ColumnName, ...] = get_args(ColumnName)
_STATE = ("sums", "bins", "unscaled", "counts", "last", "recent", "trace", "pits")
_LATER = ("spread", "times")
"""Arrays that files of before version 0.2 do not have."""


class Tally(Marks):
    """Scores of a stream so far.

    Arguments:
        task: what is predicted.
        classes: the number of classes.

    Attributes:
        kind: what is scored.
        scored: how many rows were scored.
        size: rows in a block.
        sums: the sums of each block (blocks, 8), in the order of `ColumnName`.
        bins: rows counted in bins of the confidence, or of the central probability (regression), see
            `credo.metrics.count_bins`. A tally from before version 0.1.0 continues with 20 of the confidence.
        counts: rows of each class (classes,).
        by_class: the rows of each class counted in bins of its probability (classification). It is empty in
            files of before version 0.2, and then counts the rows from there on.
        last: the latest target (1,).
        recent: the latest rows of a regression (n, 4): row, target, mean and standard deviation.
        unscaled: as `bins`, of the forecasts of a bank before they are scaled; no rows for other learners.
        pits: rows counted in bins of P(Y <= y): ours, and those before they are scaled (regression), whose
            mean and standard deviation are taken for those of a normal (2, 20).
        spread: rows of a regression, the sums of our CRPS and of the baseline's, and of the widths of our
            intervals of 90% (4,), of normals with the mean and standard deviation of each forecast. Files of
            before version 0.2 have none, and then they count the rows from there on.

    Example:
        >>> tally, one = Tally("regression"), np.ones(2)
        >>> scores = Scores(np.array([1.0, 3.0]), one, one, -one, one / 2, None, {}, one, one > 0)
        >>> tally.add(scores, -one, one)
        >>> tally.metrics()["mae"], tally.baseline()["rmse"]
        (1.0, 1.0)
    """

    def __init__(self, task: TaskName, classes: int = 0) -> None:
        super().__init__()
        self.task: TaskName = task
        self.kind = TARGET_KINDS[task]
        self.scored = 0
        self.size = 1
        self.sums = np.zeros((0, len(_COLUMNS)))
        self.bins = np.zeros((BINS if self.kind.classed else LEVELS, 3))
        self.counts = np.zeros(classes)
        self.by_class = ClassTable(classes)
        self.last = np.full(1, np.nan)
        self.recent = np.zeros((0, 4))
        self.unscaled = np.zeros_like(self.bins)
        self.pits = np.zeros((2, LEVELS))
        self.spread = np.zeros(4)

    def widen(self, classes: int) -> None:
        """Make room for new classes, of which no row has been counted."""
        self.counts = np.concatenate([self.counts, np.zeros(classes - len(self.counts))])
        self.by_class.widen(classes)

    def class_baseline(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Forecast each label by the class frequencies so far, and count it.

        Arguments:
            y: (n,) class numbers, in the order of the rows.

        Returns:
            The log probability of each label, and whether it was not the most frequent class so far.
        """
        n = len(y)
        classes = len(self.counts)
        hot = np.zeros((n, classes))
        hot[np.arange(n), y] = 1.0
        earlier = np.concatenate([np.zeros((1, classes)), np.cumsum(hot, axis=0)[:-1]])
        before = self.counts + earlier if n else hot
        self.counts = self.counts + hot.sum(axis=0)
        log_prob = np.log((before[np.arange(n), y] + 1.0) / (before.sum(axis=1) + classes))
        return log_prob, (before.argmax(axis=1) != y).astype(float)

    def add(
        self,
        scores: Scores,
        base_log_prob: np.ndarray,
        base_loss: np.ndarray,
        base_crps: np.ndarray | None = None,
    ) -> None:
        """Take in the scores of consecutive rows, in the target's own units, beside the baseline's.

        Arguments:
            scores: the scores of n rows.
            base_log_prob: the baseline's log probability of each target (n,).
            base_loss: whether the baseline was wrong, or its squared error (n,).
            base_crps: its CRPS of each row of a regression (n,).
        """
        n = len(scores)
        if n == 0:
            return
        y = np.asarray(scores.y, float)
        before = np.concatenate([self.last, y[:-1]])
        unscaled = scores.compared.get("linearized")
        if scores.probs is not None:
            loss = row_losses(scores, "error")
            extra = row_losses(scores, "brier")
            last_loss = (before != y).astype(float)
            add_to_bins(self.bins, scores.probs.max(axis=1), scores.correct)
            self.by_class.add(scores.probs, scores.y, scores.log_prob)
            if unscaled is not None:
                right = unscaled.argmax(axis=1) == scores.y
                add_to_bins(self.unscaled, unscaled.max(axis=1), right)
        else:
            assert scores.mean is not None and scores.sd is not None and scores.pit is not None
            mean = np.asarray(scores.mean, float)
            sd = np.asarray(scores.sd, float)
            loss = row_losses(scores, "rmse", float)
            extra = row_losses(scores, "mae", float)
            last_loss = np.where(np.isnan(before), y - mean, y - before) ** 2
            add_to_bins(self.bins, central(scores.pit), np.ones(n))
            self.pits[0] += count_bins(scores.pit, np.ones(n), LEVELS)[:, 0]
            if unscaled is not None and self.kind.standardised:
                pit = normal_cdf((y - unscaled[:, 0]) / unscaled[:, 1])
                add_to_bins(self.unscaled, central(pit), np.ones(n))
                self.pits[1] += count_bins(pit, np.ones(n), LEVELS)[:, 0]
            if base_crps is not None:
                with np.errstate(invalid="ignore", over="ignore"):  # of a learner that has diverged
                    crps = normal_crps(y, mean, sd)
                ours = np.stack([np.ones(n), crps, base_crps, WIDTH * sd], axis=1)
                np.add.at(self.spread[None], np.zeros(n, int), ours)  # row by row, however they are grouped
            rows = np.stack([np.arange(self.scored + 1, self.scored + n + 1), y, mean, sd], axis=1)
            self.recent = np.concatenate([self.recent, rows])[-RECENT:]
        nlpd = row_losses(scores, "nlpd")
        other = next((-log_prob for log_prob in scores.others.values()), nlpd)
        columns = (np.ones(n), nlpd, loss, other, extra, -base_log_prob, base_loss, last_loss)
        self._append(np.stack(columns, axis=1).astype(float))
        self.last = y[-1:]

    def _append(self, rows: np.ndarray) -> None:
        """Add rows to their blocks in their order. Blocks are merged at a row that does not depend on how
        rows are grouped: before the first one for which there is none.
        """
        start = 0
        while start < len(rows):
            room = 2 * BLOCKS * self.size - self.scored
            if not room:
                self.sums = self.sums[::2] + self.sums[1::2]
                self.size *= 2
                continue
            part = rows[start : start + room]
            block = (self.scored + np.arange(len(part))) // self.size
            more = int(block[-1]) + 1 - len(self.sums)
            if more > 0:
                self.sums = np.concatenate([self.sums, np.zeros((more, len(_COLUMNS)))])
            np.add.at(self.sums, block, part)
            self.scored += len(part)
            start += len(part)

    def curve(self, name: ColumnName, window: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The mean of a column over the stream; a mean of squared errors is given as its root.

        Arguments:
            name: the column.
            window: about how many of the latest rows to average over; None takes all rows so far.

        Returns:
            The numbers of rows (blocks,), and the means after them (blocks,).
        """
        column = self.sums[:, _COLUMNS.index(name)]
        total = np.cumsum(column)
        rows = np.cumsum(self.sums[:, 0])
        upto = total
        span = rows
        if window is not None:
            back = max(1, round(window / self.size))
            with np.errstate(invalid="ignore"):  # a learner that has diverged has infinite sums
                upto = total - np.concatenate([np.zeros(min(back, len(total))), total[:-back]])
            span = rows - np.concatenate([np.zeros(min(back, len(rows))), rows[:-back]])
        mean = upto / np.maximum(span, 1.0)
        return rows, np.sqrt(np.maximum(mean, 0.0)) if self._squared(name) else mean

    def block_sums(self, name: ColumnName) -> np.ndarray:
        """The sums of a column over each block of `size` rows (blocks,); of squared errors not the root."""
        return self.sums[:, _COLUMNS.index(name)]

    def latest(self, name: ColumnName) -> float:
        """The mean of a column over all rows (for squared errors its root); NaN before any row."""
        if not self.scored:
            return float("nan")
        mean = float(self.sums[:, _COLUMNS.index(name)].sum() / self.scored)
        return mean**0.5 if self._squared(name) else mean

    def _squared(self, name: ColumnName) -> bool:
        return not self.kind.classed and name.endswith("loss")

    def metrics(self, uncertain: bool = False) -> dict[str, float]:
        """Our metrics by name.

        Arguments:
            uncertain: whether forecasts were linearised, so that plug-in ones are reported beside them.
        """
        words = ("error", "brier") if self.kind.classed else ("rmse", "mae")
        table = {"nlpd": self.latest("nlpd"), words[0]: self.latest("loss"), words[1]: self.latest("extra")}
        if uncertain:
            table["nlpd_plugin"] = self.latest("compared")
        elif self.unscaled.any():
            table["nlpd_unscaled"] = self.latest("compared")
        if self.scored and self.kind.classed:
            table["ece"] = ece_of(self.bins)
            if self.unscaled.any():
                table["ece_unscaled"] = ece_of(self.unscaled)
            classes = self.by_class.scores()
            table["ece_classwise"] = classes.mean("ece")
            table["auc"] = classes.mean("auc")
            table["average_precision"] = classes.mean("average_precision")
        elif self.scored:
            table["r2"] = self._explained()
            table["coverage_90"] = coverage_of(self.bins)
            if self.spread[0]:
                table["crps"] = float(self.spread[1] / self.spread[0])
                table["width_90"] = float(self.spread[3] / self.spread[0])
            if self.unscaled.any():
                table["coverage_90_unscaled"] = coverage_of(self.unscaled)
        return table

    def _explained(self) -> float:
        """1 - sum (y - mean)^2 / sum (y - running mean)^2, NaN where the running mean has no error."""
        ours = self.latest("loss") ** 2
        base = self.latest("base_loss") ** 2
        if base > 0:
            return 1.0 - ours / base
        return float("nan")

    def baseline(self) -> dict[str, float]:
        """The baseline's metrics by name: running class frequencies, or the running mean and spread."""
        word = "error" if self.kind.classed else "rmse"
        table = {"nlpd": self.latest("base_nlpd"), word: self.latest("base_loss")}
        return table | ({"crps": float(self.spread[2] / self.spread[0])} if self.spread[0] else {})

    def snapshot(self) -> Tally:
        """A copy, to which later rows are not added."""
        return copy.deepcopy(self)

    def since(self, before: Tally) -> Tally:
        """The scores of the rows after a snapshot, without their curves.

        Arguments:
            before: an earlier snapshot of this tally.

        Example:
            >>> tally, one = Tally("regression"), np.ones(2)
            >>> scores = Scores(np.array([1.0, 3.0]), one, one, -one, one / 2, None, {}, one, one > 0)
            >>> tally.add(scores, -one, one)
            >>> before = tally.snapshot()
            >>> tally.add(scores, -one, one)
            >>> tally.since(before).scored
            2
        """
        part = Tally(self.task, len(self.counts))
        part.scored = self.scored - before.scored
        with np.errstate(invalid="ignore"):  # a learner that has diverged has infinite sums
            part.sums = self.sums.sum(axis=0, keepdims=True) - before.sums.sum(axis=0)
            part.spread = self.spread - before.spread
        part.bins = self.bins - before.bins
        part.unscaled = self.unscaled - before.unscaled
        part.pits = self.pits - before.pits
        part.counts = self.counts.copy()
        part.counts[: len(before.counts)] -= before.counts
        part.by_class = self.by_class.since(before.by_class)
        return part

    def arrays(self) -> dict[str, np.ndarray]:
        """The state as arrays."""
        state = {name: getattr(self, name) for name in (*_STATE, *_LATER)}
        state |= {f"by_class_{name}": array for name, array in self.by_class.arrays().items()}
        return state | {"size": np.array([self.scored, self.size])}

    @staticmethod
    def from_arrays(task: TaskName, arrays: Mapping[str, np.ndarray]) -> Tally:
        """Restore what `arrays` gave.

        Arguments:
            task: what is predicted.
            arrays: the saved arrays by name.
        """
        tally = Tally(task)
        for name in (*_STATE, *_LATER):
            if name in arrays or name not in _LATER:
                setattr(tally, name, np.array(arrays[name], float))
        tally.by_class = ClassTable(len(tally.counts))
        for name in tally.by_class.arrays():
            setattr(tally.by_class, name, np.array(arrays[f"by_class_{name}"], float))
        tally.scored, tally.size = (int(number) for number in arrays["size"])
        return tally
