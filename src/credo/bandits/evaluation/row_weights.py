"""Weights of the rows of an adaptive log, by which rows that are expected to be noisy count for less.

Given the past, the doubly robust term u_t of a row has the value as its mean, and a variance that grows with

    v_t = sum_k pi(k | x_t)^2 / p_t(k)

An agent that learns lets the p of some arms fall, so that late rows may be far noisier than early ones. With
weights h_t that depend on rows before t alone,

    value = sum(h_t u_t) / sum(h_t),        h_t = (mean of v_s over s < t)^(-1/2)

is still consistent, and the weighted terms have nearly one variance, so that their sum is nearly normal: the
weights that stabilise the variance (Hadad, Hirshberg, Zhan, Wager & Athey, 2021, PNAS; Zhan, Hadad, Hirshberg
& Athey, 2021, KDD, for contexts). Rows of different times count differently, so the value must not change.
"""

from __future__ import annotations

import numpy as np

__all__ = ["row_weights"]


def row_weights(target: np.ndarray, pmfs: np.ndarray) -> np.ndarray:
    """h (n,), with the mean 1, from pi and the p of all arms (n, K), where p > 0 wherever pi > 0.

    If a mean has no row yet, it is 1, which v never goes below.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(target > 0.0, target**2 / pmfs, 0.0)
    before = np.concatenate([[1.0], 1.0 + np.cumsum(ratios.sum(axis=1))[:-1]])
    mean = before / np.arange(1, len(target) + 1)
    weights = 1.0 / np.sqrt(mean)
    return np.asarray(weights / weights.mean())
