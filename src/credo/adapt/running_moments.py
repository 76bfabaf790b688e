"""Means and variances of columns that come one row at a time, which no single entry can ruin.

They are kept in a form that single precision can hold, and every standardisation of rows stands on them.
"""

from __future__ import annotations

from collections.abc import Iterable

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.fields import field, nonnegative_at
from credo.core.outlying import (
    Batch,
    Known,
    Streaks,
    is_close,
    is_far,
    judge,
    known_spread,
    standardise,
)
from credo.core.platforms import accelerated
from credo.core.records import record
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, DTypeLike

__all__ = ["RunningMoments", "farthest"]

MOST = 2.0**24
"""After so many entries the count stays, and the oldest entries fade: single precision counts no further."""

WIDTH = 11
"""The numbers that are kept of a column."""

# What becomes of a column: it passes as it comes, its moments are learned, or they stay as they are.
PASSES = 0.0
LEARNS = 1.0
STAYS = 2.0


def farthest(dtype: DTypeLike) -> float:
    """The largest size of a number whose square leaves room in a dtype: about 1e15, or 1e123 in double.

    Example:
        >>> farthest(np.float32) > 1e15
        True
    """
    most: float = float(jnp.finfo(dtype).max) ** 0.4
    return most


@record
class RunningMoments:
    """The count, mean and variance of the entries seen so far, of one column or of several.

    By Welford's recurrence, with the mean as the sum of two numbers and the variance in place of a sum of
    squares, so that neither large offsets nor long streams lose digits that the entries have:

        gap = x - mean,   mean += gap / n,   var <- (1 - 1/n) (var + gap^2 / n).

    An entry with |gap| > 8 (1 + (10 / n)^2) sd is far, and has no influence, however large it is, but where
    such entries belong to the column. Ten in a row are taken in together; if they are more than a hundred
    standard deviations away, or apart, they are other units, and the moments begin again from these ten if
    they differ, which `restarts` counts. From the third on that came alone and was unlike the farthest of
    them, far entries are taken in one by one, the k-th as if it were 8 k standard deviations away at most; so
    a sentinel, which is the same whenever it comes, is not. And the moments begin again, once, where ten
    entries in a row, among the first hundred, lie within a hundredth of the standard deviation: in that case
    one of the first entries was absurd.

    Attributes:
        values: eleven numbers a column (D, 11), in one array, which costs a compiled program less: the
            count n of entries, up to 2^24, after which the oldest fade; the mean, 0 before the first entry;
            what is left of the mean after rounding; the mean squared distance from the mean; 0 for a column
            that passes as it comes, 1 for one whose moments are learned, 2 for one whose moments stay; of the
            present streak the length, above 0 for far entries and below for close ones, its mean and its
            variance; how often the moments began again; how many far entries came alone; and
            the farthest of these.

    Example:
        >>> moments = RunningMoments.empty((), float)
        >>> for x in (1.0, 3.0, 8.0, 1e9):
        ...     moments = moments.observe(jnp.asarray(x))
        >>> float(moments.mean), round(float(moments.sd), 3)
        (4.0, 3.606)
    """

    values: Array = field(nonnegative_at([0, 3], "counts and variances"), raw=True)

    def __post_init__(self) -> None:
        width = jnp.shape(self.values)[-1]
        if width < WIDTH:
            pad = [(0, 0)] * (jnp.ndim(self.values) - 1) + [(0, WIDTH - width)]
            object.__setattr__(self, "values", jnp.pad(jnp.asarray(self.values), pad))

    @staticmethod
    def empty(shape: tuple[int, ...], dtype: DTypeLike, scaled: ArrayLike = True) -> RunningMoments:
        """The moments of nothing.

        Arguments:
            shape: () for one column, (D,) for several.
            dtype: the dtype of the entries.
            scaled: which columns are learned; the others pass as they come.
        """
        kind = jnp.where(jnp.broadcast_to(jnp.asarray(scaled), shape), LEARNS, PASSES).astype(dtype)
        return RunningMoments(jnp.zeros((*shape, WIDTH), dtype).at[..., 4].set(kind))

    def of(self, rows: np.ndarray, weights: np.ndarray | None = None) -> RunningMoments:
        """The moments of a batch, computed in double precision, which stay as they are.

        What is far from all others (`credo.core.outlying.inliers`) is left out.

        Arguments:
            rows: the entries (N, ...), with NaN if one is missing.
            weights: how often each row counts (N,), at least 0; None for once.
        """
        dtype = self.values.dtype
        entries = np.asarray(rows, np.float64)
        flat = np.where(np.abs(entries) <= farthest(dtype), entries, np.nan).reshape(len(entries), -1)
        times = None if weights is None else np.asarray(weights, np.float64)
        batch = Batch.of(flat, times)
        here = batch.here if times is None else batch.here & (times > 0)[:, None]
        total, mean = (part.reshape(entries.shape[1:]) for part in (batch.total, batch.mean))
        some = np.where(total > 0, total, 1.0)
        var = batch.squares.reshape(entries.shape[1:]) / some
        number = here.sum(axis=0).reshape(entries.shape[1:])
        count = np.minimum(np.maximum(number, np.round(total)), MOST)
        high = np.asarray(mean, dtype)
        kind = np.asarray(self.stay().values[..., 4])
        columns = (count, high, mean - high.astype(np.float64), var, kind)
        return RunningMoments(jnp.asarray(np.stack(columns, axis=-1), dtype))

    def stay(self) -> RunningMoments:
        """The same moments, which stay as they are."""
        kind = self.values[..., 4]
        return RunningMoments(self.values.at[..., 4].set(jnp.where(kind > 0, STAYS, kind)))

    def choose(self, scaled: ArrayLike) -> RunningMoments:
        """The same moments, of which those of some columns are learned, and the other columns pass.

        Arguments:
            scaled: which columns are learned (D,).
        """
        kind = jnp.where(jnp.asarray(scaled), LEARNS, PASSES).astype(self.values.dtype)
        return RunningMoments(self.values.at[..., 4].set(kind))

    @property
    def count(self) -> Array:
        """The number of entries (D,)."""
        return self.values[..., 0]

    @property
    def mean(self) -> Array:
        """The mean (D,), 0 before the first entry."""
        return self.values[..., 1] + self.values[..., 2]

    @property
    def sd(self) -> Array:
        """The sample standard deviation (D,), 0 if fewer than two entries were seen."""
        count = self.count
        return jnp.sqrt(self.values[..., 3] * (count / jnp.maximum(count - 1, 1)))

    @property
    def scaled(self) -> Array:
        """Which columns are standardised (D,); the others pass as they come."""
        return self.values[..., 4] > PASSES

    @property
    def fixed(self) -> Array:
        """Which columns have moments that stay (D,)."""
        return self.values[..., 4] == STAYS

    @property
    def restarts(self) -> Array:
        """The number of times that the moments began again because the entries were of other units (D,)."""
        return self.values[..., 8]

    @property
    def known(self) -> Array:
        """Whether the entries have a spread that is more than rounding error (D,)."""
        spread: Array = known_spread(self.values[..., 1], self.sd)
        return spread

    @property
    def scale(self) -> Array:
        """The standard deviation (D,), and 1 if there is none."""
        return jnp.where(self.known, self.sd, 1.0)

    def limit(self, clip: ArrayLike) -> Array:
        """The largest size of a standardised entry: min(clip, sqrt(count))."""
        return jnp.minimum(as_like(clip, self.values), jnp.sqrt(self.count))

    def gap(self, x: Array) -> Array:
        """The differences between entries and the mean (D,)."""
        return (x - self.values[..., 1]) - self.values[..., 2]

    def z(self, x: Array, clip: ArrayLike) -> Array:
        """Entries in standard deviations from the mean, of a size of at most min(clip, sqrt(count)) (D,).

        They are 0 while no spread is known, and beyond a hundred standard deviations they come near to 0.
        """
        z: Array = standardise(jnp, self.gap(x) / self.scale, self.limit(clip))
        return jnp.where(self.known, z, 0.0)

    def observe(self, x: Array) -> RunningMoments:
        """Take in one row. Entries that are missing, far, or of a size above `farthest`, leave the moments.

        Arguments:
            x: the entries (D,).
        """
        old = self.values
        # Comparisons with NaN are false.
        seen = (jnp.abs(x) <= farthest(x.dtype)) & (old[..., 4] == LEARNS)
        known = self._known
        streaks = self._streaks
        unusual = jnp.any(seen & (is_far(jnp, self.gap(x), known) | is_close(x, known, streaks)))
        if accelerated():
            return RunningMoments(_with_streaks(old, x, seen))
        # Nearly all rows are usual, and have the same bits by a fifth of the arithmetic.
        return RunningMoments(jax.lax.cond(unusual, _with_streaks, _with_usual, old, x, seen))

    @property
    def _known(self) -> Known:
        return Known(self.sd, self.known, self.count, self.count)

    @property
    def _streaks(self) -> Streaks:
        return Streaks(*(self.values[..., place] for place in range(5, WIDTH)))


