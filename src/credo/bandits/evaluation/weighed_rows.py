"""What a log holds about a policy: weights, a direct model, and the estimators, which are one formula.

With the weight w = pi(a | x) / p of the chosen arm a, its reward r, a direct model q(x, k), and V(x) = sum_k
pi(k | x) q(x, k):

    value = mean(V(x)) + sum(g (r - q(x, a))) / D

The estimators differ in three choices:

    ips        g = w              q = 0        D = N
    snips      g = w              q = 0        D = sum(g)
    clipped    g = min(w, c)      q = 0        D = N
    direct     g = 0              q            D = N
    dr         g = w              q            D = N
    sn-dr      g = w              q            D = sum(g)
    switch     g = w [w <= c]     q            D = N
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from credo.bandits.evaluation.regression import arm_values
from credo.bandits.evaluation.target_policies import Target, target_pmfs
from credo.bandits.logs import Log
from credo.core.errors import CredoError, DataError
from credo.core.types import ArrayLike, PyTree

__all__ = [
    "ESTIMATORS",
    "KINDS",
    "DirectModel",
    "EstimatorKind",
    "EstimatorName",
    "Terms",
    "WeighedRows",
    "reward_values",
    "term_width",
    "terms_of",
    "unseen_corners",
    "weigh_rows",
]

EstimatorName: TypeAlias = Literal["ips", "snips", "clipped", "direct", "dr", "switch", "sn-dr"]
"""The estimators by their names in the literature."""

ESTIMATORS: tuple[EstimatorName, ...] = get_args(EstimatorName)
"""All estimators."""


class EstimatorKind(NamedTuple):
    """What an estimator uses: weights of the rewards, a direct model, a division by the sum of the weights.

    `cuts` is what becomes of weights above the bound without being asked.
    """

    weighs: bool
    models: bool
    normalises: bool
    cuts: Literal["clip", "drop"] | None


KINDS: dict[EstimatorName, EstimatorKind] = {
    "ips": EstimatorKind(True, False, False, None),
    "snips": EstimatorKind(True, False, True, None),
    "clipped": EstimatorKind(True, False, False, "clip"),
    "direct": EstimatorKind(False, True, False, None),
    "dr": EstimatorKind(True, True, False, None),
    "switch": EstimatorKind(True, True, False, "drop"),
    "sn-dr": EstimatorKind(True, True, True, None),
}
"""What each estimator uses."""


def cut_weights(weights: np.ndarray, kind: EstimatorKind, clip: float | None) -> np.ndarray:
    """g as a function of w: 0, w, min(w, c), or w where it is at most c."""
    if not kind.weighs:
        return np.zeros_like(weights)
    if clip is None:
        return weights
    return np.where(weights <= clip, weights, 0.0) if kind.cuts == "drop" else np.minimum(weights, clip)


@dataclass(frozen=True)
class Terms:
    """What the rows of a log give to an estimator: V(x), g (r - q) and g, (N,) each.

    `normalises` says that D is the sum of g, and not N.
    """

    direct: np.ndarray
    correction: np.ndarray
    weights: np.ndarray
    normalises: bool

    @property
    def sums(self) -> np.ndarray:
        """The columns (N, 4) whose sums give the value: 1, V, g (r - q), g."""
        return np.stack([np.ones_like(self.direct), self.direct, self.correction, self.weights], axis=1)

    def value_of(self, sums: np.ndarray) -> np.ndarray:
        """The value from sums (..., 4) of these columns; NaN where no weight is above 0."""
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
        """What each row gives, (N,), with the value as the mean; linearised where the weights are divided by
        their sum."""
        if not self.normalises:
            return np.asarray(self.direct + self.correction)
        mean = self.weights.mean()
        ratio = self.correction.mean() / mean
        return np.asarray(self.direct + ratio + (self.correction - ratio * self.weights) / mean)


DirectModel: TypeAlias = Callable[[PyTree], ArrayLike] | ArrayLike
"""Expected rewards of all arms: a function of contexts that gives (N, K), or these numbers."""


@dataclass(frozen=True)
class WeighedRows:
    """The n rows of a log that have rewards, and what a policy would do there.

    `target` (n, K) are the policy's probabilities, `weights` (n,) are pi(a | x) / p of the chosen arms, and
    `all_weights` (n, K) of all arms: infinite where the log never chooses an arm that the policy chooses, and
    None where the log does not say. `mask` (N,) says which rows of the whole log these are.
    """

    log: Log
    target: np.ndarray
    weights: np.ndarray
    all_weights: np.ndarray | None
    mask: np.ndarray


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


def terms_of(
    weighed: WeighedRows, kind: EstimatorKind, values: np.ndarray | None, clip: float | None
) -> Terms:
    """The terms of an estimator."""
    log, cut = weighed.log, cut_weights(weighed.weights, kind, clip)
    if values is None:
        return Terms(np.zeros(log.rows), cut * log.rewards, cut, kind.normalises)
    errors = log.rewards - values[np.arange(log.rows), log.chosen]
    return Terms((weighed.target * values).sum(axis=1), cut * errors, cut, kind.normalises)


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
    rows, chosen = np.arange(weighed.log.rows), weighed.log.chosen
    every = weighed.all_weights
    weights = weighed.weights[:, None] if every is None else np.where(np.isfinite(every), every, 0.0)
    cut = cut_weights(weights, kind, clip)
    if values is None:
        direct, baseline = np.zeros((len(rows), 1)), np.zeros_like(cut)
    else:
        direct = (weighed.target * values).sum(axis=1, keepdims=True)
        baseline = values[rows, chosen][:, None] if every is None else values
    least, greatest = direct + cut * (rewards[0] - baseline), direct + cut * (rewards[1] - baseline)
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
    one of those seen, or, where the range of the rewards is stated, one that they allow.
    """
    log, every = weighed.log, weighed.all_weights
    direct = terms_of(weighed, kind, values, clip).direct
    guesses = np.zeros(1) if values is None else values[np.arange(log.rows), log.chosen]
    if rewards is None:
        seen = (log.rewards - guesses)[weighed.weights > 0] if kind.weighs else np.zeros(1)
        errors = float(seen.min()), float(seen.max())
    else:
        errors = float(rewards[0] - guesses.max()), float(rewards[1] - guesses.min())
    weights = weighed.weights if every is None else every[np.isfinite(every)]
    top = max(2.0, float(weights.max()))
    cut = float(cut_weights(np.array(top), kind, clip))
    low, high = float(direct.min()), float(direct.max())
    return np.array([[0.0, low], [0.0, high], [top, low + cut * errors[0]], [top, high + cut * errors[1]]])
