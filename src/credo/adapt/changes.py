"""What a finished run says of the past: segments, and alarms."""

from __future__ import annotations

import numpy as np

from credo.adapt.hypotheses import Changes
from credo.core.errors import CredoError

__all__ = ["alarms", "segmentation"]


def segmentation(trace: Changes, upto: int | None = None) -> list[int]:
    """The starts of the segments of the likeliest past, in order; the first is 0.

    The maximum over all pasts (Viterbi), not the likeliest run length of each step; exact as long as nothing
    was pruned. Looking back from `upto` tells how the past is seen at that time; a delay of L steps is
    `segmentation(trace, t + L)`.

    Arguments:
        trace: the `extras` of the trace of `credo.run`, with a leading axis T.
        upto: how many steps to look at; None for all.

    Returns:
        Indices of the observations with which segments begin.
    """
    best, parent = np.asarray(trace.best_run_length), np.asarray(trace.parent_run_length)
    if best.ndim != 1:
        raise CredoError(f"trace must have one leading axis of time; got shape {best.shape}.")
    end = len(best) if upto is None else upto
    if not 1 <= end <= len(best):
        raise CredoError(f"upto must be in 1..{len(best)}; got {upto!r}.")
    start = end - 1 - max(int(best[end - 1]), 0)
    starts = [start]
    while start > 0:
        start = max(start - 1 - max(int(parent[start]), 0), 0)
        starts.append(start)
    return starts[::-1]


def alarms(trace: Changes) -> np.ndarray:
    """The observations at which a change was reported, each change once."""
    return np.flatnonzero(np.asarray(trace.alarm))
