"""Forecasts of rows that are not learned from, in the target's own units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from credo.core.names import ForecastName
from credo.core.types import Array
from credo.metrics import Scores
from credo.sessions.assembly import Belief, SessionLearner
from credo.sessions.encoding import Block
from credo.sessions.passes import forecast_rows, judge_rows, pad
from credo.sessions.targets import SCALER
from credo.tables import Moments

__all__ = ["Forecasts", "forecast_blocks", "judge"]


class Forecasts(NamedTuple):
    """Forecasts of n rows in the target's own units: class probabilities, or mean, sd and quantiles.

    Attributes:
        lines: the lines of the rows (n,), from 1; rows that could not be encoded are left out.
        classes: the class labels, in the order of `probs`; empty for a regression.
        probs: class probabilities (n, C).
        mean: the predictive means (n,).
        sd: the predictive standard deviations (n,).
        quantiles: the quantiles (n, levels), or None where no levels were asked for.

    Example:
        >>> Forecasts(np.array([1]), ("no", "yes"), np.array([[0.2, 0.8]])).labels
        ['yes']
    """

    lines: np.ndarray
    classes: tuple[str, ...] = ()
    probs: np.ndarray | None = None
    mean: np.ndarray | None = None
    sd: np.ndarray | None = None
    quantiles: np.ndarray | None = None

    @property
    def labels(self) -> list[str]:
        """The most probable class of each row; empty for a regression."""
        return [] if self.probs is None else [self.classes[top] for top in self.probs.argmax(axis=1)]


def forecast_blocks(
    learner: SessionLearner,
    belief: Belief,
    blocks: Sequence[Block],
    chunk: int,
    classes: tuple[str, ...],
    moments: Moments | None,
    levels: Sequence[float],
) -> Forecasts:
    """Forecast encoded rows.

    Arguments:
        learner, belief: the learner that forecasts, and its belief.
        blocks: the rows.
        chunk: the number of rows in a compiled call.
        classes: the class labels; empty for a regression.
        moments: the moments of the targets so far; None where targets are not standardised.
        levels: the probabilities of the quantiles to give (regression).
    """
    lines = np.concatenate([np.zeros(0, int), *(block.lines for block in blocks)])
    # the median stands in where no level is asked for: the compiler takes no empty axis
    probabilities = None if classes else np.asarray(levels if len(levels) else (0.5,), np.float32)
    parts: list[tuple[Array, ...]] = []
    sizes: list[int] = []
    for block in blocks:
        for start in range(0, len(block), chunk):
            x = block.x[start : start + chunk]
            parts.append(forecast_rows(learner, belief, pad(x, chunk), probabilities))
            sizes.append(len(x))
    if not parts:
        return Forecasts(lines, classes)
    columns = [
        np.concatenate([np.asarray(array)[:size] for array, size in zip(column, sizes, strict=True)])
        for column in zip(*parts, strict=True)
    ]
    if classes:
        return Forecasts(lines, classes, columns[0][:, : len(classes)])
    mean, sd, quantiles = columns
    if moments is not None:
        mean, sd = SCALER.inverse(moments, mean, sd)
        quantiles, _ = SCALER.inverse(moments, quantiles, quantiles)
    return Forecasts(lines, (), None, mean, sd, quantiles if len(levels) else None)


def judge(
    learner: SessionLearner,
    belief: Belief,
    x: np.ndarray,
    y: np.ndarray,
    ys: np.ndarray,
    chunk: int,
    compare: tuple[ForecastName, ...],
) -> Scores:
    """Score rows that are not learned from.

    Arguments:
        learner, belief: the learner that forecasts, and its belief.
        x: inputs (n, ...), at most a chunk.
        y: targets as they are reported (n,).
        ys: targets as forecasts are judged (n,): class numbers, or standardised numbers.
        chunk: the number of rows in a compiled call.
        compare: further methods of forecasting whose log probability is reported.
    """
    outcome = judge_rows(learner, belief, pad(x, chunk), pad(ys, chunk), compare)
    real = jax.tree.map(lambda leaf: np.asarray(leaf)[: len(x)], outcome)
    fields = (real.mean, real.sd, real.log_prob, real.pit, real.probs, real.others)
    return Scores(y, *fields, real.log_prob, np.ones(len(x), bool))
