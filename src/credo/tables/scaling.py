"""Standardise numbers online: each row by the mean and spread of the rows before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from credo.core.errors import DataError, FormatError

__all__ = ["Moments", "ScaledTarget", "TargetScaler", "known_spread", "shrunk_clip"]

BLOCK = 1024
"""Rows after which sums are taken about a new centre; counted from the first row, whatever the chunks."""

TINY = 1e-12
"""A spread below this share of the mean's size is rounding error and counts as none."""


@dataclass(frozen=True)
class Moments:
    """Running count, mean and spread of D columns, NaN entries left out.

    Sums are taken about a centre that moves every `BLOCK` rows, always in row order, so that the result is
    that of Welford's recurrence up to rounding and is bitwise the same however the rows are split.

    Arguments:
        rows: the number of rows seen, () int64.
        count: the number of entries seen in each column, (D,) int64.
        centre: the value about which the sums are taken, (D,) float64; NaN before a column's first entry.
        s1, s2: (D,) float64, the sums of (x - centre) and (x - centre) squared, times the rows' weights.
        weight: the sum of the weights of the entries of each column, (D,) float64; None where each has the
            weight 1.

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

    @staticmethod
    def empty(width: int) -> Moments:
        """The moments of no rows of `width` columns."""
        zero = np.zeros(width)
        return Moments(np.array(0), np.zeros(width, np.int64), np.full(width, np.nan), zero, zero)

    def mean(self) -> np.ndarray:
        """The means, (D,) float64, 0 where nothing was seen."""
        return _mean(self.total, self.centre, self.s1)

    def sd(self) -> np.ndarray:
        """The sample standard deviations, (D,) float64, 0 where fewer than two entries were seen."""
        return _sd(self.count, self.total, self.s1, self.s2)

    @property
    def total(self) -> np.ndarray:
        """The sum of the weights of each column's entries, (D,): their number, where none has a weight."""
        return self.count if self.weight is None else self.weight

    def scan(
        self, x: np.ndarray, weights: np.ndarray | None = None
    ) -> tuple[Moments, np.ndarray, np.ndarray, np.ndarray]:
        """Take in rows one after the other.

        A row of weight w counts as w equal rows would: with whole weights, mean and spread are those of the
        rows written out. Weights below 1 on average say how rows compare, and the spread is that of their
        number.

        Arguments:
            x: (n, D) float64, NaN where an entry is missing.
            weights: (n,) float64, above 0; None where each row counts once.

        Returns:
            The moments after all rows; and (n, D) means, standard deviations and counts *before* each row.
        """
        means, sds = np.empty(x.shape), np.empty(x.shape)
        counts = np.empty(x.shape, np.int64)
        now, start = self, 0
        while start < len(x):
            stop = min(len(x), start + BLOCK - int(now.rows) % BLOCK)
            part = slice(start, stop)
            some = None if weights is None else weights[part, None]
            now, means[part], sds[part], counts[part] = now._scan_part(x[part], some)
            start = stop
        return now, means, sds, counts

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
        count = np.cumsum(np.vstack([self.count, here]), axis=0)
        total = count
        if weights is not None or self.weight is not None:
            total = np.cumsum(np.vstack([self.total, here if weights is None else here * weights]), axis=0)
        s1 = np.cumsum(np.vstack([self.s1, heavy]), axis=0)
        s2 = np.cumsum(np.vstack([self.s2, heavy * away]), axis=0)
        means, sds = _mean(total[:-1], centre, s1[:-1]), _sd(count[:-1], total[:-1], s1[:-1], s2[:-1])
        weight = None if total is count else total[-1]
        after = Moments(self.rows + len(x), count[-1], centre, s1[-1], s2[-1], weight)
        if int(after.rows) % BLOCK == 0:
            many = _some(after.total)
            after = Moments(
                after.rows,
                after.count,
                centre + after.s1 / many,
                np.zeros_like(after.s1),
                np.maximum(after.s2 - after.s1 * (after.s1 / many), 0.0),
                weight,
            )
        return after, means, sds, count[:-1]

    def arrays(self) -> dict[str, np.ndarray]:
        """The state as named arrays, from which `from_arrays` continues bitwise."""
        names = ("rows", "count", "centre", "s1", "s2", *(() if self.weight is None else ("weight",)))
        return {name: np.asarray(getattr(self, name)) for name in names}

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray]) -> Moments:
        """Restore what `arrays` gave.

        Raises:
            FormatError: an array is missing, or the shapes do not agree.
        """
        kinds = {
            "rows": np.int64,
            "count": np.int64,
            "centre": np.float64,
            "s1": np.float64,
            "s2": np.float64,
        }
        lost = [name for name in kinds if name not in arrays]
        if lost:
            raise FormatError(f"saved moments must hold {', '.join(kinds)}; {lost[0]!r} is not there.")
        if "weight" in arrays:
            kinds["weight"] = np.float64
        loaded = {name: np.array(arrays[name], kind) for name, kind in kinds.items()}
        width = loaded["count"].shape
        if loaded["rows"].shape != () or any(loaded[k].shape != width for k in loaded if k != "rows"):
            raise FormatError(
                "saved moments must hold rows of shape () and count, centre, s1, s2 of one shape; got "
                + ", ".join(f"{name} {value.shape}" for name, value in loaded.items())
                + "."
            )
        return Moments(loaded.pop("rows"), **loaded)


