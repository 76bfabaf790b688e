"""Which entries of a column are too far from the others to say anything of its units, and when units changed.

The rule is written once, for single numbers, arrays of NumPy and arrays of JAX. What keeps the sums calls it:
`adapt.RunningMoments` in compiled programs, which single precision must hold; `tables.Moments` for whole
chunks; and `tables.ColumnMoments` for single entries. Tests hold all three to one plain reference.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

__all__ = [
    "ABSURD",
    "CLOSE",
    "EARLY",
    "FAR",
    "SCALARS",
    "Batch",
    "Judgement",
    "Known",
    "Streaks",
    "inliers",
    "is_close",
    "is_far",
    "judge",
    "known_spread",
    "standardise",
]

FAR = 8.0
"""An entry farther from the mean than this many standard deviations leaves the moments as they are."""

YOUNG = 10.0
"""While the count n is small, `FAR` is widened to FAR (1 + (YOUNG / n)^2): few entries say little of a
spread. Of ten normal entries and more, one in a million would be taken for far."""

STREAK = 10
"""After so many far entries in a row the moments take all of them in; where they are absurd, and differ, the
moments begin again from them."""

EVENTS = 3
"""From so many far entries on, each after an ordinary one and unlike the farthest of them, they belong to the
column, and are taken in: as if they were `FAR` times their number of standard deviations away at most."""

CLOSE = 1e-2
"""Entries that differ by less than this share of the standard deviation do not fit either, at first: then
something absurd stood among the first ones."""

EARLY = 100
"""The count up to which entries can be too close. The moments begin again for this reason only once, so that
a column which is calm and wild by turns does not change its units with every turn."""

ABSURD = 100.0
"""An input that is more than so many standard deviations from the mean, z, counts as its limit times
(ABSURD / z)^2: what is absurd comes near to what is missing, which is 0."""

TINY = 1e-12
"""A spread below this share of the mean's size is rounding error and counts as none."""

WIDE = 24.0
"""Of a whole batch, entries farther from the median than this many standard deviations are far. It takes the
median distance from the median for the standard deviation, times 1.48 as for normal numbers."""


class Functions(Protocol):
    """The functions that the rule needs: those of `numpy`, of `jax.numpy`, or of single numbers."""

    @property
    def where(self) -> Callable[..., Any]: ...

    @property
    def minimum(self) -> Callable[..., Any]: ...

    @property
    def maximum(self) -> Callable[..., Any]: ...

    @property
    def sqrt(self) -> Callable[..., Any]: ...

    @property
    def logical_not(self) -> Callable[..., Any]: ...


class _Scalars:
    """The functions of single numbers, which cost a tenth of those of arrays of one entry."""

    @staticmethod
    def where(condition: bool, yes: Any, no: Any) -> Any:
        if condition:
            return yes
        return no

    minimum = staticmethod(min)
    maximum = staticmethod(max)
    sqrt = staticmethod(math.sqrt)
    logical_not = staticmethod(operator.not_)


SCALARS: Functions = _Scalars()
"""The functions of single numbers."""


class Known(NamedTuple):
    """The facts about columns before an entry: the standard deviation, whether it is more than rounding
    error, the number of entries, and the sum of their weights.
    """

    sd: Any
    spread: Any
    count: Any
    weight: Any


class Streaks(NamedTuple):
    """The record of the entries of a column that do not fit: of the present streak the length, above 0 for
    far entries and below for close ones, its mean and its variance; how often the moments began again; how
    many far entries came alone; and the farthest of these.
    """

    length: Any
    mean: Any
    var: Any
    restarts: Any
    events: Any
    farthest: Any


class Judgement(NamedTuple):
    """The verdict on an entry.

    Attributes:
        far: it is far from the mean.
        taken: it is taken in alone, where it is far as if it were `reach` from the mean at most.
        joined: the streak that it ends is taken in, beside what was there.
        again: the moments begin again from the streak that it ends.
        size: the length of the streak with this entry.
        reach: how far from the mean a far entry counts at most.
        streaks: what is kept of the streaks after it, also of one that was taken in, which has the length 0.
    """

    far: Any
    taken: Any
    joined: Any
    again: Any
    size: Any
    reach: Any
    streaks: Streaks


def known_spread(mean: Any, sd: Any) -> Any:
    """Whether a standard deviation is more than rounding error, so that division by it is safe."""
    return sd > TINY * abs(mean)


def is_far(xp: Functions, gap: Any, known: Known) -> Any:
    """Whether entries are too far from the mean to be taken in: |gap| > 8 (1 + (10 / n)^2) sd."""
    wide = FAR * (1.0 + (YOUNG / xp.maximum(known.weight, 1.0)) ** 2)
    return known.spread & (abs(gap) > wide * known.sd)


