"""Scores of rows that are not learned from, beside the baseline as it is after the rows that were."""

from __future__ import annotations

import numpy as np

from credo.core.names import ForecastName
from credo.live.encoding import Block
from credo.live.passes import of_classes
from credo.live.targets import (
    SCALER,
    count_baseline,
    mid_pit,
    number_baseline,
    own_units,
    standardise,
)
from credo.recipes.assembly import Belief, SessionLearner
from credo.recipes.settings import TaskName
from credo.sessions.forecasts import judge
from credo.sessions.tally import Tally
from credo.tables import Moments

__all__ = ["add_held_out"]


def add_held_out(
    tally: Tally,
    block: Block,
    learner: SessionLearner,
    belief: Belief,
    *,
    task: TaskName,
    moments: Moments,
    counts: np.ndarray,
    chunk: int,
    compare: tuple[ForecastName, ...],
) -> None:
    """Score the rows of a block, and add the scores to a tally, which is changed in place.

    `moments` are those of the targets that were learned from, and `counts` (classes,) how many rows of each
    class were.
    """
    for start in range(0, len(block), chunk):
        x, y = block.x[start : start + chunk], block.y[start : start + chunk]
        if task == "classification":
            share = (counts + 1) / (counts + 1).sum()
            scores = of_classes(judge(learner, belief, x, y, y.astype(np.int32), chunk, compare), len(counts))
            tally.add(scores, np.log(share[y]), (share.argmax() != y).astype(float))
            continue
        scaling = SCALER.encode(moments, y, learn=False)[1]
        location, scale, count = scaling.location, scaling.scale, np.full(len(y), moments.count[0])
        if task == "count":
            scores = mid_pit(judge(learner, belief, x, y, y.astype(np.float32), chunk, compare))
            tally.add(scores, *count_baseline(y, location, scale, count))
            continue
        scores = judge(learner, belief, x, y, standardise(y, scaling), chunk, compare)
        tally.add(own_units(scores, location, scale), *number_baseline(y, location, scale, count))
