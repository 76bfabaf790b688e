"""Several weighted hypotheses about the world: the belief, its answers, and what a finished run says."""

from __future__ import annotations

from typing import Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt.nested import B, Mixture
from credo.core.errors import CredoError, require_integer
from credo.core.fields import field
from credo.core.records import record
from credo.core.types import Array, PyTree
from credo.learners import Info

__all__ = ["ChangeReport", "Changes", "Hypotheses", "Segments", "alarms", "segmentation"]

R = TypeVar("R", bound="ChangeReport")


class ChangeReport:
    """The base of all reports of changes.

    Attributes:
        change: P(something changed with this row, given all so far).
        alarm: whether this row is the first to report a change.
    """

    change: Array
    alarm: Array


@record
class Segments:
    """The past according to M hypotheses, with one entry for each hypothesis.

    Attributes:
        run_length: steps since the first observation of the current segment (M,); -1 before any observation.
        count: the number of changes so far (M,).
        best: the log probability of the likeliest past of the hypothesis (M,), up to a constant.
        parent: for a segment that begins now, the run length at which its likeliest predecessor ended (M,).
        times: the latest starts of segments, newest first (M, depth).

    Example:
        >>> import credo
        >>> learner = credo.RunLength(credo.BetaBernoulli(), hazard=0.1, capacity=2)
        >>> belief, _ = learner.step(learner.init(), None, 1.0)
        >>> belief.segments.run_length.shape
        (3,)
    """

    run_length: Array
    count: Array = field("nonnegative")
    best: Array = field("log probabilities")
    parent: Array
    times: Array


@record
class Changes(ChangeReport):
    """The report of a step on changes: the `extras` of the `Info` of `RunLength` and `ChangeTimes`.

    Attributes:
        change: P(a segment began with this observation, given all so far); 1 at the very first one.
        run_length: the expected run length.
        map_run_length: the likeliest run length.
        best_run_length: the run length in the likeliest past (for `segmentation`).
        parent_run_length: if a segment began here, the run length at which the one before it ended.
        pruned: the probability of the hypotheses that were dropped in this step.
        alarm: whether this observation is the first to report a change.
        hypotheses: how many hypotheses have a probability above 0.

    Example:
        >>> import credo
        >>> learner = credo.RunLength(credo.BetaBernoulli(), hazard=0.1)
        >>> belief, info = learner.step(learner.init(), None, 1.0)
        >>> float(info.extras.change), int(info.extras.hypotheses)
        (1.0, 1)
    """

    change: Array
    run_length: Array
    map_run_length: Array
    best_run_length: Array
    parent_run_length: Array
    pruned: Array
    alarm: Array
    hypotheses: Array


@record
class Hypotheses(Mixture[B], Generic[B]):
    """M hypotheses about the auxiliary variable, each with a belief of its own.

    Attributes:
        log_weights: log probabilities (M,), which sum to one; -inf for an empty slot.
        beliefs: the beliefs, as one belief whose arrays have a leading axis M.
        segments: what the hypotheses say about the past.
        prior: the belief before any data.
        reported: the start of the segment that an alarm reported last.
        t: how many times `predict` has been called.

    Example:
        >>> import credo
        >>> learner = credo.RunLength(credo.BetaBernoulli(), hazard=0.1)
        >>> belief, _ = credo.run(learner, learner.init(), None, jnp.array([1, 1, 1]))
        >>> int(belief.map_run_length), belief.run_length_probs(4).shape
        (2, (4,))
    """

    log_weights: Array = field("log weights", weighs="beliefs")
    beliefs: B
    segments: Segments
    prior: B
    reported: Array
    t: Array

    @property
    def change_probability(self) -> Array:
        """The probability that the latest observation began a segment.

        On a predicted belief, it is the probability that the next observation does.
        """
        return jnp.sum(jnp.where(self.segments.run_length == 0, self.weights, 0.0))

    @property
    def expected_run_length(self) -> Array:
        """E[run length]."""
        lengths = jnp.maximum(self.segments.run_length, 0).astype(self.log_weights.dtype)
        return jnp.sum(self.weights * lengths)

    @property
    def map_run_length(self) -> Array:
        """The likeliest run length, where hypotheses of the same length are added up."""
        lengths = self.segments.run_length
        same = lengths[:, None] == lengths[None, :]
        return lengths[jnp.argmax(jnp.where(same, self.weights[None, :], 0.0).sum(axis=1))]

    def run_length_probs(self, size: int) -> Array:
        """The distribution of the run length.

        Arguments:
            size: how many run lengths to distinguish, at least 1.

        Returns:
            P(run length = 0, ..., size - 1), of shape (size,); longer ones are added to the last.

        Raises:
            CredoError: `size` is not a whole number above 0.
        """
        require_integer("size", size, 1)
        return (
            jnp.zeros(size, self.log_weights.dtype)
            .at[jnp.clip(self.segments.run_length, 0, size - 1)]
            .add(self.weights)
        )


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
    changes = _reports(trace, Changes)
    best = np.asarray(changes.best_run_length)
    parent = np.asarray(changes.parent_run_length)
    end = len(best) if upto is None else upto
    if not 1 <= end <= len(best):
        raise CredoError(f"upto must be in 1..{len(best)}; got {upto!r}.")
    start = end - 1 - max(int(best[end - 1]), 0)
    starts = [start]
    while start > 0:
        start = max(start - 1 - max(int(parent[start]), 0), 0)
        starts.append(start)
    return starts[::-1]


def alarms(trace: Info | ChangeReport) -> np.ndarray:
    """The observations at which a change was reported, with each change listed once.

    Arguments:
        trace: the trace of `credo.run` for a learner that reports changes, or its `extras`.

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
    return np.flatnonzero(np.asarray(_reports(trace, ChangeReport).alarm))


def _reports(trace: PyTree, kind: type[R]) -> R:
    """The report of changes in a trace, which may be nested in the reports of wrappers."""
    nodes = jax.tree.leaves(trace, is_leaf=lambda node: isinstance(node, kind))
    reports = [node for node in nodes if isinstance(node, kind)]
    if len(reports) != 1:
        count = "no changes" if not reports else f"the changes of {len(reports)} learners"
        watched = ", or for a Monitored" if kind is ChangeReport else ""
        raise CredoError(
            f"trace must be what credo.run returns for a RunLength or ChangeTimes{watched}; "
            f"this one reports {count}."
        )
    shape = np.shape(reports[0].alarm)
    if len(shape) != 1:
        raise CredoError(f"trace must have one leading axis of time; got shape {shape}.")
    return reports[0]