def _some(total: np.ndarray) -> np.ndarray:
    """Sums of weights by which one may divide: 1 where there is no entry."""
    return np.where(total > 0, total, 1)


def _mean(total: np.ndarray, centre: np.ndarray, s1: np.ndarray) -> np.ndarray:
    return np.where(total > 0, centre + s1 / _some(total), 0.0)


def _sd(count: np.ndarray, total: np.ndarray, s1: np.ndarray, s2: np.ndarray) -> np.ndarray:
    m2 = np.maximum(s2 - s1 * (s1 / _some(total)), 0.0)
    one = np.minimum(1, total / np.maximum(count, 1)) if total is not count else 1
    return np.where(count > 1, np.sqrt(m2 / np.where(count > 1, total - one, 1)), 0.0)


def known_spread(mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """Whether a standard deviation is more than rounding error, so that division by it is safe.

    Example:
        >>> known_spread(np.array([0.0, 5.0]), np.array([1.0, 0.0])).tolist()
        [True, False]
    """
    known: np.ndarray = sd > TINY * np.abs(mean)
    return known


def shrunk_clip(count: np.ndarray, clip: float) -> np.ndarray:
    """The largest size of a standardised value after `count` rows: min(clip, sqrt(count)).

    Example:
        >>> shrunk_clip(np.array([0, 4, 10_000]), 8.0).tolist()
        [0.0, 2.0, 8.0]
    """
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

    def inverse(self, mean: np.ndarray, sd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Turn predictions for these rows, (n,) mean and sd, back into the target's own units."""
        return self.location + self.scale * np.asarray(mean, np.float64), self.scale * np.asarray(
            sd, np.float64
        )


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
            learn: whether each row is taken into the state; otherwise `state` standardises all rows
                unchanged.
            weights: the weights of the rows in the moments; see `Moments.scan`.

        Returns:
            The next state and the standardised targets.

        Raises:
            DataError: a target is not finite.
        """
        y = np.asarray(y, np.float64).reshape(-1, 1)
        if not np.isfinite(y).all():
            raise DataError(f"targets must be finite; row {int(np.argmin(np.isfinite(y)))} of these is not.")
        if learn:
            after, mean, sd, count = state.scan(y, weights)
        else:
            after, shape = state, y.shape
            mean, sd = np.broadcast_to(state.mean(), shape), np.broadcast_to(state.sd(), shape)
            count = np.broadcast_to(state.count, shape)
        spread = known_spread(mean, sd)
        scale = np.where(spread, sd, 1.0)
        limit = shrunk_clip(count, self.clip)
        z = np.where(spread, np.clip((y - mean) / scale, -limit, limit), 0.0)
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
        location, spread = state.mean()[0], state.sd()[0]
        scale = spread if known_spread(location, spread) else 1.0
        return location + scale * np.asarray(mean, np.float64), scale * np.asarray(sd, np.float64)
