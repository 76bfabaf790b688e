"""What a finished run says about the past: segments and alarms."""

from __future__ import annotations

import jax
import numpy as np

from credo.adapt.changepoints.hypotheses import Changes
from credo.core.errors import CredoError
from credo.core.types import PyTree
from credo.learners import Info

__all__ = ["alarms", "segmentation"]


def segmentation(trace: Info | Changes, upto: int | None = None) -> list[int]:
    """The starts of the segments of the likeliest past, in order, of which the first is 0.

    This is the maximum over all pasts (Viterbi), not the likeliest run length of each step. It is exact as
    long as nothing was pruned. With `upto`, the past is seen from that time; a delay of L steps is
    `segmentation(trace, t + L)`.

    Arguments:
        trace: the trace of `credo.run` for a learner with run lengths, or its `extras`.
        upto: how many steps to look at; None for all.

    Returns:
        The indices of the observations with which segments begin.

    Raises:
        CredoError: the trace reports no changes, has no axis of time, or is shorter than `upto`.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> learner = credo.RunLength(credo.GammaPoisson(), hazard=0.05)
        >>> counts = jnp.array([1, 2, 1, 2, 1, 1, 30, 28, 31, 29])
        >>> belief, trace = credo.run(learner, learner.init(), None, counts)
        >>> credo.segmentation(trace), credo.segmentation(trace, upto=6)
        ([0, 6], [0])
    """
    changes = _changes(trace)
    best, parent = np.asarray(changes.best_run_length), np.asarray(changes.parent_run_length)
    end = len(best) if upto is None else upto
    if not 1 <= end <= len(best):
        raise CredoError(f"upto must be in 1..{len(best)}; got {upto!r}.")
    start = end - 1 - max(int(best[end - 1]), 0)
    starts = [start]
    while start > 0:
        start = max(start - 1 - max(int(parent[start]), 0), 0)
        starts.append(start)
    return starts[::-1]


def alarms(trace: Info | Changes) -> np.ndarray:
    """The observations at which a change was reported, with each change listed once.

    Arguments:
        trace: the trace of `credo.run` for a learner with run lengths, or its `extras`.

    Returns:
        The indices of the observations, in order.

    Raises:
        CredoError: the trace reports no changes, or has no axis of time.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> learner = credo.RunLength(credo.GammaPoisson(), hazard=0.05, separation=2)
        >>> counts = jnp.array([1, 2, 1, 2, 1, 1, 30, 28, 31, 29])
        >>> belief, trace = credo.run(learner, learner.init(), None, counts)
        >>> credo.alarms(trace)
        array([6])
    """
    return np.flatnonzero(np.asarray(_changes(trace).alarm))


def _changes(trace: PyTree) -> Changes:
    """The report of changes in a trace, which may be nested in the reports of wrappers."""
    nodes = jax.tree.leaves(trace, is_leaf=lambda node: isinstance(node, Changes))
    reports = [node for node in nodes if isinstance(node, Changes)]
    if len(reports) != 1:
        count = "no changes" if not reports else f"the changes of {len(reports)} learners"
        raise CredoError(
            f"trace must be what credo.run returns for a RunLength or ChangeTimes; this one reports {count}."
        )
    shape = np.shape(reports[0].best_run_length)
    if len(shape) != 1:
        raise CredoError(f"trace must have one leading axis of time; got shape {shape}.")
    return reports[0]
