"""The estimators, which are one formula with several choices.

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
    dr-ps      g = min(w, c)      q            D = N
    dr-os      g = c^2 w / (w^2 + c^2)
                                  q            D = N
    switch-slope: as switch, with the bound c that SLOPE chooses
    dr-adaptive: as dr, with a weight h for each row, of which `credo.bandits.evaluation.weighed_rows` tells
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from credo.bandits.evaluation.shrinkage import Cut, Rule, cut_by

__all__ = ["ESTIMATORS", "KINDS", "EstimatorKind", "EstimatorName", "cut_weights"]

EstimatorName: TypeAlias = Literal[
    "ips",
    "snips",
    "clipped",
    "direct",
    "dr",
    "switch",
    "sn-dr",
    "dr-ps",
    "dr-os",
    "switch-slope",
    "dr-adaptive",
]
"""The estimators by their names in the literature."""

ESTIMATORS: tuple[EstimatorName, ...] = get_args(EstimatorName)
"""All estimators."""


class EstimatorKind(NamedTuple):
    """The parts of an estimator: weights of the rewards, a direct model, division by the sum of the weights.

    `cuts` is what becomes of weights above the bound without being asked, `tunes` is the rule that chooses
    this bound (sqrt(N) if it is None), and `adapts` says whether rows have weights of their own.
    """

    weighs: bool
    models: bool
    normalises: bool
    cuts: Cut | None = None
    tunes: Rule | None = None
    adapts: bool = False


KINDS: dict[EstimatorName, EstimatorKind] = {
    "ips": EstimatorKind(True, False, False),
    "snips": EstimatorKind(True, False, True),
    "clipped": EstimatorKind(True, False, False, "clip"),
    "direct": EstimatorKind(False, True, False),
    "dr": EstimatorKind(True, True, False),
    "switch": EstimatorKind(True, True, False, "drop"),
    "sn-dr": EstimatorKind(True, True, True),
    "dr-ps": EstimatorKind(True, True, False, "clip", "mse"),
    "dr-os": EstimatorKind(True, True, False, "shrink", "mse"),
    "switch-slope": EstimatorKind(True, True, False, "drop", "slope"),
    "dr-adaptive": EstimatorKind(True, True, False, adapts=True),
}
"""The parts of each estimator."""


def cut_weights(weights: np.ndarray, kind: EstimatorKind, clip: float | None) -> np.ndarray:
    """g as a function of w: 0, w, or what becomes of it by the bound c."""
    if not kind.weighs:
        return np.zeros_like(weights)
    if clip is None:
        return weights
    return cut_by(weights, kind.cuts or "clip", clip)
