"""Means and variances of columns that come one row at a time, in a form that single precision can keep."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from credo.core.records import record
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, DTypeLike

__all__ = ["RunningMoments", "farthest"]

TINY = 1e-12
"""A spread below this share of the mean's size is rounding error and counts as none."""

MOST = 2**30
"""After so many entries, the count stays, and the oldest entries fade."""


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

    Attributes:
        count: the number n of entries (D,), int32.
        mean: the mean (D,), 0 before the first entry.
        rest: what is left of the mean after rounding (D,).
        var: the mean squared distance from the mean (D,), whose sample variance is n / (n - 1) times it.

    Example:
        >>> moments = RunningMoments.empty((), float)
        >>> for x in (1.0, 3.0, 8.0):
        ...     moments = moments.observe(jnp.asarray(x))
        >>> float(moments.location), round(float(moments.sd), 3)
        (4.0, 3.606)
    """

    count: Array
    mean: Array
    rest: Array
    var: Array

    @staticmethod
    def empty(shape: tuple[int, ...], dtype: DTypeLike) -> RunningMoments:
        """The moments of nothing."""
        zero = jnp.zeros(shape, dtype)
        return RunningMoments(jnp.zeros(shape, jnp.int32), zero, zero, zero)

    @staticmethod
    def of(rows: np.ndarray, dtype: DTypeLike, weights: np.ndarray | None = None) -> RunningMoments:
        """The moments of a batch, computed in double precision.

        Arguments:
            rows: the entries (N, ...), with NaN where one is missing.
            dtype: the dtype of the result.
            weights: how often each row counts (N,), at least 0; None for once.
        """
        values = np.asarray(rows, np.float64)
        here = np.abs(values) <= farthest(dtype)
        times = np.ones(len(values)) if weights is None else np.asarray(weights, np.float64)
        share = here * times.reshape(-1, *(1,) * (values.ndim - 1))
        total = share.sum(axis=0)
        safe = np.where(total > 0, total, 1.0)
        values = np.where(here, values, 0.0)
        start = (share * values).sum(axis=0) / safe
        mean = start + (share * (values - start)).sum(axis=0) / safe
        var = (share * (values - mean) ** 2).sum(axis=0) / safe
        count = np.minimum(np.maximum((share > 0).sum(axis=0), np.round(total)), MOST)
        high = np.asarray(mean, dtype)
        rest = mean - high.astype(np.float64)
        return RunningMoments(
            jnp.asarray(count, jnp.int32), *(jnp.asarray(v, dtype) for v in (high, rest, var))
        )

    @property
    def location(self) -> Array:
        """The mean (D,)."""
        return self.mean + self.rest

    @property
    def sd(self) -> Array:
        """The sample standard deviation (D,), 0 where fewer than two entries were seen."""
        count = self.count.astype(self.var.dtype)
        return jnp.sqrt(self.var * (count / jnp.maximum(count - 1, 1)))

    @property
    def known(self) -> Array:
        """Whether the entries have a spread that is more than rounding error (D,)."""
        return self.sd > TINY * jnp.abs(self.mean)

    @property
    def scale(self) -> Array:
        """The standard deviation (D,), and 1 where there is none."""
        return jnp.where(self.known, self.sd, 1.0)

    def limit(self, clip: ArrayLike) -> Array:
        """The largest size of a standardised entry: min(clip, sqrt(count))."""
        return jnp.minimum(as_like(clip, self.var), jnp.sqrt(self.count.astype(self.var.dtype)))

    def gap(self, x: Array) -> Array:
        """How far entries are from the mean (D,)."""
        return (x - self.mean) - self.rest

    def observe(self, x: Array, seen: ArrayLike = True) -> RunningMoments:
        """Take in one row.

        Arguments:
            x: the entries (D,), of at most the size `farthest`.
            seen: which of them count (D,); the moments of the others stay.
        """
        seen = jnp.broadcast_to(jnp.asarray(seen), self.count.shape)
        count = jnp.minimum(self.count, MOST - 1) + 1
        share = 1.0 / count.astype(self.var.dtype)
        gap = jnp.where(seen, self.gap(x), 0.0)
        step = self.rest + share * gap
        mean = self.mean + step
        # What the rounded sum leaves out (Knuth's two-sum).
        back = mean - self.mean
        rest = (self.mean - (mean - back)) + (step - back)
        var = (1.0 - share) * (self.var + share * gap**2)
        fresh = RunningMoments(count, mean, rest, var)
        pairs = ((getattr(fresh, name), getattr(self, name)) for name in ("count", "mean", "rest", "var"))
        return RunningMoments(*(jnp.where(seen, new, old) for new, old in pairs))
