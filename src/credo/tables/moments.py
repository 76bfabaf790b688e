"""Running count, mean and spread of columns, in row order, which no single entry can ruin.

`ColumnMoments` take one column in entry by entry, in Python: the few entries that are not like the others.
`TargetScaler` standardises each target by the mean and spread of the targets before it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from credo.core.errors import DataError, FormatError, require_representable
from credo.core.outlying import (
    CLOSE,
    EARLY,
    FAR,
    SCALARS,
    TINY,
    Batch,
    Known,
    Streaks,
    is_close,
    is_far,
    judge,
    known_spread,
    standardise,
)

__all__ = [
    "BLANK",
    "LARGEST",
    "ColumnMoments",
    "Moments",
    "ScaledTarget",
    "Scan",
    "TargetScaler",
    "entry_by_entry",
    "shrunk_clip",
]

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
        streaks = self.streaks
        away = x - mean
        early = self.count <= EARLY and not streaks.restarts
        close = early and abs(x - streaks.mean) <= CLOSE * sd
        if abs(away) <= FAR * sd and not close and abs(x) <= LARGEST:  # as nearly all are
            limit = min(clip, math.sqrt(self.count))
            self._add_usual(x, 1.0, early)
            if sd > TINY * abs(mean):
                return min(max(away / sd, -limit), limit)
            return 0.0
        if close and sd == 0.0:  # all were this one: none is far, and by the rule, too, the streak goes on
            self.streaks = streaks._replace(length=streaks.length - 1.0)
            self._add(x, 1.0)
            return 0.0
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


BLOCK = 1024
"""Rows after which sums are taken about a new centre; counted from the first row, whatever the chunks."""


class Facts(NamedTuple):
    """The facts about D columns before a row, each (D,) but for the last three.

    Attributes:
        mean, sd: the means and sample standard deviations, 0 where nothing was seen.
        spread: whether the standard deviation is more than rounding error.
        early: whether an entry may be too close to the latest one.
        held: whether some column is early or has a streak, so that ordinary entries change what is kept.
        full: whether all columns have the two entries that a standard deviation needs.
        restarts: how often the moments of all columns began again.
    """

    mean: np.ndarray
    sd: np.ndarray
    spread: np.ndarray
    early: np.ndarray
    held: bool
    full: bool
    restarts: int


@dataclass(frozen=True)
class Moments:
    """Running count, mean and spread of D columns, NaN and far entries left out.

    Sums are taken about a centre that moves every `BLOCK` rows, always in row order, so that the result is
    that of Welford's recurrence up to rounding and is bitwise the same however the rows are split.

    An entry is far if it is more than 8 (1 + (10 / n)^2) standard deviations from the mean of the n
    entries before it. It has no influence, however large it is, but where such entries belong to the column:

    - ten in a row are taken in together; if they are more than a hundred standard deviations away, or
      apart, they are other units, and the moments begin again from these ten if they differ;
    - from the third on that came alone and was unlike the one before it, far entries are taken in one by one,
      the k-th as if it were 8 k standard deviations away at most.

    The moments also begin again, once, where ten entries in a row, among the first hundred, lie within a
    hundredth of the standard deviation: in that case one of the first entries was absurd.
    `credo.adapt.RunningMoments` does the same in compiled programs.

    Arguments:
        rows: the number of rows seen, () int64.
        count: the number of entries that count in each column, (D,) int64.
        centre: the value about which the sums are taken, (D,) float64; NaN before a column's first entry.
        s1, s2: (D,) float64, the sums of (x - centre) and (x - centre) squared, times the rows' weights.
        weight: the sum of the weights of each column's entries, (D,) float64; None if all are 1.
        streaks: of each column (D, 6) float64: the length of the streak of unfitting entries, above 0 for far
            and below for close ones, its mean and variance, how often the moments began again, how many far
            entries came alone, and the latest of these (or NaN); None without any.

    Example:
        >>> moments, mean, sd, count, spread = Moments.empty(1).scan(np.array([[1.0], [3.0], [8.0]]))
        >>> mean.ravel().tolist(), count.ravel().tolist(), moments.mean().tolist()
        ([0.0, 1.0, 2.0], [0, 1, 2], [4.0])
    """

    rows: np.ndarray
    count: np.ndarray
    centre: np.ndarray
    s1: np.ndarray
    s2: np.ndarray
    weight: np.ndarray | None = None
    streaks: np.ndarray | None = None

    @staticmethod
    def empty(width: int) -> Moments:
        """The moments of no rows of `width` columns."""
        zero = np.zeros(width)
        return Moments(np.array(0), np.zeros(width, np.int64), np.full(width, np.nan), zero, zero)

    def widened(self, columns: int) -> Moments:
        """The moments with some more columns, of which nothing was seen."""
        more = Moments.empty(columns)
        sums = ((self.count, more.count), (self.centre, more.centre), (self.s1, more.s1), (self.s2, more.s2))
        count, centre, s1, s2 = (np.concatenate(pair) for pair in sums)
        weight = None if self.weight is None else np.concatenate([self.weight, np.zeros(columns)])
        streaks = None if self.streaks is None else np.concatenate([self.streaks, more._streaks])
        return Moments(self.rows, count, centre, s1, s2, weight, streaks)

    def mean(self) -> np.ndarray:
        """The means, (D,) float64, 0 if nothing was seen."""
        return self.facts.mean

    def sd(self) -> np.ndarray:
        """The sample standard deviations, (D,) float64, 0 if fewer than two entries were seen."""
        return self.facts.sd

    @functools.cached_property
    def facts(self) -> Facts:
        """The facts before the next row, of which many rows are told the same; nobody changes the arrays."""
        mean, sd = _mean_and_sd(self.count, self.total, self.centre, self.s1, self.s2)
        mean.setflags(write=False)
        sd.setflags(write=False)
        streaks = self._streaks
        early = (self.count <= EARLY) & (streaks[:, 3] == 0)
        held = bool(early.any() or streaks[:, 0].any())
        full = bool((self.count > 1).all())
        return Facts(mean, sd, known_spread(mean, sd), early, held, full, int(streaks[:, 3].sum()))

    @property
    def total(self) -> np.ndarray:
        """The sum of the weights of each column's entries, (D,): their number, where none has a weight."""
        if self.weight is None:
            return self.count
        return self.weight

    @staticmethod
    def of(x: np.ndarray, weights: np.ndarray | None = None) -> Moments:
        """The moments of a whole batch, which do not depend on the order of its rows.

        Arguments:
            x: (n, D) float64, NaN if an entry is missing. What is far from all others is left out.
            weights: (n,) float64, above 0; None if each row counts once.
        """
        batch = Batch.of(np.ascontiguousarray(x), weights)
        centre = np.where(batch.total > 0, batch.mean, np.nan)
        zero = np.zeros(x.shape[1])
        count = batch.here.sum(axis=0)
        weight = None if weights is None else batch.total
        return Moments(np.array(len(x)), count, centre, zero, batch.squares, weight)

    @property
    def restarts(self) -> np.ndarray:
        """The number of restarts of each column's moments, as its entries came in other units (D,)."""
        return self._streaks[:, 3].astype(np.int64)

    @property
    def _streaks(self) -> np.ndarray:
        blank = np.tile(BLANK, (len(self.count), 1))
        if self.streaks is None:
            return blank
        return self.streaks

    def begun_again(self, before: Moments) -> list[int]:
        """The columns that began again since these moments, by place: their entries are of other units."""
        return np.flatnonzero(self.restarts > before.restarts).tolist()

    def column(self, place: int) -> ColumnMoments:
        """The moments of one column, to be continued entry by entry."""
        centre, s1, s2, total = (float(part[place]) for part in (self.centre, self.s1, self.s2, self.total))
        streaks = Streaks(*self._streaks[place].tolist())
        return ColumnMoments(int(self.count[place]), centre, s1, s2, total, streaks)

    def scan(self, x: np.ndarray, weights: np.ndarray | None = None) -> Scan:
        """Take in rows one after the other.

        A row of weight w counts as w equal rows would: whole weights give the moments of the rows written
        out. Weights below 1 on average say how rows compare; the spread is that of their number.

        Arguments:
            x: (n, D) float64, NaN if an entry is missing.
            weights: (n,) float64, above 0; None if each row counts once.

        Returns:
            The moments after all rows, and what was known of the columns before each row.
        """
        if len(x) == 1 and weights is None and (after := self._one(x[0])) is not None:
            facts = self.facts
            return Scan(after, facts.mean[None], facts.sd[None], self.count[None], facts.spread[None])
        means = np.empty(x.shape)
        sds = np.empty(x.shape)
        counts = np.empty(x.shape, np.int64)
        now = self
        start = 0
        while start < len(x):
            stop = min(len(x), start + BLOCK - int(now.rows) % BLOCK)
            part = slice(start, stop)
            some = None if weights is None else weights[part, None]
            now, means[part], sds[part], counts[part] = now._scan_part(x[part], some)
            start = stop
        return Scan(now, means, sds, counts, known_spread(means, sds))

    def _one(self, x: np.ndarray) -> Moments | None:
        """The moments after a row (D,) that has no entry unlike the others; None for another row. The same as
        `_scan_part`, at a third of its cost, with the facts before the next row where they follow.
        """
        if self.weight is not None:
            return None
        facts = self.facts
        mean, sd, spread, early, held, full, restarts = facts
        # within the limits of every count, and not near the latest: the rule would say the same, more slowly
        usual = (np.abs(x - mean) <= FAR * sd) & np.isfinite(sd)  # NaN is not
        streaks = self.streaks
        if held:
            streaks = self._streaks if streaks is None else streaks
            close = early & (np.abs(x - streaks[:, 1]) <= CLOSE * sd)
            usual &= (np.abs(x) <= LARGEST) & ~close
        away = x - self.centre
        fewer = self.count
        count = fewer + 1
        seen = usual
        if np.count_nonzero(usual) < len(x):
            seen = ~np.isnan(x)
            if np.count_nonzero(seen & ~usual):
                return None
            away = np.where(seen, away, 0.0)
            count = fewer + seen
            fewer = count - 1
        if held:
            assert streaks is not None
            before = streaks
            streaks = before.copy()
            streaks[:, 0] = np.where(seen, np.where(early, -1.0, 0.0), before[:, 0])
            streaks[:, 1] = np.where(seen, np.where(early, x, 0.0), before[:, 1])
            streaks[:, 2] = np.where(seen, 0.0, before[:, 2])
            early = early & (count <= EARLY)
            held = bool(np.count_nonzero(early) or np.count_nonzero(streaks[:, 0]))
        s1 = self.s1 + away
        s2 = self.s2 + away * away
        after = Moments(self.rows + 1, count, self.centre, s1, s2, None, streaks)
        if int(after.rows) % BLOCK == 0:
            return after._centred()
        if full:  # what `facts` would find: all columns have enough entries, of the weight 1
            shift = s1 / count
            mean = self.centre + shift
            sd = np.sqrt(np.maximum(s2 - s1 * shift, 0.0) / fewer)
            mean.setflags(write=False)
            sd.setflags(write=False)
            spread = sd > TINY * np.abs(mean)
            after.__dict__["facts"] = Facts(mean, sd, spread, early, held, True, restarts)
        return after

    def _young(self) -> np.ndarray:
        """Which columns are taken entry by entry whatever comes (D,)."""
        return np.asarray(self.facts.early | (self._streaks[:, 0] != 0))

    def _scan_part(
        self, x: np.ndarray, weights: np.ndarray | None
    ) -> tuple[Moments, np.ndarray, np.ndarray, np.ndarray]:
        here = ~np.isnan(x)
        centre = self.centre
        if np.isnan(centre).any():
            first = x[np.argmax(here, axis=0), np.arange(x.shape[1])]
            centre = np.where(np.isnan(centre), first, centre)
        away = np.where(here, x - centre, 0.0)
        heavy = away if weights is None else away * weights
        count = total = _sums(self.count, here)
        if weights is not None or self.weight is not None:
            total = _sums(self.total.astype(np.float64), here if weights is None else here * weights)
        with np.errstate(over="ignore", invalid="ignore"):  # columns with far entries are done again
            s1 = _sums(self.s1, heavy)
            s2 = _sums(self.s2, heavy * away)
            means, sds = _mean_and_sd(count[:-1], total[:-1], centre, s1[:-1], s2[:-1])
            odd = self._odd(x, means, sds)
        last = (count[-1], np.array(centre), s1[-1], s2[-1], total[-1])
        streaks = self.streaks
        if odd.any():
            streaks = self._streaks.copy()
            for place in np.flatnonzero(odd).tolist():
                column = self.column(place)
                one = None if weights is None else weights[:, 0]
                rows = entry_by_entry(column, x[:, place], one)
                means[:, place], sds[:, place], count[:-1, place] = rows
                state = (column.count, column.centre, column.s1, column.s2, column.total)
                for array, number in zip(last, state, strict=True):
                    array[place] = number
                streaks[place] = column.streaks
        weight = None if total is count else last[4]
        after = Moments(self.rows + len(x), last[0], last[1], last[2], last[3], weight, streaks)
        return after._centred() if int(after.rows) % BLOCK == 0 else after, means, sds, count[:-1]

    def _odd(self, x: np.ndarray, means: np.ndarray, sds: np.ndarray) -> np.ndarray:
        """Which columns must be taken entry by entry: those with far entries or with a streak (D,)."""
        if not len(x):
            return np.zeros(x.shape[1], bool)
        # the limit falls with the count, so that what no limit calls far is not far
        odd: np.ndarray = (np.abs(x - means) > FAR * sds).any(axis=0) | ~np.isfinite(sds[-1])
        return np.asarray(odd | self._young())

    def _centred(self) -> Moments:
        """The same moments, of sums about the mean."""
        shift = self.s1 / _some(self.total)
        rest = np.maximum(self.s2 - self.s1 * shift, 0.0)
        zero = np.zeros_like(self.s1)
        return Moments(self.rows, self.count, self.centre + shift, zero, rest, self.weight, self.streaks)

    def arrays(self) -> dict[str, np.ndarray]:
        """The state as named arrays, from which `from_arrays` continues bitwise."""
        names = ("rows", "count", "centre", "s1", "s2", "weight", "streaks")
        parts = {name: getattr(self, name) for name in names}
        if self.streaks is not None and not self.streaks[:, :5].any():
            parts["streaks"] = None
        return {name: np.asarray(part) for name, part in parts.items() if part is not None}

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray], field: str = "moments") -> Moments:
        """Restore what `arrays` gave; `field` is what it is called in errors.

        Raises:
            FormatError: an array is missing, the shapes do not agree, or no numbers have such moments.
        """
        kinds: dict[str, type] = {"rows": np.int64, "count": np.int64}
        kinds |= dict.fromkeys(("centre", "s1", "s2"), np.float64)
        lost = [name for name in kinds if name not in arrays]
        if lost:
            raise FormatError(f"saved moments must hold {', '.join(kinds)}; {lost[0]!r} is not there.")
        kinds |= {name: np.float64 for name in ("weight", "streaks") if name in arrays}
        loaded: dict[str, np.ndarray] = {name: np.array(arrays[name], kind) for name, kind in kinds.items()}
        width = loaded["count"].shape
        shapes = {name: width for name in loaded} | {"rows": (), "streaks": (*width, 6)}
        if any(value.shape != shapes[name] for name, value in loaded.items()):
            got = ", ".join(f"{name} {value.shape}" for name, value in loaded.items())
            raise FormatError(
                f"saved moments must hold rows of shape () and count, centre, s1, s2 of one shape; got {got}."
            )
        _require_possible(loaded, field)
        return Moments(loaded.pop("rows"), **loaded)


