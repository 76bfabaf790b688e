"""The default direct model: cross-fitted ridge regressions of the reward, one for each arm.

All arms together give a pooled regression b, and each arm corrects it where its own rows say so:

    b   = (X'X + l R)^-1 X'y                 over the rows of all arms
    b_k = b + (X_k'X_k + m R)^-1 (X_k'y_k - X_k'X_k b)

The columns of X are 1 and d features, standardised on the rows that are fitted; y is the reward less its
mean; and R = diag(1, d, ..., d). So b_k is the posterior mean of a linear model of noise variance v with the
prior N(b, v R^-1 / m). With m = 1 the features explain, a priori, as much as the noise; l and m are those of
`_RATES` with the greatest log evidence on the rows that are fitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from credo.bandits.logs import Log
from credo.bandits.logs.contexts import features_of

__all__ = ["FOLDS", "arm_values"]

FOLDS = 5
"""The number of parts of the rows, which are left out in turn."""

_BLOCKS = 20
_RATES = np.array([0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0])


class _Sums(NamedTuple):
    """Sums over rows, by arm: of x x' (K, d, d), x y (K, d), and y and y^2 (K, 2); x begins with a 1."""

    xx: np.ndarray
    xy: np.ndarray
    y: np.ndarray

    def less(self, other: _Sums) -> _Sums:
        return _Sums(self.xx - other.xx, self.xy - other.xy, self.y - other.y)

    def plus(self, other: _Sums) -> _Sums:
        return _Sums(self.xx + other.xx, self.xy + other.xy, self.y + other.y)


def arm_values(log: Log, *, before: bool = False, seed: int = 0) -> np.ndarray:
    """The expected reward of every arm in every row, from a regression that has not seen the row.

    Cost: O(N d^2 + F K d^3) for d features and F parts.

    Arguments:
        log: N rows among K arms, all with rewards.
        before: whether each part is fitted on the rows before it (20 parts), in place of all others (5 parts
            at random): then a prediction depends on the past alone.
        seed: the seed of the parts.

    Returns:
        The predictions (N, K), within the range of the rewards that they are fitted to.

    Example:
        >>> rows = np.arange(40)
        >>> log = Log(("a", "b"), rows % 2, (rows % 2).astype(float), np.full(40, 0.5))
        >>> arm_values(log).round(1)[0].tolist()
        [0.0, 1.0]
    """
    shared, own = features_of(log.contexts, log.rows, len(log.arms))
    centre = shared.mean(axis=0), None if own is None else own.mean(axis=(0, 1))
    shared = np.concatenate([np.ones((log.rows, 1)), shared - centre[0]], axis=1)
    own = None if own is None else own - centre[1]
    values = np.zeros((log.rows, len(log.arms)))
    rewards = log.rewards
    if before:
        past = _sums(log, shared, own, np.arange(0))
        for part in np.array_split(np.arange(log.rows), _BLOCKS):
            if part.size and part[0]:
                values[part] = _within(_predict(past, shared, own, part), rewards[: part[0]])
            past = past.plus(_sums(log, shared, own, part))
        return values
    order = np.random.default_rng(seed).permutation(log.rows)
    total = _sums(log, shared, own, order)
    for part in np.array_split(order, min(FOLDS, log.rows)):
        fitted = total.less(_sums(log, shared, own, part))
        values[part] = _within(_predict(fitted, shared, own, part), np.delete(rewards, part))
    return values


def _within(values: np.ndarray, rewards: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(values, rewards.min(), rewards.max()))


def _of_arm(shared: np.ndarray, own: np.ndarray | None, rows: np.ndarray, arm: int) -> np.ndarray:
    return shared[rows] if own is None else np.concatenate([shared[rows], own[rows, arm]], axis=1)


def _sums(log: Log, shared: np.ndarray, own: np.ndarray | None, rows: np.ndarray) -> _Sums:
    def each() -> Iterator[tuple[np.ndarray, np.ndarray, tuple[float, float]]]:
        for arm in range(len(log.arms)):
            here = rows[log.chosen[rows] == arm]
            x = _of_arm(shared, own, here, arm)
            y = log.rewards[here]
            yield x.T @ x, x.T @ y, (float(y.sum()), float(y @ y))

    xx, xy, y = zip(*each(), strict=True)
    return _Sums(np.stack(xx), np.stack(xy), np.array(y))


def _predict(sums: _Sums, shared: np.ndarray, own: np.ndarray | None, rows: np.ndarray) -> np.ndarray:
    """The predictions for some rows (n, K)."""
    arms = len(sums.xy)
    count = sums.xx[:, 0, 0].sum()
    if count < 1:
        return np.zeros((rows.size, arms))
    total, squares = sums.y.sum(axis=0)
    mean = total / count
    noise = max(squares / count - mean**2, 1e-12 * squares / count, 1e-300)
    scale = _scaling(sums.xx.sum(axis=0))
    xx = scale @ sums.xx @ scale.T
    xy = (sums.xy - mean * sums.xx[:, :, 0]) @ scale.T
    pooled = _ridge(xx.sum(axis=0, keepdims=True), xy.sum(axis=0, keepdims=True), noise)[0]
    weights = pooled + _ridge(xx, xy - xx @ pooled, noise)
    back = weights @ scale
    if own is None:
        return np.asarray(mean + shared[rows] @ back.T)
    return np.stack([mean + _of_arm(shared, own, rows, arm) @ back[arm] for arm in range(arms)], axis=1)


def _ridge(xx: np.ndarray, xy: np.ndarray, noise: float) -> np.ndarray:
    """The ridge regressions (K, d) at the rate of greatest evidence, from sums by arm.

    With R^-1/2 X'X R^-1/2 = U diag(e) U' and c = U' R^-1/2 X'y, the log evidence of the rate m is

        sum c^2 / (2 v (e + m)) - sum log(1 + e / m) / 2 + const.
    """
    width = xy.shape[1]
    root = np.r_[1.0, np.full(width - 1, max(width - 1.0, 1.0) ** -0.5)]
    values, vectors = np.linalg.eigh(xx * root * root[:, None])
    values = np.maximum(values, 0.0)[:, :, None]
    turned = np.einsum("kij,ki->kj", vectors, xy * root)[:, :, None]
    fit = turned**2 / (2.0 * noise * (values + _RATES)) - 0.5 * np.log1p(values / _RATES)
    rate = _RATES[np.argmax(fit.sum(axis=(0, 1)))]
    return np.asarray(np.einsum("kij,kj->ki", vectors, (turned / (values + rate))[:, :, 0]) * root)


def _scaling(xx: np.ndarray) -> np.ndarray:
    """The matrix (d, d) that standardises a row x = (1, features), from the sum of x x'."""
    mean = xx[0] / xx[0, 0]
    var = np.diagonal(xx) / xx[0, 0] - mean**2
    var[0] = 1.0
    spread = var > 1e-12 * (1.0 + mean**2)
    rate = np.where(spread, 1.0 / np.sqrt(np.where(spread, var, 1.0)), 0.0)
    scale = np.diag(rate)
    scale[1:, 0] = -rate[1:] * mean[1:]
    return scale
