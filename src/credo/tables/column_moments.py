"""The moments of one column, entry by entry, in Python: for the few entries that are not like the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from credo.core.errors import FormatError
from credo.core.outlying import (
    CLOSE,
    EARLY,
    FAR,
    SCALARS,
    Known,
    Streaks,
    is_close,
    is_far,
    judge,
    known_spread,
    standardise,
)

__all__ = ["BLANK", "LARGEST", "ColumnMoments", "entry_by_entry"]

LARGEST = 1e123
"""A larger entry is no number of anything: its square leaves double precision."""


BLANK = Streaks(0.0, 0.0, 0.0, 0.0, 0.0, math.nan)
"""A column without entries that do not fit."""


@dataclass(slots=True, eq=False)
class ColumnMoments:
    """The running moments of one column (see `credo.tables.Moments`): `count` entries of weight `total`, sums
    of distances from `centre` (NaN at first) and of their squares, and what is kept of unfitting entries.
    """

    count: int = 0
    centre: float = math.nan
    s1: float = 0.0
    s2: float = 0.0
    total: float = 0.0
    streaks: Streaks = BLANK

    @property
    def mean(self) -> float:
        """The mean, 0 before the first entry."""
        if self.total > 0:
            return self.centre + self.s1 / self.total
        return 0.0

    @property
    def sd(self) -> float:
        """The sample standard deviation, 0 if fewer than two entries were seen."""
        if self.count < 2:
            return 0.0
        rest = self.s2 - self.s1 * (self.s1 / self.total)
        one = min(1.0, self.total / self.count)
        return math.sqrt(max(rest, 0.0) / (self.total - one))

    def z(self, x: float, clip: float) -> float:
        """An entry in sds, of a size of at most min(clip, sqrt(count)), which falls beyond 100."""
        return self._z(x, clip, self.mean, self.sd)

    def take(self, x: float, clip: float) -> float:
        """The `z` of an entry, which is then taken in."""
        mean = self.mean
        sd = self.sd
        away = x - mean
        if self.count > EARLY and abs(away) <= FAR * sd and known_spread(mean, sd):  # as nearly all are
            limit = min(clip, math.sqrt(self.count))
            self._end_streak()
            self._add(x, 1.0)
            return min(max(away / sd, -limit), limit)
        z = self._z(x, clip, mean, sd)
        self._observe(x, 1.0, mean, sd)
        return z

    def observe(self, x: float, weight: float = 1.0) -> None:
        """Take in an entry as often as its weight says; NaN, or one larger than 1e123, changes nothing."""
        self._observe(x, weight, self.mean, self.sd)

    def _z(self, x: float, clip: float, mean: float, sd: float) -> float:
        if not known_spread(mean, sd):
            return 0.0
        limit = min(clip, math.sqrt(self.count))
        away = (x - mean) / sd
        return float(standardise(SCALARS, away, limit))

    def _observe(self, x: float, weight: float, mean: float, sd: float) -> None:
        if not abs(x) <= LARGEST:
            return
        streaks = self.streaks
        early = self.count <= EARLY and not streaks.restarts
        # within the limits of every count, and not near the latest: the rule would say the same, more slowly
        near = abs(x - mean) <= FAR * sd
        if near and not (early and abs(x - streaks.mean) <= CLOSE * sd):
            self._add_usual(x, weight, early)
            return
        known = Known(sd, known_spread(mean, sd), self.count, self.total)
        if is_far(SCALARS, x - mean, known) or is_close(x, known, streaks):
            self._observe_unusual(x, weight, mean, known)
        else:
            self._add_usual(x, weight, early)

    def _add_usual(self, x: float, weight: float, early: bool) -> None:
        """Add an entry that is neither far nor close, which the next one may be close to if it is early."""
        streaks = self.streaks
        if early:
            self.streaks = Streaks(-1.0, x, 0.0, streaks.restarts, streaks.events, streaks.farthest)
        else:
            self._end_streak()
        self._add(x, weight)

    def _observe_unusual(self, x: float, weight: float, mean: float, known: Known) -> None:
        """Take in an entry that is far from the others, or too close to those before it."""
        early = self.count <= EARLY and not self.streaks.restarts
        found = judge(SCALARS, x, known, self.streaks, lambda number: number - mean)
        size = found.size
        streaks = found.streaks
        if found.again:
            self.count = int(size)
            self.total = size
            self.centre = streaks.mean
            self.s1 = 0.0
            self.s2 = streaks.var * size
        elif found.joined:
            away = streaks.mean - self.centre
            self.count += int(size)
            self.total += size
            self.s1 += size * away
            self.s2 += size * (streaks.var + away * away)
        elif found.taken:
            if found.far:
                x = mean + min(max(x - mean, -found.reach), found.reach)
            self._add(x, weight)
        self.streaks = streaks
        if streaks.length == 0 or (streaks.length < 0 and not early):
            self._end_streak()

    def _end_streak(self) -> None:
        """Forget the streak, of whatever length it is."""
        streaks = self.streaks
        if streaks.length or streaks.mean or streaks.var:
            self.streaks = streaks._replace(length=0.0, mean=0.0, var=0.0)

    def _add(self, x: float, weight: float) -> None:
        """Add an entry to the sums."""
        if self.count == 0:
            self.centre = x
        away = x - self.centre
        heavy = away * weight
        self.count += 1
        self.total += weight
        self.s1 += heavy
        self.s2 += heavy * away

    def state(self) -> list[float | None]:
        """The state as JSON data, from which `restore` goes on bit by bit."""
        centre = None if math.isnan(self.centre) else self.centre
        *numbers, farthest = self.streaks
        last = None if math.isnan(farthest) else farthest
        return [self.count, centre, self.s1, self.s2, self.total, *numbers, last]

    @classmethod
    def restore(cls, state: Sequence[float | None]) -> ColumnMoments:
        """The column that `state` described; a FormatError if it is something else."""
        numbers = [math.nan if number is None else float(number) for number in state]
        if len(numbers) != 11 or numbers[0] < 0 or not numbers[3] >= 0 or not numbers[4] >= 0:
            raise FormatError(f"saved moments must be a count, a centre, sums and a streak; got {state!r}.")
        count, centre, s1, s2, total = numbers[:5]
        return cls(int(count), centre, s1, s2, total, Streaks(*numbers[5:]))


def entry_by_entry(
    column: ColumnMoments, entries: np.ndarray, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Add entries (n,), NaN if missing, to a column: mean, sd and count before each (n,)."""
    means = np.empty(len(entries))
    sds = np.empty(len(entries))
    counts = np.empty(len(entries), np.int64)
    now = column.mean, column.sd, column.count
    every = [1.0] * len(entries) if weights is None else weights.tolist()
    for row, (x, weight) in enumerate(zip(entries.tolist(), every, strict=True)):
        means[row], sds[row], counts[row] = now
        if x == x:
            column.observe(x, weight)
            now = column.mean, column.sd, column.count
    return means, sds, counts
