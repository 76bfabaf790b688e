"""Regression targets: forecasts of standardised targets in the target's own units, and the baseline."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from credo.core.outlying import FAR
from credo.learners import Info
from credo.likelihoods.contaminated import WIDTH
from credo.likelihoods.rescaled import FARTHEST
from credo.metrics import Scores
from credo.recipes.defaults import OUTLIERS
from credo.streams import to_scores
from credo.streams.scoring import Outcome
from credo.tables import ScaledTarget, TargetScaler

__all__ = [
    "SCALER",
    "WARMUP",
    "count_baseline",
    "judged_numbers",
    "log_rate",
    "mid_pit",
    "number_baseline",
    "own_units",
    "standardise",
    "trust",
]

WARMUP = 10
"""How many targets say in which units the others are."""

SCALER = TargetScaler(warmup=WARMUP)
"""How the targets of a session are standardised, each by the targets before it."""


def standardise(y: np.ndarray, scaling: ScaledTarget) -> np.ndarray:
    """Targets (n,) in units of the spread of those before them, float32, without clipping: what forecasts are
    judged by. Those beyond `FARTHEST`, 1,000, are set to it, so that one absurd target costs a bounded score.
    """
    away = (y - scaling.location) / scaling.scale
    return np.asarray(np.clip(away, -FARTHEST, FARTHEST), np.float32)


def trust(targets: np.ndarray) -> np.ndarray:
    """The weights with which standardised targets (n,) are learned: 1, and (8 / z)^2 for those beyond 8
    standard deviations.
    """
    return np.asarray((FAR / np.maximum(np.abs(targets), FAR)) ** 2, np.float32)


def own_units(scores: Scores, location: np.ndarray, scale: np.ndarray) -> Scores:
    """Scores of n standardised targets in the target's own units, by the location and scale (n,) of the
    targets before each: mean' = location + scale * mean, sd' = scale * sd, log p' = log p - log(scale).
    """
    shift = np.log(scale)
    return dataclasses.replace(
        scores,
        mean=location + scale * np.asarray(scores.mean, float),
        sd=scale * np.asarray(scores.sd, float),
        log_prob=np.asarray(scores.log_prob, float) - shift,
        others={name: np.asarray(value, float) - shift for name, value in scores.others.items()},
        compared={
            name: np.stack([location + scale * moments[:, 0], scale * moments[:, 1]], axis=1)
            for name, moments in scores.compared.items()
        },
    )


def number_baseline(
    y: np.ndarray, location: np.ndarray, scale: np.ndarray, count: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The log density and squared error (n,) of the normal with the mean and spread of the targets before
    each row, p(y) = N(y | location, scale^2 (1 + 1 / count)).
    """
    var = scale**2 * (1.0 + 1.0 / np.maximum(count, 1))
    gap2 = (y - location) ** 2
    return -0.5 * (gap2 / var + np.log(2 * np.pi * var)), gap2


def _with_outliers(log_prob: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The log density where a target in a thousand is an outlier, as in `Contaminated`."""
    other = np.log(OUTLIERS) - np.log1p((targets.astype(float) / WIDTH) ** 2) - np.log(np.pi * WIDTH)
    with np.errstate(invalid="ignore"):  # a learner that has run away forecasts NaN
        mixture: np.ndarray = np.logaddexp(np.log1p(-OUTLIERS) + np.asarray(log_prob, float), other)
    return mixture


def judged_numbers(
    outcome: Outcome, info: Info, y: np.ndarray, scaling: ScaledTarget, count: int, bounded: bool
) -> tuple[Scores, np.ndarray, np.ndarray]:
    """The scores of consecutive rows in the target's own units, beside the baseline's log density and squared
    error; rows before the scale was known have none.

    `count` is how many targets there were before these. Where `bounded`, forecasts are judged as if one
    target in a thousand were an outlier, which bounds the score of a target that is absurd; the members of a
    bank do so themselves.
    """
    known = scaling.known
    location, scale = scaling.location[known], scaling.scale[known]
    own = to_scores(outcome, info, y, known)
    if bounded:
        own = dataclasses.replace(own, log_prob=_with_outliers(own.log_prob, standardise(y, scaling)[known]))
    own = own_units(own, location, scale)
    return own, *number_baseline(own.y, location, scale, (count + np.arange(len(y)))[known])


def log_rate(scaling: ScaledTarget) -> float:
    """The log of the mean of the counts before the first row of a scaling, and of one in ten where all were
    0.
    """
    return float(np.log(max(scaling.location[0], 1 / WARMUP)))


_log_gamma = np.vectorize(math.lgamma, otypes=[float])


def count_baseline(
    y: np.ndarray, location: np.ndarray, scale: np.ndarray, count: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The log probability and squared error (n,) of the negative binomial with the mean and spread of the
    counts before each row; a Poisson where they vary less.

    p(y) = NB(y | mean m, variance v), r = m^2 / (v - m), v = scale^2 (1 + 1 / count). The mean takes in half
    a count, so that after zeros alone another count is possible.
    """
    m = (count * location + 0.5) / (count + 1.0)
    v = scale**2 * (1.0 + 1.0 / np.maximum(count, 1))
    wide = v > m * (1 + 1e-6)
    r = m**2 / np.where(wide, v - m, 1.0)
    poisson = y * np.log(m) - m
    ratio = _log_gamma(y + r) - _log_gamma(r) - (y + r) * np.log1p(m / r) + y * np.log(m / r)
    return np.where(wide, ratio, poisson) - _log_gamma(y + 1.0), (y - location) ** 2


def mid_pit(scores: Scores) -> Scores:
    """Scores of counts with P(Y < y) + P(Y = y) / 2 in place of P(Y <= y), as calibration needs it."""
    if scores.pit is None:
        return scores
    return dataclasses.replace(scores, pit=np.clip(scores.pit - 0.5 * np.exp(scores.log_prob), 0.0, 1.0))
