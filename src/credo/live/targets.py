"""Regression targets: forecasts of standardised targets in the target's own units, and the baseline."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from credo.core.outlying import FAR
from credo.likelihoods.contaminated import WIDTH
from credo.likelihoods.rescaled import FARTHEST
from credo.metrics import Scores
from credo.recipes.defaults import OUTLIERS
from credo.tables import ScaledTarget, TargetScaler
from credo.tables.tasks import TargetKind

__all__ = ["SCALER", "WARMUP", "beside_baseline", "count_baseline", "standardise", "trust", "with_outliers"]

WARMUP = 10
"""How many targets say in which units the others are."""

SCALER = TargetScaler(warmup=WARMUP)
"""How the targets of a session are standardised, each by the targets before it."""


def standardise(y: np.ndarray, scaling: ScaledTarget) -> np.ndarray:
    """Targets (n,) in units of the spread before them, float32: what forecasts are judged by. They end at
    `FARTHEST`, 1,000, so that one absurd target costs a bounded score.
    """
    away = (y - scaling.location) / scaling.scale
    return np.asarray(np.maximum(np.minimum(away, FARTHEST), -FARTHEST), np.float32)


def trust(targets: np.ndarray) -> np.ndarray:
    """The weights of standardised targets (n,): 1, and (8 / z)^2 beyond 8 standard deviations."""
    return np.asarray((FAR / np.maximum(np.abs(targets), FAR)) ** 2, np.float32)


def _own_units(scores: Scores, location: np.ndarray, scale: np.ndarray) -> Scores:
    """Scores in own units: mean' = location + scale * mean, sd' = scale * sd, log p' = log p - log(scale)."""
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


def _number_baseline(
    y: np.ndarray, location: np.ndarray, scale: np.ndarray, count: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Log density and squared error (n,) by the targets before: N(y | location, scale^2 (1 + 1 / count))."""
    var = scale**2 * (1.0 + 1.0 / np.maximum(count, 1))
    gap2 = (y - location) ** 2
    return -0.5 * (gap2 / var + np.log(2 * np.pi * var)), gap2


def with_outliers(scores: Scores, targets: np.ndarray) -> Scores:
    """Scores as if one target in a thousand were an outlier, as in `Contaminated`, which bounds them."""
    other = np.log(OUTLIERS) - np.log1p((targets.astype(float) / WIDTH) ** 2) - np.log(np.pi * WIDTH)
    with np.errstate(invalid="ignore"):  # a learner that has run away forecasts NaN
        mixture = np.logaddexp(np.log1p(-OUTLIERS) + np.asarray(scores.log_prob, float), other)
    return dataclasses.replace(scores, log_prob=mixture)


def beside_baseline(
    scores: Scores, scaling: ScaledTarget, count: np.ndarray, kind: TargetKind
) -> tuple[Scores, np.ndarray, np.ndarray]:
    """Scores in own units, and the baseline's log probability and squared error (n,) after `count` rows."""
    y, location, scale = scores.y, scaling.location, scaling.scale
    scores = _own_units(scores, location, scale) if kind.standardised else scores
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
