"""The estimators as one formula.

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

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

__all__ = ["ESTIMATORS", "KINDS", "EstimatorKind", "EstimatorName", "Terms", "cut_weights"]

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