def is_close(entry: Any, known: Known, streaks: Streaks) -> Any:
    """Whether entries are too close to those before them: something absurd stood among the first ones."""
    early = (known.count <= EARLY) & (streaks.restarts == 0) & (streaks.length < 0)
    return early & (abs(entry - streaks.mean) <= CLOSE * known.sd)


def judge(
    xp: Functions, entry: Any, known: Known, streaks: Streaks, gap_of: Callable[[Any], Any]
) -> Judgement:
    """Judge an entry of each column, which may be far or close.

    Arguments:
        xp: the functions for numbers of this kind.
        entry: the entries, finite.
        known: what is known of the columns before them.
        streaks: what is kept of the entries that did not fit.
        gap_of: how far a number is from the mean.
    """
    gap = gap_of(entry)
    far = is_far(xp, gap, known)
    # the streak of entries that do not fit goes on, or begins with this one
    goes_on = xp.where(far, streaks.length > 0, is_close(entry, known, streaks))
    size = xp.where(goes_on, abs(streaks.length), 0.0) + 1.0
    away = entry - streaks.mean
    mean = xp.where(goes_on, streaks.mean + away / size, entry)
    var = xp.where(goes_on, (1.0 - 1.0 / size) * (streaks.var + away * away / size), 0.0)
    # a far entry that came alone may be another one than the farthest of these
    first = streaks.events == 0
    unlike = first | (abs(entry - streaks.farthest) > CLOSE * abs(gap))
    new = far & xp.logical_not(goes_on) & unlike
    events = streaks.events + xp.where(new, 1.0, 0.0)
    farther = new & (first | (abs(gap) > abs(gap_of(streaks.farthest))))
    # a full streak is taken in, alone or beside what was there
    full = size >= STREAK
    spread = xp.sqrt(var)
    absurd = xp.maximum(abs(gap_of(mean)), spread) > ABSURD * known.sd
    near = xp.logical_not(far)
    again = full & (absurd | near) & known_spread(mean, spread)
    joined = full & far & xp.logical_not(absurd)
    ended = again | joined
    taken = xp.logical_not(ended) & (near | (new & (events >= EVENTS)))
    after = Streaks(
        length=xp.where(ended, 0.0, xp.where(far, size, -size)),
        mean=mean,
        var=var,
        restarts=streaks.restarts + xp.where(again, 1.0, 0.0),
        events=xp.where(ended, 0.0, events),
        farthest=xp.where(farther, entry, streaks.farthest),
    )
    return Judgement(far, taken, joined, again, size, FAR * events * known.sd, after)


def standardise(xp: Functions, away: Any, limit: Any) -> Any:
    """Numbers of standard deviations, of a size of at most `limit`, which come near to 0 beyond a hundred."""
    near = (ABSURD / xp.maximum(abs(away), ABSURD)) ** 2
    return xp.minimum(xp.maximum(away, -limit), limit) * near


class Batch(NamedTuple):
    """The moments of a whole batch, whatever the order of its rows: which entries count, by `inliers`, the
    sum of their weights, their mean (0 without any), and the sum of squared distances from it.
    """

    here: np.ndarray
    total: np.ndarray
    mean: np.ndarray
    squares: np.ndarray

    @staticmethod
    def of(entries: np.ndarray, weights: np.ndarray | None = None) -> Batch:
        """The moments of entries (n, D), NaN if one is missing, with weights (n,) or 1."""
        here = inliers(entries, weights)
        share = here if weights is None else here * weights[:, None]
        total = share.sum(axis=0)
        some = np.where(total > 0, total, 1.0)
        filled = np.where(here, entries, 0.0)
        # of distances from a first mean, so that a large offset costs no digits
        start = (share * filled).sum(axis=0) / some
        away = np.where(here, filled - start, 0.0)
        mean = start + (share * away).sum(axis=0) / some
        squares = (share * np.where(here, filled - mean, 0.0) ** 2).sum(axis=0)
        return Batch(here, total, mean, squares)


def inliers(entries: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Which entries (n, D) of a batch are not far from the others, whatever their order; NaN is far."""
    here: np.ndarray = ~np.isnan(entries)
    share = np.ones(len(entries)) if weights is None else weights
    for column in range(entries.shape[1]):
        some = here[:, column] & (share > 0)
        if not some.any():
            continue
        values = entries[some, column]
        own = share[some]
        gaps = np.abs(values - _median(values, own))
        spread = 1.4826 * _median(gaps, own)
        if spread > 0:
            here[some, column] = gaps <= WIDE * spread
    return here


def _median(values: np.ndarray, weights: np.ndarray) -> float:
    """The weighted median: that of rows written out as often as they count."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, 0.5 * total[-1])])
