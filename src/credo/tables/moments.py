"""Running count, mean and spread of columns, in row order, which no single entry can ruin."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from credo.core.errors import FormatError
from credo.core.outlying import EARLY, FAR, Batch, Known, Streaks, is_close, is_far, known_spread
from credo.tables.column_moments import BLANK, LARGEST, ColumnMoments, entry_by_entry

__all__ = ["Moments"]

BLOCK = 1024
"""Rows after which sums are taken about a new centre; counted from the first row, whatever the chunks."""


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
        >>> moments, mean, sd, count = Moments.empty(1).scan(np.array([[1.0], [3.0], [8.0]]))
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
        return self._now[0]

    def sd(self) -> np.ndarray:
        """The sample standard deviations, (D,) float64, 0 if fewer than two entries were seen."""
        return self._now[1]

    @functools.cached_property
    def _now(self) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard deviations, of which many rows are told the same."""
        total = self.count if self.weight is None else self.weight
        return _fixed(*_mean_and_sd(self.count, total, self.centre, self.s1, self.s2))

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

    def begun_again(self, before: Moments) -> np.ndarray:
        """Which columns began again since these moments before (D,): their entries are of other units."""
        if self.streaks is None or self.streaks is before.streaks:
            return np.zeros(len(self.count), bool)
        return np.asarray(self.streaks[:, 3] > before._streaks[:, 3])

    def column(self, place: int) -> ColumnMoments:
        """The moments of one column, to be continued entry by entry."""
        centre, s1, s2, total = (float(part[place]) for part in (self.centre, self.s1, self.s2, self.total))
        streaks = Streaks(*self._streaks[place].tolist())
        return ColumnMoments(int(self.count[place]), centre, s1, s2, total, streaks)

    def scan(
        self, x: np.ndarray, weights: np.ndarray | None = None
    ) -> tuple[Moments, np.ndarray, np.ndarray, np.ndarray]:
        """Take in rows one after the other.

        A row of weight w counts as w equal rows would: whole weights give the moments of the rows written
        out. Weights below 1 on average say how rows compare; the spread is that of their number.

        Arguments:
            x: (n, D) float64, NaN if an entry is missing.
            weights: (n,) float64, above 0; None if each row counts once.

        Returns:
            The moments after all rows; and (n, D) means, standard deviations and counts *before* each row.
        """
        if len(x) == 1 and weights is None and (after := self._one(x[0])) is not None:
            mean, sd = self._now
            return after, mean[None], sd[None], self.count[None]
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
        return now, means, sds, counts

    def _one(self, x: np.ndarray) -> Moments | None:
        """The moments after a row (D,) that has no entry unlike the others; None for another row. The same as
        `_scan_part`, at a third of its cost.
        """
        if self.weight is not None:
            return None
        if not self._steady:
            return self._one_of_few(x)
        mean, sd = self._now
        near = np.abs(x - mean) <= FAR * sd  # NaN is not
        if np.count_nonzero(near & np.isfinite(sd)) < len(x):
            return None
        away = x - self.centre
        count = self.count + 1
        s1 = self.s1 + away
        s2 = self.s2 + away * away
        after = Moments(self.rows + 1, count, self.centre, s1, s2, None, self.streaks)
        if int(after.rows) % BLOCK == 0:
            return after._centred()
        # what `_steady` and `_now` would find: all columns have enough entries, of the weight 1
        shift = s1 / count
        spread = np.sqrt(np.maximum(s2 - s1 * shift, 0.0) / self.count)
        after.__dict__.update(_steady=True, _now=_fixed(self.centre + shift, spread))
        return after

    def _one_of_few(self, x: np.ndarray) -> Moments | None:
        """`_one` where some columns are young: all columns at once, as `ColumnMoments` takes one entry."""
        mean, sd = self._now
        streaks = Streaks(*self._streaks.T)
        seen = np.abs(x) <= LARGEST  # NaN is not
        entries = np.where(seen, x, 0.0)
        known = Known(sd, known_spread(mean, sd), self.count, self.count)
        unusual = is_far(np, entries - mean, known) | is_close(entries, known, streaks)
        if np.count_nonzero(seen & unusual):
            return None
        early = (self.count <= EARLY) & (streaks.restarts == 0)
        centre = np.where(seen & (self.count == 0), entries, self.centre)
        away = np.where(seen, entries - centre, 0.0)
        kept = self.streaks
        if early.any() or streaks.length.any():
            kept = self._streaks.copy()
            kept[:, 0] = np.where(seen, np.where(early, -1.0, 0.0), streaks.length)
            kept[:, 1] = np.where(seen, np.where(early, entries, 0.0), streaks.mean)
            kept[:, 2] = np.where(seen, 0.0, streaks.var)
        s1 = self.s1 + away
        s2 = self.s2 + away * away
        after = Moments(self.rows + 1, self.count + seen, centre, s1, s2, None, kept)
        if int(after.rows) % BLOCK == 0:
            return after._centred()
        return after

    @functools.cached_property
    def _steady(self) -> bool:
        """Whether no column is taken entry by entry whatever comes."""
        return not self._young(self.count).any()

    def _young(self, counts: np.ndarray) -> np.ndarray:
        """Which columns are taken entry by entry whatever comes, after so many entries (D,)."""
        young: np.ndarray = counts <= EARLY
        if self.streaks is not None:
            young = (young & (self.streaks[:, 3] == 0)) | (self.streaks[:, 0] != 0)
        return young

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
            odd = self._odd(x, means, sds, count[:-1])
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

    def _odd(self, x: np.ndarray, means: np.ndarray, sds: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Which columns must be taken entry by entry: those with far entries or with a streak (D,)."""
        if not len(x):
            return np.zeros(x.shape[1], bool)
        # the limit falls with the count, so that what no limit calls far is not far
        odd: np.ndarray = (np.abs(x - means) > FAR * sds).any(axis=0) | ~np.isfinite(sds[-1])
        return np.asarray(odd | self._young(counts[0]))

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


def _fixed(mean: np.ndarray, sd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Arrays that nobody changes."""
    mean.flags.writeable = sd.flags.writeable = False
    return mean, sd


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
