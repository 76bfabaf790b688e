"""The moments of one column, entry by entry, in Python: for the few entries that are not like the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from credo.core.errors import FormatError
from credo.core.outlying import ABSURD, CLOSE, EARLY, EVENTS, FAR, STREAK, YOUNG

__all__ = ["LARGEST", "ColumnMoments", "entry_by_entry", "far_from", "known_spread"]

TINY = 1e-12
"""A spread below this share of the mean's size is rounding error and counts as none."""


LARGEST = 1e123
"""A larger entry is no number of anything: its square leaves double precision."""


_NO_STREAK = (0.0, 0.0, 0.0)

Number = TypeVar("Number", float, np.ndarray)
"""A number, or an array of numbers."""


def known_spread(mean: Number, sd: Number) -> Any:
    """Whether a standard deviation is more than rounding error, so that division by it is safe."""
    return sd > TINY * abs(mean)


def far_from(count: Number) -> Number:
    """How many standard deviations from the mean an entry is far, after so many entries or so much weight, at
    least 1.
    """
    return FAR * (1.0 + (YOUNG / count) ** 2)


@dataclass(slots=True, eq=False)
class ColumnMoments:
    """The running moments of one column (see `credo.tables.Moments`): `count` entries of weight `total`, sums
    of distances from `centre` (NaN at first) and of their squares, length (below 0 for close entries), mean
    and variance of a streak of unfitting ones, restarts, far entries that came alone, and the farthest one.
    """

    count: int = 0
    centre: float = math.nan
    s1: float = 0.0
    s2: float = 0.0
    total: float = 0.0
    streak: tuple[float, float, float] = _NO_STREAK
    restarts: int = 0
    events: int = 0
    farthest: float = math.nan

    @property
    def mean(self) -> float:
        """The mean, 0 before the first entry."""
        return self.centre + self.s1 / self.total if self.total > 0 else 0.0

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
        mean, sd = self.mean, self.sd
        away = x - mean
        if self.count > EARLY and abs(away) <= FAR * sd and sd > TINY * abs(mean):  # as nearly all are
            limit = min(clip, math.sqrt(self.count))
            self.streak = _NO_STREAK
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
        limit, away = min(clip, math.sqrt(self.count)), (x - mean) / sd
        near = 1.0 if abs(away) <= ABSURD else (ABSURD / away) ** 2
        return min(max(away, -limit), limit) * near

    def _observe(self, x: float, weight: float, mean: float, sd: float) -> None:
        if not abs(x) <= LARGEST:
            return
        if self.count > EARLY and abs(x - mean) <= FAR * sd:
            self.streak = _NO_STREAK
            self._add(x, weight)
        else:
            self._observe_unusual(x, weight, mean, sd)

    def _observe_unusual(self, x: float, weight: float, mean: float, sd: float) -> None:
        """Take in an entry that may be far from the others, or too close to those before it."""
        count, new = self.count, False
        gap, (length, about, around) = x - mean, self.streak
        far = known_spread(mean, sd) and abs(gap) > far_from(max(self.total, 1.0)) * sd
        early = count <= EARLY and not self.restarts
        if (length > 0) if far else early and length < 0 and abs(x - about) <= CLOSE * sd:
            size = abs(length) + 1.0
            away = x - about
            about += away / size
            around = (1.0 - 1.0 / size) * (around + away * away / size)
        else:
            size, about, around = 1.0, x, 0.0
            if far and (new := self._unlike(x, gap)):
                self.farthest = x if self._farther(gap, mean) else self.farthest
                self.events += 1
        if size >= STREAK and self._begin_again(far, size, about, around):
            return
        if far:
            self.streak = (size, about, around)
            if not new or self.events < EVENTS:
                return
            most = FAR * self.events * sd
            x = mean + min(max(gap, -most), most)
        else:
            self.streak = (-size, about, around) if early else _NO_STREAK
        if count == 0:
            self.centre = x
        self._add(x, weight)

    def _unlike(self, x: float, gap: float) -> bool:
        """Whether a far entry that came alone is another one than the farthest of these."""
        return not self.events or abs(x - self.farthest) > CLOSE * abs(gap)

    def _farther(self, gap: float, mean: float) -> bool:
        """Whether an entry is the first far one that came alone, or the farthest."""
        return not self.events or abs(gap) > abs(self.farthest - mean)

    def _add(self, x: float, weight: float) -> None:
        """Add an entry to the sums."""
        away = x - self.centre
        heavy = away * weight
        self.count, self.total = self.count + 1, self.total + weight
        self.s1 += heavy
        self.s2 += heavy * away

    def _begin_again(self, far: bool, size: float, about: float, around: float) -> bool:
        """Take a full streak in: alone if it is absurd or close, and otherwise beside what was there."""
        spread, sd = math.sqrt(around), self.sd
        absurd = max(abs(about - self.mean), spread) > ABSURD * sd
        if (absurd or not far) and known_spread(about, spread):
            self.count, self.total, self.centre = int(size), size, about
            self.s1, self.s2, self.restarts = 0.0, around * size, self.restarts + 1
        elif far and not absurd:
            away = about - self.centre
            self.count, self.total = self.count + int(size), self.total + size
            self.s1 += size * away
            self.s2 += size * (around + away * away)
        else:
            return False
        self.streak, self.events = _NO_STREAK, 0
        return True

    def state(self) -> list[float | None]:
        """The state as JSON data, from which `restore` goes on bit by bit."""
        centre = None if math.isnan(self.centre) else self.centre
        last = None if math.isnan(self.farthest) else self.farthest
        sums = (self.count, centre, self.s1, self.s2, self.total)
        return [*sums, *self.streak, self.restarts, self.events, last]

    @classmethod
    def restore(cls, state: Sequence[float | None]) -> ColumnMoments:
        """The column that `state` described; a FormatError if it is something else."""
        *numbers, last = [math.nan if number is None else float(number) for number in state] or [0.0]
        if len(numbers) != 10 or numbers[0] < 0 or not numbers[3] >= 0 or not numbers[4] >= 0:
            raise FormatError(f"saved moments must be a count, a centre, sums and a streak; got {state!r}.")
        count, centre, s1, s2, total, length, about, around, restarts, events = numbers
        streak = length, about, around
        return cls(int(count), centre, s1, s2, total, streak, int(restarts), int(events), last)


def entry_by_entry(
    column: ColumnMoments, entries: np.ndarray, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Let a column take in entries (n,), NaN if missing: mean, sd and count before each (n,)."""
    means, sds, counts = np.empty(len(entries)), np.empty(len(entries)), np.empty(len(entries), np.int64)
    now = column.mean, column.sd, column.count
    every = [1.0] * len(entries) if weights is None else weights.tolist()
    for row, (x, weight) in enumerate(zip(entries.tolist(), every, strict=True)):
        means[row], sds[row], counts[row] = now
        if x == x:
            column.observe(x, weight)
            now = column.mean, column.sd, column.count
    return means, sds, counts
