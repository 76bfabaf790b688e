"""Weights that are cut or shrunk, and how far the log itself says that they should be.

A weight w becomes g <= w, by a bound c, which trades the variance of great weights for a bias:

    clip       g = min(w, c)                    the pessimistic shrinkage of Su et al., 2020a
    shrink     g = c^2 w / (w^2 + c^2)          the optimistic one, at most c / 2
    drop       g = w [w <= c]                   switch (Wang et al., 2017)

Two rules choose c among 30 bounds on a logarithmic scale, and none. With u = V + g (r - q), the terms of the
rows, and the error that g makes in them, b = (g - w) (r - q),

    mse        the least  var(u) / N + mean(b)^2
    slope      the least c whose interval mean(u) +- sd(u) / (2 sqrt(N)) meets those of all greater c at once

The first one is the estimated mean squared error (Su, Dimakopoulou, Krishnamurthy & Dudik, 2020a, ICML,
"Doubly robust off-policy evaluation with shrinkage"); the second one is SLOPE (Su, Srinath & Krishnamurthy,
2020b, ICML, "Adaptive estimator selection for off-policy evaluation"), which needs no estimate of a bias. Its
theorem asks for wider intervals. But the estimates of one log have nearly the same errors, so that narrow
ones tell a bias from noise, and wide ones let too much of it pass.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

__all__ = ["BOUNDS", "Cut", "Rule", "candidate_bounds", "cut_by", "tuned_bound"]

Cut: TypeAlias = Literal["clip", "drop", "shrink"]
"""The treatment of weights above the bound."""

Rule: TypeAlias = Literal["mse", "slope"]
"""The rule by which the log chooses a bound."""

BOUNDS = 30
"""The number of bounds that are tried, beside none."""

_REACH = 0.5
"""The width of the intervals of SLOPE on each side, in standard errors."""


def cut_by(weights: np.ndarray, cut: Cut, bound: float) -> np.ndarray:
    """g as a function of w."""
    if np.isinf(bound):
        return weights
    if cut == "clip":
        return np.asarray(np.minimum(weights, bound))
    if cut == "drop":
        return np.asarray(np.where(weights <= bound, weights, 0.0))
    return np.asarray(weights / (1.0 + (weights / bound) ** 2))


def candidate_bounds(weights: np.ndarray) -> np.ndarray:
    """The bounds that are tried, from the least on; the last one is infinite.

    They reach from a tenth of the 5% quantile of the weights above 0 to ten times their 95% quantile.
    """
    low, high = np.quantile(weights[weights > 0], [0.05, 0.95])
    return np.append(np.geomspace(0.1 * low, 10.0 * high, BOUNDS), np.inf)


def tuned_bound(direct: np.ndarray, weights: np.ndarray, errors: np.ndarray, cut: Cut, rule: Rule) -> float:
    """The bound that a rule chooses, from V(x), w and r - q (N,)."""
    bounds = candidate_bounds(weights)
    shrunk = [cut_by(weights, cut, bound) for bound in bounds]
    terms = np.stack([direct + g * errors for g in shrunk])
    rows = weights.size
    mean = terms.mean(axis=1)
    var = terms.var(axis=1, ddof=1) / rows
    if rule == "mse":
        off = np.stack([(g - weights) * errors for g in shrunk])
        return float(bounds[np.argmin(var + off.mean(axis=1) ** 2)])
    reach = _REACH * np.sqrt(var)
    low = np.maximum.accumulate((mean - reach)[::-1])[::-1]
    high = np.minimum.accumulate((mean + reach)[::-1])[::-1]
    return float(bounds[np.argmax(low <= high)])
