"""Intervals of fixed numbers of rows: empirical Bernstein, the bootstrap, and empirical likelihood.

The last one knows that weights have the mean 1.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import cast

import numpy as np
from scipy.optimize import brentq
from scipy.special import stdtrit

from credo.bandits.evaluation.weighed_rows import FEW, Terms

__all__ = [
    "bernstein_interval",
    "bootstrap_interval",
    "few_rows_factor",
    "likelihood_interval",
    "memory_factor",
]

_GROUPS = 10_000
_DRAWS = 1000
_AT_ONCE = 20


def bernstein_interval(terms: np.ndarray, width: float, level: float) -> tuple[float, float]:
    """The empirical Bernstein interval (Maurer & Pontil, 2009, theorem 4), on both sides.

    For n >= 2 independent terms of sample variance V within an interval of width b, the mean is within

        sqrt(2 V log(4 / delta) / n) + 7 b log(4 / delta) / (3 (n - 1))

    of theirs with probability 1 - delta (`level`) or more, whatever their distribution.
    """
    count = terms.size
    nats = math.log(4.0 / (1.0 - level))
    mean = float(terms.mean())
    var = float(terms.var(ddof=1))
    reach = math.sqrt(2.0 * var * nats / count) + 7.0 * width * nats / (3.0 * (count - 1))
    return mean - reach, mean + reach


def bootstrap_interval(terms: Terms, level: float, seed: int) -> tuple[float, float]:
    """The bootstrap interval, corrected for bias and skewness (BCa; Efron, 1987).

    It covers at the nominal rate as the number of rows grows, and too rarely where few rows carry the weight.
    More than 10,000 rows are drawn in 10,000 groups of random rows, which changes the interval by less than
    its own Monte Carlo error. 1,000 draws.
    """
    value = terms.value
    rng = np.random.default_rng(seed)
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


# By how many standard errors a correlation must be above 0 to be taken for one, and the largest of all.
_CERTAIN = 3.0
_MOST = 0.97


def memory_factor(direct: np.ndarray, terms: np.ndarray) -> float:
    """By which factor contexts with a memory make the variance of the mean of terms (N,) greater.

    Given its context, the error w (r - q) of a row has a mean that does not depend on rows before. So what
    rows share with those after them is in V(x) (N,), `direct`, whose covariances c_l at the lags l give

        1 + 2 sum_(l <= L) (1 - l / (L + 1)) c_l / var(terms),      L = 1.1447 (a N)^(1/3)

    with a = 4 s^2 / (1 - s^2)^2 for the correlation s at the lag 1 (Newey & West, 1987; Andrews, 1991); if s
    is above 3 / sqrt(N), and 1 otherwise.
    """
    rows = direct.size
    spread = float(terms.var())
    gaps = direct - direct.mean()
    own = float(gaps @ gaps)
    share = float(gaps[1:] @ gaps[:-1]) / own if own > 0.0 else 0.0
    if spread == 0.0 or share <= _CERTAIN / math.sqrt(rows):
        return 1.0
    share = min(share, _MOST)
    lags = math.ceil(1.1447 * (4.0 * share**2 / (1.0 - share**2) ** 2 * rows) ** (1.0 / 3.0))
    lags = min(lags, rows - 1)
    shared = sum((1.0 - lag / (lags + 1.0)) * float(gaps[lag:] @ gaps[:-lag]) for lag in range(1, lags + 1))
    return float(max(1.0 + 2.0 * shared / (rows * spread), 1.0))


def few_rows_factor(rows: float, level: float) -> float:
    """By which factor z^2 grows if few rows carry the weight, from which their variance is estimated.

    With `rows` effective rows, (sum w)^2 / sum w^2, the quantile is that of Student's t with rows - 1 degrees
    of freedom, as for a mean of so many normal numbers (the calibration by F of Owen, 2001, "Empirical
    Likelihood"). It has nine degrees at least: for fewer rows, `reach_beyond` says how far a term may lie
    that was not seen.
    """
    half = (1.0 + level) / 2.0
    student = float(stdtrit(max(rows, FEW) - 1.0, half))
    return (student / NormalDist().inv_cdf(half)) ** 2


_UNSEEN = 1e-3
"""The weight of a corner, in rows: none, but for a barrier that keeps the search inside."""

_STEPS = 200
_ENOUGH = 1e-12


def likelihood_interval(
    terms: np.ndarray, weights: np.ndarray | None, corners: np.ndarray, level: float, inflation: float = 1.0
) -> tuple[float, float]:
    """The values whose empirical likelihood ratio is at least exp(-z^2 / 2), z the two-sided normal quantile.

    Source: Karampatziakis, Langford & Mineiro 2020, ICML ("Empirical likelihood for contextual bandits"). The
    rows have the terms u (N,), whose mean is the value, and the weights w = pi / p (N,) before they are cut,
    or None. Distributions q of (w, u) compete, of which E_q[w] = 1 is known. They may give probability to
    `corners` (M, 2) of (w, u) that were not seen, such as a rare and large weight. The least value is

        min E_q[u]  such that  E_q[w] = 1,  sum_n log q_n >= max_q sum_n log q_n - z^2 / 2

    and its dual is concave in two numbers: N C exp(mean log d_n) - beta - gamma with d = u + beta w + gamma.
    `inflation` multiplies z^2, for rows that are not independent.

    The rate is nominal for many rows, as a bootstrap's is, and far nearer to it where few rows carry the
    weight. Cost: O(N) for each of some 20 Newton steps.
    """
    every = np.concatenate([terms, corners[:, 1]])
    least = float(every.min())
    width = float(np.ptp(every))
    if width == 0.0:
        return least, least
    counts = np.concatenate([np.ones(terms.size), np.full(len(corners), _UNSEEN)])
    known = np.ones((every.size, 1))
    mean = np.ones(1)
    if weights is not None:
        top = max(float(corners[:, 0].max()), float(weights.max()))
        known = np.stack([np.concatenate([weights, corners[:, 0]]) / top, known[:, 0]], axis=1)
        mean = np.array([1.0 / top, 1.0])
    drop = 0.5 * inflation * NormalDist().inv_cdf((1.0 + level) / 2.0) ** 2
    nats = drop + (0.0 if weights is None else _cost_of_mean(known[:, 0] - mean[0], counts))
    shares = (every - least) / width
    low = _least_mean(shares, known, mean, counts, nats)
    high = 1.0 - _least_mean(1.0 - shares, known, mean, counts, nats)
    return float(least + width * low), float(least + width * high)


def _cost_of_mean(gaps: np.ndarray, counts: np.ndarray) -> float:
    """The least loss of the log likelihood if the mean of these numbers must be 0."""
    if not np.any(gaps):
        return 0.0
    ends = -1.0 / gaps.max() * (1.0 - 1e-12), -1.0 / gaps.min() * (1.0 - 1e-12)
    root = brentq(lambda tilt: float((counts * gaps / (1.0 + tilt * gaps)).sum()), ends[0], ends[1])
    tilt = float(cast("float", root))
    return float((counts * np.log1p(tilt * gaps)).sum())


def _least_mean(
    shares: np.ndarray, known: np.ndarray, mean: np.ndarray, counts: np.ndarray, nats: float
) -> float:
    """The least mean of numbers in 0 to 1 within some nats, where `known` has this mean: Newton on the dual.

    The dual function is self-concordant up to its concave outer function, so damped steps that stay inside
    reach the maximum from any start.
    """
    rows = counts.sum()
    factor = rows * math.exp(-nats / rows) / rows

    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        prices = shares + known @ at
        if prices.min() <= 0.0:
            return math.inf, prices
        return float(mean @ at) - factor * math.exp(float(counts @ np.log(prices)) / rows), prices

    at = np.zeros(mean.size)
    at[-1] = 1.0
    value, prices = loss(at)
    for _ in range(_STEPS):
        height = float(mean @ at) - value
        if height < _ENOUGH:  # so few rows that any mean is within reach
            break
        scaled = known / prices[:, None]
        slope = counts @ scaled / rows
        gradient = mean - height * slope
        curvature = height * ((scaled * counts[:, None]).T @ scaled / rows - np.outer(slope, slope))
        curvature += 1e-12 * np.trace(curvature) * np.eye(mean.size)
        step = -np.linalg.solve(curvature, gradient)
        gain = -float(gradient @ step)
        rate = 1.0
        new, new_prices = loss(at + step)
        while rate > _ENOUGH and new > value - 1e-4 * rate * gain:
            rate *= 0.5
            new, new_prices = loss(at + rate * step)
        if gain < _ENOUGH or rate <= _ENOUGH:
            break
        at = at + rate * step
        value = new
        prices = new_prices
    return -value