class Scan(NamedTuple):
    """The moments of D columns after n rows, and the facts before each row.

    Attributes:
        after: the moments after all rows.
        mean, sd, counts: (n, D), the means, standard deviations and counts before each row.
        spread: (n, D), whether a standard deviation is more than rounding error.
    """

    after: Moments
    mean: np.ndarray
    sd: np.ndarray
    counts: np.ndarray
    spread: np.ndarray


def _require_possible(loaded: Mapping[str, np.ndarray], field: str) -> None:
    """Refuse running moments that no numbers have."""
    count = loaded["count"]
    rows = loaded["rows"]
    if (count < 0).any() or (count > rows).any():
        raise FormatError(f"{field}.count must be from 0 to the number of rows, {rows}; got {count}.")
    known = {name: loaded[name][count > 0] for name in ("centre", "s1")}
    known |= {name: loaded[name] for name in ("s2", "weight") if name in loaded}
    known |= {"streaks": loaded["streaks"][:, :5]} if "streaks" in loaded else {}  # the last may be unknown
    for name, numbers in known.items():
        if not np.isfinite(numbers).all():
            raise FormatError(f"{field}.{name} must be finite.", field=name)
        if name in ("s2", "weight") and (numbers < 0).any():
            raise FormatError(f"{field}.{name} must be at least 0.", field=name)