def _with_usual(old: Array, x: Array, seen: Array) -> Array:
    """The moments after entries none of which is far or close: Welford's recurrence."""
    count = jnp.minimum(old[..., 0], MOST - 1.0) + 1.0
    share = 1.0 / count
    gap = jnp.where(seen, RunningMoments(old).gap(x), 0.0)
    var = (1.0 - share) * (old[..., 3] + share * gap**2)
    streak = (5, jnp.full_like(x, -1.0)), (6, x), (7, jnp.zeros_like(x))
    moments = (0, count), *_moved_mean(old, share * gap), (3, var)
    return _placed(old, seen, (*moments, *streak))


def _with_streaks(old: Array, x: Array, seen: Array) -> Array:
    """The moments after any entries; see `RunningMoments`."""
    before = RunningMoments(old)
    streaks = before._streaks
    latest: Array = streaks.mean
    entry = jnp.where(seen, x, latest)
    found = judge(jnp, entry, before._known, streaks, before.gap)
    size: Array = found.size
    joined: Array = found.joined
    about: Array = found.streaks.mean
    around: Array = found.streaks.var
    # The moments take in the entry, or the streak.
    gap = before.gap(entry)
    own = jnp.where(found.far, jnp.clip(gap, -found.reach, found.reach), gap)
    own = jnp.where(joined, before.gap(about), own)
    weight = jnp.where(joined, size, 1.0)
    count = jnp.minimum(old[..., 0], MOST - weight) + weight
    share = weight / count
    var = (1.0 - share) * (old[..., 3] + share * own**2) + jnp.where(joined, share * around, 0.0)
    taken = found.taken | joined
    learned = _placed(old, taken, ((0, count), *_moved_mean(old, share * own), (3, var)))
    begun = ((0, size), (1, about), (2, jnp.zeros_like(about)), (3, around))
    moments = _placed(learned, found.again, begun)
    return jnp.where(seen[..., None], _placed(moments, seen, enumerate(found.streaks, 5)), old)


def _moved_mean(old: Array, step: Array) -> tuple[tuple[int, Array], tuple[int, Array]]:
    """The mean after a step, and what its rounded sum leaves out, with their places (Knuth's two-sum)."""
    mean = old[..., 1]
    step = old[..., 2] + step
    total = mean + step
    back = total - mean
    return (1, total), (2, (mean - (total - back)) + (step - back))


def _placed(old: Array, where: Array, new: Iterable[tuple[int, Array]]) -> Array:
    """The numbers of columns (D, 11), with new ones (D,) in some places. A choice by the number of the place
    is one pass over the array for the compiler, where a concatenation is one for each part.
    """
    place = jnp.arange(WIDTH, dtype=jnp.int32).reshape(*(1,) * (old.ndim - 1), WIDTH)
    result = old
    for number, values in new:
        result = jnp.where(where[..., None] & (place == number), values[..., None], result)
    return result
