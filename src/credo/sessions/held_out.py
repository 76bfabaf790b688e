"""The scoring of rows that are not learned from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from credo.metrics import Scores
from credo.sessions import passes
from credo.sessions.forecasts import judge
from credo.sessions.tally import Tally
from credo.sessions.targets import SCALER, count_baseline, mid_pit, number_baseline, own_units, standardise

if TYPE_CHECKING:
    from credo.sessions.session import Session

__all__ = ["score_held_out"]


def score_held_out(session: Session, x: np.ndarray, y: np.ndarray, tally: Tally) -> None:
    """Score rows at the present belief of a session, beside its present baseline.

    Arguments:
        session: the session, which is not changed.
        x: inputs (n, ...), at most a chunk.
        y: targets in their own units (n,): class numbers, or numbers.
        tally: the scores to add to.
    """

    def scores(ys: np.ndarray) -> Scores:
        return judge(session.learner, session.belief, x, y, ys, session.chunk, session.compare)

    if not session.regression:
        counts = session.tally.counts
        share = (counts + 1) / (counts + 1).sum()
        judged = passes.of_classes(scores(y.astype(np.int32)), len(counts))
        tally.add(judged, np.log(share[y]), (share.argmax() != y).astype(float))
        return
    _, scaling = SCALER.encode(session.scaler, y, learn=False)
    units = scaling.location, scaling.scale
    seen = np.full(len(y), session.scaler.count[0])
    if session.settings.task == "count":
        tally.add(mid_pit(scores(y.astype(np.float32))), *count_baseline(y, *units, seen))
    else:
        tally.add(own_units(scores(standardise(y, scaling)), *units), *number_baseline(y, *units, seen))
