"""The interval of empirical likelihood, which knows that weights have the mean 1."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import cast

import numpy as np
from scipy.optimize import brentq

__all__ = ["likelihood_interval"]

_UNSEEN = 1e-3
"""How many rows a corner counts as: none, but for a barrier that keeps the search inside."""

_STEPS, _ENOUGH = 200, 1e-12


def likelihood_interval(
    terms: np.ndarray, weights: np.ndarray | None, corners: np.ndarray, level: float
) -> tuple[float, float]:
    """The values whose empirical likelihood ratio is at least exp(-z^2 / 2), z the two-sided normal quantile.

    Source: Karampatziakis, Langford & Mineiro 2020, ICML ("Empirical likelihood for contextual bandits"). The
    rows have the terms u (N,), whose mean is the value, and the weights w = pi / p (N,) before they are cut,
    or None. Distributions q of (w, u) compete, of which E_q[w] = 1 is known. They may give probability to
    `corners` (M, 2) of (w, u) that were not seen, such as a rare and large weight. The least value is

        min E_q[u]  such that  E_q[w] = 1,  sum_n log q_n >= max_q sum_n log q_n - z^2 / 2

    and its dual is concave in two numbers: N C exp(mean log d_n) - beta - gamma with d = u + beta w + gamma.

    The rate is nominal for many rows, as a bootstrap's is, and far nearer to it where few rows carry the
    weight. Cost: O(N) for each of some 20 Newton steps.
    """
    every = np.concatenate([terms, corners[:, 1]])
    least, width = float(every.min()), float(np.ptp(every))
    if width == 0.0:
        return least, least
    counts = np.concatenate([np.ones(terms.size), np.full(len(corners), _UNSEEN)])
    known, mean = np.ones((every.size, 1)), np.ones(1)
    if weights is not None:
        top = max(float(corners[:, 0].max()), float(weights.max()))
        known = np.stack([np.concatenate([weights, corners[:, 0]]) / top, known[:, 0]], axis=1)
        mean = np.array([1.0 / top, 1.0])
    drop = 0.5 * NormalDist().inv_cdf((1.0 + level) / 2.0) ** 2
    nats = drop + (0.0 if weights is None else _cost_of_mean(known[:, 0] - mean[0], counts))
    shares = (every - least) / width
    low = _least_mean(shares, known, mean, counts, nats)
    high = 1.0 - _least_mean(1.0 - shares, known, mean, counts, nats)
    return float(least + width * low), float(least + width * high)


def _cost_of_mean(gaps: np.ndarray, counts: np.ndarray) -> float:
    """What the log likelihood loses at best where the mean of these numbers must be 0."""
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
        gain, rate = -float(gradient @ step), 1.0
        new, new_prices = loss(at + step)
        while rate > _ENOUGH and new > value - 1e-4 * rate * gain:
            rate *= 0.5
            new, new_prices = loss(at + rate * step)
        if gain < _ENOUGH or rate <= _ENOUGH:
            break
        at, value, prices = at + rate * step, new, new_prices
    return -value
