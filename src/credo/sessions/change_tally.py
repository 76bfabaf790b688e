"""The reports of a drift that is a wrapper about changes in a stream so far, in bounded memory.

As for the scores, rows are gathered in blocks, and neighbouring blocks are merged when there are too many; so
are run lengths. The tally is saved with the belief, so that a resumed run continues it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np

from credo.live.change_steps import Steps
from credo.recipes import defaults
from credo.recipes.language import Drift, DriftKind

__all__ = ["ChangeSummary", "ChangeTally"]

# The largest number of blocks of rows, of bins of run lengths, of reported changes that are kept, and of
# changes that a sentence names.
LONGEST = 300
BINS = 200
ALARMS = 1000
SHOWN = 5

_STATE = ("grid", "curves", "alarms", "latest", "largest")
_LATER = ("failures", "broken")


class ChangeSummary(TypedDict, total=False):
    """The reports about changes, as JSON data.

    A mixture gives the `weights` at the end and the `mean_weights`, by expert, and at which rows an expert
    `failed` and began again. All but a mixture of drifts give the number of `reported` changes, their `rows`,
    and the largest probability of a change and its row. Run lengths and banks also give the rows at which the
    reported segments `began`, and what is no mixture the expected `run_length` at the end.

    Example:
        >>> tally = ChangeTally("run-length:0.01")
        >>> probs, lengths, flags = np.ones((2, 1)), np.array([[0], [1]]), np.array([False, True])
        >>> tally.add(Steps(probs, lengths, np.array([0.1, 0.95]), flags, np.array([0, 1])))
        >>> summary: ChangeSummary = tally.summary()
        >>> summary["reported"], summary["rows"], summary["largest_at"]
        (1, [2], 2)
    """

    weights: dict[str, float]
    mean_weights: dict[str, float]
    failed: list[int]
    reported: int
    rows: list[int]
    began: list[int]
    largest_probability: float
    largest_at: int
    run_length: float


class ChangeTally:
    """The reports about changes in a stream so far.

    Arguments:
        drift: a drift that is a wrapper, or its text.
        members: what the members of a bank are called; none for a drift.

    Attributes:
        rows: how many rows there were.
        size: the number of rows in a block.
        width: the number of run lengths in a bin.
        reported: how many changes were reported.
        grid: the probability of each bin of run lengths (or expert), summed by block (blocks, bins).
        curves: for each block the largest probability of a change, and the sum of the expected run lengths.
        alarms: the reported changes (n, 2): the row of the report, and the row with which the segment began.
        latest: the expected run length, or the weights of the experts, at the latest row.
        largest: the largest probability of a change, and its row.
        failures: how often each expert failed and began again from its prior (experts,).
        broken: the rows at which one did (n,).

    Example:
        >>> tally = ChangeTally("run-length:0.01")
        >>> probs, lengths, flags = np.ones((2, 1)), np.array([[0], [1]]), np.array([False, True])
        >>> tally.add(Steps(probs, lengths, np.array([0.1, 0.95]), flags, np.array([0, 1])))
        >>> tally.sentences()[0]
        '1 change was reported, at row 2, of a segment that began at row 1.'
    """

    def __init__(self, drift: Drift | str, members: Sequence[str] = ()) -> None:
        self.kind: DriftKind = "mixture" if members else Drift.parse(drift).kind
        self.members = tuple(members)
        self.rows = 0
        self.size = 1
        self.width = 1
        self.reported = 0
        self.grid = np.zeros((0, len(self.experts) if self.kind == "mixture" else BINS))
        self.curves = np.zeros((0, 2))
        self.alarms = np.zeros((0, 2))
        self.latest = np.zeros(self.grid.shape[1])
        self.largest = np.array([-1.0, 0.0])
        self.failures = np.zeros(self.grid.shape[1] if self.kind == "mixture" else 0)
        self.broken = np.zeros(0)

    @staticmethod
    def of(drift: Drift | str, members: Sequence[str] = ()) -> ChangeTally | None:
        """A tally for a drift that reports changes or for a bank, or None for any other learner."""
        if members or Drift.parse(drift).wrapped:
            return ChangeTally(drift, members)
        return None

    def add(self, steps: Steps) -> None:
        """Take in the steps of consecutive rows."""
        n = steps.size
        if n == 0:
            return
        probs = np.asarray(steps.probs, float)
        lengths = np.where(probs > 0, np.maximum(steps.lengths, 0), 0)
        change = np.asarray(steps.change)
        self._add_blocks(probs, lengths, change)
        at = np.flatnonzero(steps.alarm)
        self.reported += len(at)
        rows = self.rows + 1 + at
        reports = np.stack([rows, rows - np.asarray(steps.began)[at]], axis=1)
        self.alarms = np.concatenate([self.alarms, reports])[:ALARMS]
        top = int(np.argmax(change))
        if change[top] > self.largest[0]:
            self.largest = np.array([float(change[top]), self.rows + 1 + top])
        if self.kind == "mixture":
            self.latest = probs[-1]
            failed = np.asarray(steps.lengths) < 0
            self.failures += failed.sum(axis=0)
            rows = self.rows + 1 + np.flatnonzero(failed.any(axis=1))
            self.broken = np.concatenate([self.broken, rows])[:ALARMS]
        else:
            self.latest = np.r_[(probs[-1] * lengths[-1]).sum(), np.zeros(len(self.latest) - 1)]
        self.rows += n

    def _add_blocks(self, probs: np.ndarray, lengths: np.ndarray, change: np.ndarray) -> None:
        """Add rows to their blocks and bins in their order. Both are merged at rows that do not depend on how
        rows are grouped: before the first one for which there is no block, or no bin.
        """
        longest = np.maximum.accumulate(lengths.max(axis=1))
        expected = (probs * lengths).sum(axis=1)
        start = 0
        while start < len(probs):
            room = LONGEST * self.size - (self.rows + start)
            if not room:
                self._merge_blocks()
                continue
            fitting = int(np.searchsorted(longest, self.width * self.grid.shape[1])) - start
            if fitting <= 0:
                self._merge_bins()
                continue
            stop = min(start + min(room, fitting), len(probs))
            part = slice(start, stop)
            block = (self.rows + np.arange(start, stop)) // self.size
            self._grow(int(block[-1]) + 1)
            np.add.at(self.grid, (block[:, None], lengths[part] // self.width), probs[part])
            np.maximum.at(self.curves[:, 0], block, change[part])
            np.add.at(self.curves[:, 1], block, expected[part])
            start = stop

    def _merge_blocks(self) -> None:
        """Halve the number of blocks, which is even."""
        self.grid = self.grid[::2] + self.grid[1::2]
        peaks = self.curves[:, 0]
        sums = self.curves[:, 1]
        self.curves = np.stack([np.maximum(peaks[::2], peaks[1::2]), sums[::2] + sums[1::2]], axis=1)
        self.size *= 2

    def _merge_bins(self) -> None:
        """Make bins of run lengths twice as wide; their number stays."""
        half = self.grid.shape[1] // 2
        self.grid = np.pad(self.grid[:, ::2] + self.grid[:, 1::2], ((0, 0), (0, half)))
        self.width *= 2

    def _grow(self, length: int) -> None:
        more = max(length - len(self.grid), 0)
        self.grid = np.pad(self.grid, ((0, more), (0, 0)))
        self.curves = np.pad(self.curves, ((0, more), (0, 0)))

    @property
    def counts(self) -> np.ndarray:
        """The rows in each block."""
        return np.clip(self.rows - self.size * np.arange(len(self.grid)), 0, self.size)

    @property
    def experts(self) -> list[str]:
        """The names of the experts of a mixture, or of the members of a bank."""
        if self.members:
            return list(self.members)
        return [f"walk:{step:g}" if step else "no drift" for step in defaults.MIXTURE]

    def summary(self) -> ChangeSummary:
        """The numbers, as JSON data."""
        if self.kind != "mixture":
            return {**self.reported_changes(), "run_length": float(self.latest[0])}
        mean = self.grid.sum(axis=0) / max(self.rows, 1)
        weights: ChangeSummary = {
            "weights": dict(zip(self.experts, self.latest.tolist(), strict=True)),
            "mean_weights": dict(zip(self.experts, mean.tolist(), strict=True)),
            "failed": self.broken.astype(int).tolist(),
        }
        if self.members:
            return {**weights, **self.reported_changes()}
        return weights

    def reported_changes(self) -> ChangeSummary:
        """The reported changes alone, as JSON data."""
        largest, row = self.largest.tolist()
        rows: list[int] = self.alarms[:, 0].astype(int).tolist()
        summary: ChangeSummary = {
            "reported": self.reported,
            "rows": rows,
            "largest_probability": largest,
            "largest_at": int(row),
        }
        if self.kind != "soft-reset":
            summary["began"] = self.alarms[:, 1].astype(int).tolist()
        return summary

    def sentences(self) -> list[str]:
        """The numbers in words."""
        if not self.rows:
            return []
        if self.kind == "mixture":
            shares = [f"{share:.3f} {name}" for share, name in zip(self.latest, self.experts, strict=True)]
            sentences = [f"Weights of the experts at the end: {', '.join(shares)}."]
            if len(self.broken):
                rows = [f"{int(row)}" for row in self.broken[:SHOWN]]
                count = len(self.broken)
                at = f"row{'s'[: count > 1]} {_listed(rows, count - len(rows))}"
                sentences.append(f"An expert ran away and began again from its prior at {at}.")
            return sentences
        first = self.reports()
        value, row = self.largest
        most = f"Judged at the row itself, the largest probability of a change was {value:.3g}"
        length = round(self.latest[0])
        many = "s"[: length != 1]
        ending = f"at row {int(row)}; the run length at the end is {length:,} row{many}"
        return [f"{first}.", f"{most}, {ending}."]

    def reports(self) -> str:
        """Which changes were reported, in words."""
        soft = self.kind == "soft-reset"
        count = self.reported
        what, verb = ("full reset", "made") if soft else ("change", "reported")
        if not count:
            return f"No {what} was {verb}"
        rows, began = ([f"{int(row)}" for row in column] for column in self.alarms[:SHOWN].T)
        was = "was" if count == 1 else "were"
        many = "s"[: count > 1]
        words = f"{count:,} {what}{many} {was} {verb}, at row{many} {_listed(rows, count - len(rows))}"
        if soft:
            return words
        segments = "a segment" if count == 1 else "segments"
        return f"{words}, of {segments} that began at row{many} {_listed(began, count - len(began))}"

    def arrays(self) -> dict[str, np.ndarray]:
        """The state as arrays."""
        numbers = np.array([self.rows, self.size, self.width, self.reported])
        return {name: getattr(self, name) for name in (*_STATE, *_LATER)} | {"numbers": numbers}

    @staticmethod
    def from_arrays(
        drift: Drift | str, arrays: Mapping[str, np.ndarray], members: Sequence[str] = ()
    ) -> ChangeTally | None:
        """Restore what `arrays` gave.

        Arguments:
            drift: the drift of the tally.
            arrays: the saved arrays by name; empty if nothing was saved.
            members: what the members of a bank are called.

        Returns:
            The tally, or None if the drift reports no changes.
        """
        tally = ChangeTally.of(drift, members)
        if tally is None or not arrays:
            return tally
        for name in _STATE:
            setattr(tally, name, np.array(arrays[name], float))
        for name in _LATER:
            setattr(tally, name, np.array(arrays.get(name, getattr(tally, name)), float))
        tally.rows, tally.size, tally.width, tally.reported = (int(number) for number in arrays["numbers"])
        return tally


def _listed(words: list[str], more: int) -> str:
    if more:
        return f"{', '.join(words)} and {more:,} more"
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