def _sums(before: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """The sums (n + 1, D) of what was before (D,) and the first 0 to n of the entries (n, D)."""
    sums = np.empty((len(entries) + 1, len(before)), before.dtype)
    sums[0] = before
    sums[1:] = entries
    return np.cumsum(sums, axis=0)


def _some(total: np.ndarray) -> np.ndarray:
    """Sums of weights by which one may divide: 1 if there is no entry."""
    return np.where(total > 0, total, 1)


def _mean_and_sd(
    count: np.ndarray, total: np.ndarray, centre: np.ndarray, s1: np.ndarray, s2: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Means and sample standard deviations, 0 where there is nothing to say."""
    shift = s1 / _some(total)
    mean = np.where(total > 0, centre + shift, 0.0)
    m2 = np.maximum(s2 - s1 * shift, 0.0)
    one = 1 if total is count else np.minimum(1, total / np.maximum(count, 1))
    sd = np.where(count > 1, np.sqrt(m2 / np.where(count > 1, total - one, 1)), 0.0)
    return mean, sd


def shrunk_clip(count: np.ndarray, clip: float) -> np.ndarray:
    """The largest size of a standardised value after `count` rows: min(clip, sqrt(count))."""
    limit: np.ndarray = np.minimum(clip, np.sqrt(count))
    return limit


@dataclass(frozen=True)
class ScaledTarget:
    """Regression targets in units of the spread of the targets before them.

    Arguments:
        z: (n,) float64, (y - location) / scale, clipped; 0 while no spread is known.
        location: (n,) float64, the mean of the earlier targets (0 before the first).
        scale: (n,) float64, their standard deviation (1 while none is known); never 0.
        known: (n,) bool, whether at least `warmup` earlier targets with some spread were seen.

    Example:
        >>> one = np.ones(1)
        >>> ScaledTarget(one, 3.0 * one, 2.0 * one, one > 0).inverse(one, one)
        (array([5.]), array([2.]))
    """

    z: np.ndarray
    location: np.ndarray
    scale: np.ndarray
    known: np.ndarray

    def part(self, rows: slice | np.ndarray) -> ScaledTarget:
        """Some of the rows."""
        return ScaledTarget(self.z[rows], self.location[rows], self.scale[rows], self.known[rows])

    def inverse(self, mean: np.ndarray, sd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Turn predictions for these rows, (n,) mean and sd, back into the target's own units."""
        mean = np.asarray(mean, np.float64)
        sd = np.asarray(sd, np.float64)
        return self.location + self.scale * mean, self.scale * sd


class TargetScaler:
    """Standardise a regression target online, each row by the rows before it, in an invertible way.

    Arguments:
        clip: the largest size of a standardised target.
        warmup: how many targets must have been seen before `ScaledTarget.known` is True.

    Raises:
        DataError: `clip` is not above 0.

    Example:
        >>> scaler = TargetScaler()
        >>> state, scaled = scaler.encode(scaler.initial(), np.array([10.0, 20.0, 30.0]))
        >>> scaled.location.tolist(), scaled.z.round(3).tolist()
        ([0.0, 10.0, 15.0], [0.0, 0.0, 1.414])
        >>> [float(part) for part in scaler.inverse(state, 1.0, 0.5)]
        [30.0, 5.0]
    """

    def __init__(self, clip: float = 8.0, warmup: int = 10) -> None:
        require_representable("clip", clip)
        if not clip > 0:
            raise DataError(f"clip must be above 0; got {clip!r}.")
        self.clip = float(clip)
        self.warmup = warmup

    def initial(self) -> Moments:
        """The state before any target."""
        return Moments.empty(1)

    def encode(
        self, state: Moments, y: np.ndarray, *, learn: bool = True, weights: np.ndarray | None = None
    ) -> tuple[Moments, ScaledTarget]:
        """Standardise targets.

        Arguments:
            state: from `initial` or an earlier call.
            y: (n,) float64, finite.
            learn: whether rows are taken into the state; otherwise `state` stays as it is.
            weights: the weights of the rows in the moments; see `Moments.scan`.

        Returns:
            The next state and the standardised targets.

        Raises:
            DataError: a target is not finite.
        """
        y = np.asarray(y, np.float64).reshape(-1, 1)
        if np.count_nonzero(np.isfinite(y)) < len(y):
            raise DataError(f"targets must be finite; row {int(np.argmin(np.isfinite(y)))} of these is not.")
        if learn:
            after, mean, sd, count, spread = state.scan(y, weights)
        else:
            after = state
            shape = y.shape
            facts = state.facts
            mean = np.broadcast_to(facts.mean, shape)
            sd = np.broadcast_to(facts.sd, shape)
            count = np.broadcast_to(state.count, shape)
            spread = np.broadcast_to(facts.spread, shape)
        scale = np.where(spread, sd, 1.0)
        limit = shrunk_clip(count, self.clip)
        z = np.where(spread, np.maximum(np.minimum((y - mean) / scale, limit), -limit), 0.0)
        known = spread & (count >= self.warmup)
        return after, ScaledTarget(z[:, 0], mean[:, 0].copy(), scale[:, 0], known[:, 0])

    def inverse(
        self, state: Moments, mean: np.ndarray | float, sd: np.ndarray | float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Turn a prediction for the next row back into the target's own units.

        Arguments:
            state: the state before that row.
            mean, sd: a predicted mean and standard deviation in standardised units, of any one shape.

        Returns:
            The mean and standard deviation in the target's units.
        """
        facts = state.facts
        location = facts.mean[0]
        scale = facts.sd[0] if facts.spread[0] else 1.0
        return location + scale * np.asarray(mean, np.float64), scale * np.asarray(sd, np.float64)
