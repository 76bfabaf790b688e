"""A log prepared for the evaluation of a policy: weights, a direct model, and the terms of the estimators.

Weights of the rows of an adaptive log, by which rows that are expected to be noisy count for less.

Given the past, the doubly robust term u_t of a row has the value as its mean, and a variance that grows with

    v_t = sum_k pi(k | x_t)^2 / p_t(k)

An agent that learns lets the p of some arms fall, so that late rows may be far noisier than early ones. With
weights h_t that depend on rows before t alone,

    value = sum(h_t u_t) / sum(h_t),        h_t = (mean of v_s over s < t)^(-1/2)

is still consistent, and the weighted terms have nearly one variance, so that their sum is nearly normal: the
weights that stabilise the variance (Hadad, Hirshberg, Zhan, Wager & Athey, 2021, PNAS; Zhan, Hadad, Hirshberg
& Athey, 2021, KDD, for contexts). Rows of different times count differently, so the value must not change.

The variance of rare weights, which a log knows although it has hardly seen them.

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

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from credo.bandits.evaluation.estimator_kinds import EstimatorKind, cut_weights
from credo.bandits.evaluation.regression import arm_values
from credo.bandits.evaluation.shrinkage import tuned_bound
from credo.bandits.evaluation.target_policies import Target, target_pmfs
from credo.bandits.logs import Log
from credo.core.errors import CredoError, DataError
from credo.core.types import ArrayLike, PyTree

__all__ = [
    "EXPECTED",
    "FEW",
    "PRIOR",
    "DirectModel",
    "Terms",
    "WeighedRows",
    "bound_of",
    "design_factor",
    "design_of",
    "reach_beyond",
    "reward_values",
    "row_weights",
    "term_width",
    "terms_of",
    "unseen_corners",
    "weigh_rows",
]


EXPECTED = 20.0
"""The number of rows with the greatest weights that are replaced by their expectation."""

PRIOR = 2.0
"""The number of rows of all arms that are added to those of an arm."""


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
    mean = terms.mean()
    spread = float(((terms - terms.mean()) ** 2).sum())
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
    flat = all_weights.reshape(-1)
    chances = pmfs.reshape(-1)
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


# What `reach_beyond` gives if many rows carry the variance, and what it divides by their number if few.
BEYOND = 2.0
FEW = 10.0


@dataclass(frozen=True)
class Terms:
    """The terms of an estimator from the rows of a log: V(x), g (r - q) and g, (N,) each.

    `normalises` says that D is the sum of g, and not N. `shares` (N,) are weights h of the rows, of mean 1;
    None is 1 for all.
    """

    direct: np.ndarray
    correction: np.ndarray
    weights: np.ndarray
    normalises: bool
    shares: np.ndarray | None = None

    @property
    def sums(self) -> np.ndarray:
        """The columns (N, 4) whose sums give the value: h, h V, h g (r - q) and h g."""
        columns = [np.ones_like(self.direct), self.direct, self.correction, self.weights]
        table = np.stack(columns, axis=1)
        return table if self.shares is None else table * self.shares[:, None]

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """The value from sums (..., 4) of these columns; NaN if no weight is above 0."""
        count, direct, correction, weights = np.moveaxis(sums, -1, 0)
        below = weights if self.normalises else count
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(direct / count + correction / below)

    @property
    def value(self) -> float:
        """The estimate."""
        return float(self.value_of(self.sums.sum(axis=0)))

    @property
    def influence(self) -> np.ndarray:
        """The contribution of each row, (N,), with the value as the mean; linearised if the weights are
        divided by their sum."""
        if self.normalises:
            mean = self.weights.mean()
            ratio = self.correction.mean() / mean
            return np.asarray(self.direct + ratio + (self.correction - ratio * self.weights) / mean)
        terms = self.direct + self.correction
        if self.shares is None:
            return np.asarray(terms)
        return np.asarray(self.value + self.shares * (terms - self.value))


DirectModel: TypeAlias = Callable[[PyTree], ArrayLike] | ArrayLike
"""Expected rewards of all arms: a function of contexts that gives (N, K), or these numbers."""


@dataclass(frozen=True)
class WeighedRows:
    """The n rows of a log that have rewards, and what a policy would do there.

    `target` (n, K) are the policy's probabilities, `weights` (n,) are pi(a | x) / p of the chosen arms, and
    `all_weights` (n, K) of all arms: infinite where the log never chooses an arm that the policy chooses, and
    None if the log does not say. `mask` (N,) says which rows of the whole log these are.
    """

    log: Log
    target: np.ndarray
    weights: np.ndarray
    all_weights: np.ndarray | None
    mask: np.ndarray

    def take(self, rows: slice) -> WeighedRows:
        """Some of the rows."""
        every = None if self.all_weights is None else self.all_weights[rows]
        mask = np.zeros_like(self.mask)
        mask[np.flatnonzero(self.mask)[rows]] = True
        return WeighedRows(self.log.take(rows), self.target[rows], self.weights[rows], every, mask)


def weigh_rows(log: Log, policy: Target) -> WeighedRows:
    """Weigh the rows of a log that have rewards.

    A `DataError` says where fewer than two have one, or where the policy has no probabilities for a row.
    """
    mask = np.isfinite(log.rewards)
    if mask.sum() < 2:
        raise DataError(
            f"the log must have two or more rows with rewards; it has {mask.sum()} among {log.rows:,} "
            "decisions: are the rewards in another file, or under other ids?",
            field="rewards",
        )
    target = target_pmfs(log, policy)[mask]
    log = log if mask.all() else log.take(mask)
    weights = target[np.arange(log.rows), log.chosen] / log.propensities
    every = None
    if log.pmfs is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            every = np.where(target > 0, target / log.pmfs, 0.0)
    return WeighedRows(log, target, weights, every, mask)


def reward_values(weighed: WeighedRows, model: DirectModel | None, *, before: bool, seed: int) -> np.ndarray:
    """The expected rewards (n, K) of a direct model; see `arm_values` for the one without a `model`.

    A `CredoError` refuses another shape, and numbers that are not finite.
    """
    if model is None:
        return arm_values(weighed.log, before=before, seed=seed)
    values = np.asarray(model(weighed.log.contexts) if callable(model) else model, dtype=np.float64)
    shape = weighed.target.shape
    if not callable(model) and values.shape == (weighed.mask.size, shape[1]):
        values = values[weighed.mask]
    if values.shape != shape or not np.isfinite(values).all():
        what = f"the shape {values.shape}" if values.shape != shape else "numbers that are not finite"
        raise CredoError(
            f"model must give finite expected rewards of the shape {shape}, for the rows and arms; "
            f"got {what}.",
            field="model",
        )
    return values


def errors_of(weighed: WeighedRows, values: np.ndarray | None) -> np.ndarray:
    """r - q of the chosen arms (n,)."""
    rewards = weighed.log.rewards
    return rewards if values is None else rewards - values[np.arange(rewards.size), weighed.log.chosen]


def bound_of(
    weighed: WeighedRows, kind: EstimatorKind, values: np.ndarray | None, clip: float | None
) -> float | None:
    """The bound of the weights: as given, or as the estimator chooses it; None if it cuts none."""
    if clip is not None or kind.cuts is None:
        return clip
    if kind.tunes is None or values is None:
        return math.sqrt(weighed.log.rows)
    direct = (weighed.target * values).sum(axis=1)
    found = tuned_bound(direct, weighed.weights, errors_of(weighed, values), kind.cuts, kind.tunes)
    if math.isinf(found):
        return None
    return found


def terms_of(
    weighed: WeighedRows, kind: EstimatorKind, values: np.ndarray | None, clip: float | None
) -> Terms:
    """The terms of an estimator."""
    log = weighed.log
    cut = cut_weights(weighed.weights, kind, clip)
    errors = errors_of(weighed, values)
    direct = np.zeros(log.rows) if values is None else (weighed.target * values).sum(axis=1)
    shares = None
    if kind.adapts:
        assert log.pmfs is not None
        shares = row_weights(weighed.target, log.pmfs)
    return Terms(direct, cut * errors, cut, kind.normalises, shares)


def design_of(
    weighed: WeighedRows, kind: EstimatorKind, values: np.ndarray | None, clip: float | None
) -> float:
    """The factor of `design_factor`; 1 if the log does not know it, or no reward is weighed."""
    every = weighed.all_weights
    pmfs = weighed.log.pmfs
    if every is None or pmfs is None or not kind.weighs:
        return 1.0
    known = np.where(pmfs > 0.0, every, 0.0)
    direct = np.zeros(weighed.log.rows) if values is None else (weighed.target * values).sum(axis=1)
    cut = cut_weights(known, kind, clip)
    errors = errors_of(weighed, values)
    return design_factor(pmfs, known, cut, weighed.log.chosen, direct, errors)


def term_width(
    weighed: WeighedRows,
    kind: EstimatorKind,
    values: np.ndarray | None,
    clip: float | None,
    rewards: tuple[float, float],
) -> float:
    """The width of an interval that holds every term that the rows could have given.

    That is for all arms that the log could have chosen, and rewards in their range; only for the chosen arms
    where the log has no probabilities of the others.
    """
    rows = np.arange(weighed.log.rows)
    chosen = weighed.log.chosen
    every = weighed.all_weights
    weights = weighed.weights[:, None] if every is None else np.where(np.isfinite(every), every, 0.0)
    cut = cut_weights(weights, kind, clip)
    if values is None:
        direct = np.zeros((len(rows), 1))
        baseline = np.zeros_like(cut)
    else:
        direct = (weighed.target * values).sum(axis=1, keepdims=True)
        baseline = values[rows, chosen][:, None] if every is None else values
    least = direct + cut * (rewards[0] - baseline)
    greatest = direct + cut * (rewards[1] - baseline)
    return float(greatest.max() - least.min())


def unseen_corners(
    weighed: WeighedRows,
    kind: EstimatorKind,
    values: np.ndarray | None,
    clip: float | None,
    rewards: tuple[float, float] | None,
) -> np.ndarray:
    """The extremes (4, 2) of weight and term that a row could have: with no weight, and with the largest.

    The largest weight is that of any arm in the rows, and 2 or more. There the error of the direct model is
    one of those seen, or, where the range of the rewards is stated, one that they allow. But these two are at
    most `reach_beyond` times as far from the estimate as the farthest term on their side, if the terms have
    any spread; or on either side, where few rows carry it.
    """
    log = weighed.log
    every = weighed.all_weights
    terms = terms_of(weighed, kind, values, clip)
    direct = terms.direct
    seen = terms.direct + terms.correction
    guesses = np.zeros(1) if values is None else values[np.arange(log.rows), log.chosen]
    if rewards is None:
        known = (log.rewards - guesses)[weighed.weights > 0] if kind.weighs else np.zeros(1)
        errors = float(known.min()), float(known.max())
    else:
        errors = float(rewards[0] - guesses.max()), float(rewards[1] - guesses.min())
    weights = weighed.weights if every is None else every[np.isfinite(every)]
    top = max(2.0, float(weights.max()))
    cut = float(cut_weights(np.array(top), kind, clip))
    low = float(direct.min())
    high = float(direct.max())
    corners = np.array([[0.0, low], [0.0, high], [top, low + cut * errors[0]], [top, high + cut * errors[1]]])
    if np.ptp(seen) > 0.0:
        mean = float(seen.mean())
        beyond = reach_beyond(seen)
        sides = seen.argmin(), seen.argmax()
        if beyond > BEYOND:  # so few rows carry the variance that chance alone may have put all on one side
            sides = (np.abs(seen - mean).argmax(),) * 2
        for corner, row in zip(corners[2:], sides, strict=True):
            farthest = beyond * abs(float(seen[row]) - mean)
            if abs(corner[1] - mean) > farthest:
                corner[1] = mean + np.sign(corner[1] - mean) * farthest
                corner[0] = min(top, max(2.0, beyond * float(weighed.weights[row])))
    return corners


def reach_beyond(terms: np.ndarray) -> float:
    """The largest distance of an unseen term from the mean, relative to the farthest of some terms (N,).

    It is 2, or more if few rows carry the variance: 10 over their effective number, (sum d^2)^2 / sum d^4.
    """
    squares = (terms - terms.mean()) ** 2
    spread = float((squares**2).sum())
    if spread > 0.0:
        return max(BEYOND, FEW / (float(squares.sum()) ** 2 / spread))
    return BEYOND
