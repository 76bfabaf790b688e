"""Intervals of fixed numbers of rows: empirical Bernstein, and the bootstrap."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from credo.bandits.evaluation.terms import Terms

__all__ = ["bernstein_interval", "bootstrap_interval"]

_GROUPS = 10_000
_DRAWS = 1000
_AT_ONCE = 20


def bernstein_interval(terms: np.ndarray, width: float, level: float) -> tuple[float, float]:
    """The empirical Bernstein interval (Maurer & Pontil, 2009, theorem 4), on both sides.

    For n >= 2 independent terms of sample variance V within an interval of width b, the mean is within

        sqrt(2 V log(4 / delta) / n) + 7 b log(4 / delta) / (3 (n - 1))

    of theirs with probability 1 - delta (`level`) or more, whatever their distribution.
    """
    count, nats = terms.size, math.log(4.0 / (1.0 - level))
    mean, var = float(terms.mean()), float(terms.var(ddof=1))
    reach = math.sqrt(2.0 * var * nats / count) + 7.0 * width * nats / (3.0 * (count - 1))
    return mean - reach, mean + reach


def bootstrap_interval(terms: Terms, level: float, seed: int) -> tuple[float, float]:
    """The bootstrap interval, corrected for bias and skewness (BCa; Efron, 1987).

    It covers at the nominal rate as the number of rows grows, and too rarely where few rows carry the weight.
    More than 10,000 rows are drawn in 10,000 groups of random rows, which changes the interval by less than
    its own Monte Carlo error. 1,000 draws.
    """
    value, rng = terms.value, np.random.default_rng(seed)
    groups = _grouped(terms.sums, rng)
    size = len(groups)
    shift = size * np.arange(_AT_ONCE, dtype=np.int64)[:, None]
    draws = np.empty((_DRAWS // _AT_ONCE, _AT_ONCE))
    for several in draws:
        places = rng.integers(0, size, (_AT_ONCE, size)) + shift
        counts = np.bincount(places.reshape(-1), minlength=_AT_ONCE * size).reshape(_AT_ONCE, size)
        several[:] = terms.value_of(counts @ groups)
    draws = np.sort(draws[np.isfinite(draws)])
    if not draws.size or draws[0] == draws[-1]:
        return value, value
    normal = NormalDist()
    below = ((draws < value).sum() + 0.5 * (draws == value).sum()) / draws.size
    bias = normal.inv_cdf(float(np.clip(below, 1e-3, 1 - 1e-3)))
    spread = terms.influence - value
    skew = float((spread**3).sum() / (6.0 * max((spread**2).sum(), 1e-300) ** 1.5))

    def end(share: float) -> float:
        z = bias + normal.inv_cdf(share)
        at = normal.cdf(bias + z / (1.0 - skew * z)) if skew * z < 1.0 else float(z > 0)
        return float(np.quantile(draws, at))

    return end((1.0 - level) / 2.0), end((1.0 + level) / 2.0)


def _grouped(sums: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if len(sums) <= _GROUPS:
        return sums
    order = rng.permutation(len(sums))
    starts = np.linspace(0, len(sums), _GROUPS, endpoint=False).astype(int)
    return np.asarray(np.add.reduceat(sums[order], starts, axis=0))
