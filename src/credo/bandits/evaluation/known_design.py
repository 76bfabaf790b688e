"""The variance of rare weights, which a log knows although it has hardly seen them.

A log with the probabilities p(k) of all arms knows how often each weight w(x, k) = pi(k | x) / p(k) was to be
expected, whether it came or not. So the rows of the greatest weights, of which fewer than `EXPECTED` were to
be expected, can be replaced by their expectation. With the terms u = V(x) + g (r - q), their mean m, and the
errors' first two moments e_1(k), e_2(k) of each arm,

    N var(u) ~ sum_(rows with w <= c) (u - m)^2
               + sum_(rows, arms with w(x, k) > c) p(k) (g^2 e_2(k) + 2 g e_1(k) (V(x) - m) + (V(x) - m)^2)

which is the sample's variance with the noise of the rare rows taken out. The moments are those of the rows of
an arm, weighted by w, and of `PRIOR` more rows that are like those of all arms.
"""

from __future__ import annotations

import numpy as np

__all__ = ["EXPECTED", "PRIOR", "design_factor"]

EXPECTED = 20.0
"""How many rows with the greatest weights are replaced by their expectation."""

PRIOR = 2.0
"""How many rows of all arms are added to those of an arm."""


def design_factor(
    pmfs: np.ndarray,
    all_weights: np.ndarray,
    all_cut: np.ndarray,
    chosen: np.ndarray,
    direct: np.ndarray,
    errors: np.ndarray,
) -> float:
    """By which factor the known probabilities make the variance of the terms greater, 1 or more.

    `pmfs`, the weights w and the weights g as they are used are (n, K), of which those of arms with p = 0 do
    not count; `chosen`, V(x) and r - q are (n,). Cost: O(n K log(n K)).
    """
    rows = np.arange(chosen.size)
    weights = all_weights[rows, chosen]
    terms = direct + all_cut[rows, chosen] * errors
    mean, spread = terms.mean(), float(((terms - terms.mean()) ** 2).sum())
    if spread == 0.0:
        return 1.0
    bound = _bound(all_weights, pmfs)
    first, second = _moments(weights, chosen, errors, pmfs.shape[1])
    gaps = (direct - mean)[:, None]
    rare = (all_weights > bound) & (pmfs > 0.0)
    cut = np.where(rare, all_cut, 0.0)
    expected = pmfs * (cut**2 * second + 2.0 * cut * first * gaps + gaps**2)
    seen = float(((terms - mean)[weights <= bound] ** 2).sum())
    return max((seen + float(expected[rare].sum())) / spread, 1.0)


def _bound(all_weights: np.ndarray, pmfs: np.ndarray) -> float:
    """The least weight above which `EXPECTED` rows or fewer are to be expected."""
    flat, chances = all_weights.reshape(-1), pmfs.reshape(-1)
    order = np.argsort(-flat, kind="stable")
    place = int(np.searchsorted(np.cumsum(chances[order]), EXPECTED, side="left"))
    return float(flat[order][min(place, flat.size - 1)])


def _moments(
    weights: np.ndarray, chosen: np.ndarray, errors: np.ndarray, arms: int
) -> tuple[np.ndarray, np.ndarray]:
    """The first two moments of the errors of each arm (K,)."""
    total = np.bincount(chosen, weights, arms)
    moments = []
    for powers in (errors, errors**2):
        pooled = float(weights @ powers) / float(weights.sum())
        moments.append((np.bincount(chosen, weights * powers, arms) + PRIOR * pooled) / (total + PRIOR))
    return moments[0], moments[1]
