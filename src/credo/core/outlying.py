"""Which entries of a column are too far from the others to say anything of its units, and when units changed.

Three codes follow these numbers: one in compiled programs (`adapt.RunningMoments`), one for whole chunks and
one for single entries in NumPy and Python (`tables.Moments`). Tests hold all three to one plain reference.
"""

from __future__ import annotations

import numpy as np

__all__ = ["ABSURD", "CLOSE", "EARLY", "EVENTS", "FAR", "STREAK", "YOUNG", "inliers"]

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

WIDE = 24.0
"""Of a whole batch, entries farther from the median than this many standard deviations are far. It takes the
median distance from the median for the standard deviation, times 1.48 as for normal numbers."""


def inliers(entries: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Which entries (n, D) of a batch are not far from the others, whatever their order; NaN is far."""
    here: np.ndarray = ~np.isnan(entries)
    share = np.ones(len(entries)) if weights is None else weights
    for column in range(entries.shape[1]):
        some = here[:, column] & (share > 0)
        if not some.any():
            continue
        values, own = entries[some, column], share[some]
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
