"""Counts: learned by their log rate, which begins at the mean of the first ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from credo.metrics import Scores
from credo.sessions.assembly import build
from credo.sessions.change_steps import Steps
from credo.sessions.targets import WARMUP, count_baseline, mid_pit
from credo.tables import ScaledTarget

if TYPE_CHECKING:
    from credo.sessions.session import Session

__all__ = ["learn_counts"]


def learn_counts(
    session: Session,
    score: Callable[
        [np.ndarray, np.ndarray, np.ndarray, np.ndarray, ScaledTarget | None], tuple[Scores, Steps | None]
    ],
    x: np.ndarray,
    y: np.ndarray,
    before: int,
    scaling: ScaledTarget,
) -> Steps | None:
    """Forecast, score and learn counts.

    The first `WARMUP` counts are neither scored nor learned. Their mean m says where the log rate begins: the
    prior mean of the last bias is log m. So the prior fits counts of any size, and nothing is standardised.

    Arguments:
        session: the session, whose scores are added to.
        score: what forecasts, scores and learns rows.
        x: inputs (n, ...).
        y: counts (n,), the first `WARMUP` of a stream or later ones, but not some of both.
        before: how many counts came before these.
        scaling: the mean and spread of the counts before each.
    """
    warm = before >= WARMUP
    if before == WARMUP:
        start = float(np.log(max(scaling.location[0], 1 / WARMUP)))
        session.learner, session.belief = build(session.settings, session.encoding.shape, 0, start=start)
    scaling = dataclasses.replace(scaling, known=np.full(len(y), warm))
    scores, steps = score(x, y.astype(np.float32), scaling.known, y, None if warm else scaling)
    if warm:
        base = count_baseline(y, scaling.location, scaling.scale, before + np.arange(len(y)))
        session.tally.add(mid_pit(scores), *base)
    return steps
