"""Regression targets: forecasts of standardised targets in the target's own units, and the baseline."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from credo.likelihoods.rescaled import FARTHEST
from credo.likelihoods.weighted import WIDTH
from credo.metrics import Scores
from credo.recipes.defaults import OUTLIERS
from credo.tables import ScaledTarget, TargetScaler
from credo.tables.schema import TargetKind

__all__ = [
    "SCALER",
    "WARMUP",
    "baseline_sd",
    "beside_baseline",
    "count_baseline",
    "own_log_prob",
    "standardise",
]

WARMUP = 10
"""The number of targets that say in which units the others are."""

SCALER = TargetScaler(warmup=WARMUP)
"""The scaler that standardises each target of a session by the targets before it."""


def standardise(y: np.ndarray, scaling: ScaledTarget) -> np.ndarray:
    """Targets (n,) in units of the spread before them, float32: what forecasts are judged by. They end at
    `FARTHEST`, 1,000, so that one absurd target costs a bounded score.
    """
    away = (y - scaling.location) / scaling.scale
    return np.asarray(np.maximum(np.minimum(away, FARTHEST), -FARTHEST), np.float32)


def _own_units(scores: Scores, location: np.ndarray, scale: np.ndarray, log_prob: np.ndarray) -> Scores:
    """Scores in own units, of which log p is known: mean' = location + scale * mean, sd' = scale * sd."""
    shift = np.log(scale)
    return dataclasses.replace(
        scores,
        mean=location + scale * np.asarray(scores.mean, float),
        sd=scale * np.asarray(scores.sd, float),
        log_prob=log_prob,
        others={name: np.asarray(value, float) - shift for name, value in scores.others.items()},
        compared={
            name: np.stack([location + scale * moments[:, 0], scale * moments[:, 1]], axis=1)
            for name, moments in scores.compared.items()
        },
    )


def baseline_sd(scale: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The standard deviation (n,) of the baseline's forecast of a number after `count` rows."""
    sd: np.ndarray = scale * np.sqrt(1.0 + 1.0 / np.maximum(count, 1))
    return sd


def _number_baseline(
    y: np.ndarray, location: np.ndarray, scale: np.ndarray, count: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Log density and squared error (n,) by the targets before: N(y | location, scale^2 (1 + 1 / count))."""
    var = baseline_sd(scale, count) ** 2
    gap2 = (y - location) ** 2
    return -0.5 * (gap2 / var + np.log(2 * np.pi * var)), gap2


_OTHER = np.log(OUTLIERS)
_OWN = np.log1p(-OUTLIERS)
_WIDE = np.log(np.pi * WIDTH)


def own_log_prob(
    log_prob: np.ndarray, scaling: ScaledTarget, targets: np.ndarray | None = None
) -> np.ndarray:
    """Log densities of standardised targets (n,) in their own units, log p' = log p - log(scale); with the
    `targets`, as if one in a thousand were an outlier, as in `Contaminated`.
    """
    logs: np.ndarray = np.asarray(log_prob, float)
    if targets is not None:
        other = _OTHER - np.log1p((targets.astype(float) / WIDTH) ** 2) - _WIDE
        with np.errstate(invalid="ignore"):  # a learner that has run away forecasts NaN
            logs = np.logaddexp(_OWN + logs, other)
    own: np.ndarray = logs - np.log(scaling.scale)
    return own


def beside_baseline(
    scores: Scores,
    scaling: ScaledTarget,
    count: np.ndarray,
    kind: TargetKind,
    log_prob: np.ndarray | None = None,
) -> tuple[Scores, np.ndarray, np.ndarray]:
    """Scores in own units, and the baseline's log probability and squared error (n,) after `count` rows; with
    the `own_log_prob` of targets that are standardised, if it is not that of the scores.
    """
    y = scores.y
    location = scaling.location
    scale = scaling.scale
    if kind.standardised:
        logs = own_log_prob(scores.log_prob, scaling) if log_prob is None else log_prob
        scores = _own_units(scores, location, scale, logs)
    if kind.whole:
        return _mid_pit(scores), *count_baseline(y, location, scale, count)
    return scores, *_number_baseline(y, location, scale, count)


_log_gamma = np.vectorize(math.lgamma, otypes=[float])


def count_baseline(
    y: np.ndarray, location: np.ndarray, scale: np.ndarray, count: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Log probability and squared error (n,) of p(y) = NB(y | mean m, variance v), r = m^2 / (v - m), v =
    scale^2 (1 + 1 / count), of the counts before each row; a Poisson where they vary less. The mean takes in
    half a count, so that after zeros alone another count is possible.
    """
    m = (count * location + 0.5) / (count + 1.0)
    v = scale**2 * (1.0 + 1.0 / np.maximum(count, 1))
    wide = v > m * (1 + 1e-6)
    r = m**2 / np.where(wide, v - m, 1.0)
    poisson = y * np.log(m) - m
    ratio = _log_gamma(y + r) - _log_gamma(r) - (y + r) * np.log1p(m / r) + y * np.log(m / r)
    return np.where(wide, ratio, poisson) - _log_gamma(y + 1.0), (y - location) ** 2


def _mid_pit(scores: Scores) -> Scores:
    """Scores of counts with P(Y < y) + P(Y = y) / 2 in place of P(Y <= y), as calibration needs it."""
    if scores.pit is None:
        return scores
    return dataclasses.replace(scores, pit=np.clip(scores.pit - 0.5 * np.exp(scores.log_prob), 0.0, 1.0))
