"""Scores of rows that are not learned from, beside the baseline as it is after the rows that were."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np

from credo.live.encoding import Block
from credo.live.passes import judge_rows, of_classes, pad
from credo.live.targets import SCALER, beside_baseline, standardise
from credo.metrics import Scores
from credo.sessions.session_state import SessionState
from credo.sessions.tally import Tally

__all__ = ["add_held_out"]


def add_held_out(session: SessionState, tally: Tally, block: Block) -> None:
    """Score the rows of a block, and add the scores to a tally, which is changed in place."""
    kind, counts, chunk = session.settings.target, session.tally.counts, session.chunk

    def judged(x: np.ndarray, y: np.ndarray, targets: np.ndarray) -> Scores:
        """The scores of at most a chunk of rows; `targets` are what their forecasts are judged by."""
        columns = pad(x, chunk), pad(targets, chunk)
        outcome = judge_rows(session.learner, session.belief, *columns, session.compare)
        real = jax.tree.map(lambda leaf: np.asarray(leaf)[: len(x)], outcome)
        fields = (real.mean, real.sd, real.log_prob, real.pit, real.probs, real.others)
        scores = Scores(y, *fields, real.log_prob, np.ones(len(x), bool))
        return dataclasses.replace(scores, compared=real.compared)

    for start in range(0, len(block), chunk):
        x, y = block.x[start : start + chunk], block.y[start : start + chunk]
        if kind.classed:
            share = (counts + 1) / (counts + 1).sum()
            scores = of_classes(judged(x, y, y.astype(np.int32)), len(counts))
            tally.add(scores, np.log(share[y]), (share.argmax() != y).astype(float))
            continue
        scaling = SCALER.encode(session.scaler, y, learn=False)[1]
        scores = judged(x, y, standardise(y, scaling) if kind.standardised else y.astype(np.float32))
        tally.add(*beside_baseline(scores, scaling, np.full(len(y), session.scaler.count[0]), kind))
