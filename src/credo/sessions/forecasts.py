"""Forecasts of rows that are not learned from, in the target's own units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from credo.live.clock import steps_after
from credo.live.encoding import Block
from credo.live.passes import forecast_rows
from credo.live.targets import SCALER
from credo.programs.packed import PackedBelief
from credo.streams.scoring import Outcome
from credo.tables import Moments, ScaledTarget

__all__ = ["Columns", "Forecasts", "forecast_blocks", "in_columns", "inverse"]

Column: TypeAlias = np.ndarray | None
"""The numbers of n rows, or None where there are none."""

Columns: TypeAlias = tuple[Column, Column, Column, Column, Column]
"""The columns of a forecast: `probs`, `mean`, `sd`, `quantiles` and `nlpd`."""


class Forecasts(NamedTuple):
    """Forecasts of n rows in the target's own units: class probabilities, or mean, sd and quantiles.

    Attributes:
        lines: the lines of the rows (n,), from 1; rows that could not be encoded are left out.
        classes: the class labels, in the order of `probs`; empty for a regression.
        probs: class probabilities (n, C).
        mean: the predictive means (n,).
        sd: the predictive standard deviations (n,).
        quantiles: the quantiles (n, levels), or None if no levels were asked for.
        targets: what was observed (n,), class numbers or numbers, where the rows were learned from.
        nlpd: their scores, -log p(target) (n,); NaN for the first numbers, whose units are not known yet.

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
    targets: np.ndarray | None = None
    nlpd: np.ndarray | None = None

    @property
    def labels(self) -> list[str]:
        """The most probable class of each row; empty for a regression."""
        if self.probs is None:
            return []
        return [self.classes[top] for top in self.probs.argmax(axis=1)]


def forecast_blocks(
    packed: PackedBelief,
    blocks: Sequence[Block],
    chunk: int,
    classes: tuple[str, ...],
    moments: Moments | None,
    levels: Sequence[float],
    clock: float | None = None,
) -> Forecasts:
    """Forecast encoded rows, with class labels or, for numbers, the moments of the targets so far (None if
    these are not standardised) and the probabilities of quantiles. Rows with times are forecast for then, by
    a belief of the time `clock`.
    """
    lines = _one_array([block.lines for block in blocks] or [np.zeros(0, int)])
    probabilities = None if classes else np.asarray(levels, np.float32)
    parts: list[tuple[np.ndarray, ...]] = []
    for block in blocks:
        for start in range(0, len(block), chunk):
            x = block.x[start : start + chunk]
            times = block.times
            dts = None if times is None else steps_after(times[start : start + chunk], clock)
            ahead = None if dts is None else dts.astype(np.float32)
            parts.append(forecast_rows(packed, x, chunk, probabilities, ahead))
    if not parts:
        return Forecasts(lines, classes)
    columns = [_one_array(column) for column in zip(*parts, strict=True)]
    if classes:
        return Forecasts(lines, classes, columns[0][:, : len(classes)])
    mean, sd, *rest = columns
    quantiles = rest[0] if rest else None
    if moments is not None:
        mean, sd = SCALER.inverse(moments, mean, sd)
        quantiles = None if quantiles is None else SCALER.inverse(moments, quantiles, quantiles)[0]
    return Forecasts(lines, (), None, mean, sd, quantiles)


def _one_array(parts: Sequence[np.ndarray]) -> np.ndarray:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts)


def inverse(outcome: Outcome, scaling: ScaledTarget) -> tuple[Column, Column, Column]:
    """Mean, sd and quantiles of n standardised targets in their own units; NaN for rows not scored yet."""
    known = scaling.known
    mean, sd = scaling.inverse(np.asarray(outcome.mean), np.asarray(outcome.sd))
    quantiles = None
    if outcome.quantiles is not None:
        location = scaling.location[:, None]
        scale = scaling.scale[:, None]
        quantiles = np.where(known[:, None], location + scale * np.asarray(outcome.quantiles, float), np.nan)
    if np.count_nonzero(known) < len(known):
        mean = np.where(known, mean, np.nan)
        sd = np.where(known, sd, np.nan)
    return mean, sd, quantiles


def in_columns(
    lines: np.ndarray, classes: tuple[str, ...], parts: Sequence[Columns], targets: np.ndarray
) -> Forecasts:
    """The forecasts of several chunks, one after the other; the arguments are those of `Forecasts`."""

    def joined(parts: Sequence[Column]) -> Column:
        present = [part for part in parts if part is not None]
        if len(present) > 1:
            return np.concatenate(present)
        return next(iter(present), None)

    wide = [(_wide(probs, len(classes)), *rest) for probs, *rest in parts]
    columns = wide[0] if len(wide) == 1 else map(joined, zip(*wide, strict=True))
    probs, mean, sd, quantiles, nlpd = columns
    return Forecasts(lines, classes, probs, mean, sd, quantiles, targets, nlpd)


def _wide(probs: Column, classes: int) -> Column:
    """Probabilities with a column for every class; those of a class that had not come are 0."""
    if probs is None or probs.shape[1] == classes:
        return probs
    return np.pad(probs, ((0, 0), (0, classes - probs.shape[1])))
