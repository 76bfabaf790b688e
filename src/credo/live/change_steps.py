"""Reports about changes from a drift that is a wrapper, row by row."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt import Bank, Changes, Hypotheses, Resettable, WatchedChanges
from credo.adapt.nested import within
from credo.core.records import record
from credo.learners import Info
from credo.recipes.assembly import Belief

__all__ = ["Steps", "collect", "join"]


@record
class Steps:
    """The reports on changes at each of n rows.

    Attributes:
        probs: the probability of each hypothesis or expert (n, K).
        lengths: the run length of each hypothesis, or the number of each expert, -1 if it failed (n, K).
        change: P(a segment began with the row) (n,); around a bank, P(losses became larger within the latest
            100 rows); 0 for experts.
        alarm: whether a change was reported (n,).
        began: how many rows before this one the reported segment began (n,).

    Example:
        >>> Steps(np.ones((3, 1)), np.zeros((3, 1)), np.zeros(3), np.zeros(3, bool), np.zeros(3)).size
        3
    """

    probs: jax.Array | np.ndarray
    lengths: jax.Array | np.ndarray
    change: jax.Array | np.ndarray
    alarm: jax.Array | np.ndarray
    began: jax.Array | np.ndarray

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.change)


def collect(belief: Belief, info: Info) -> Steps:
    """The steps of one row, of the belief after it and the `Info` of its update, which may be traced."""
    zero = jnp.zeros((), jnp.int32)
    if isinstance(belief, Hypotheses):
        lengths = belief.segments.run_length
        report = info.extras
        assert isinstance(report, Changes)
        back = jnp.where(report.alarm, belief.t - belief.reported, 0)
        # The first row begins the first segment, which is no change.
        change = jnp.where(belief.t > 1, report.change, 0.0)
        return Steps(belief.weights, lengths, change, report.alarm, back)
    bank = within(belief, Bank)
    if bank is not None:
        weights = bank.weights
        numbers = jnp.arange(len(weights), dtype=jnp.int32)
        # Only an expert that failed, and began again, has no weight at all.
        failed = info.ok & jnp.isneginf(bank.log_weights)
        numbers = jnp.where(failed, -1, numbers)
        report = info.extras
        if not isinstance(report, WatchedChanges):
            return Steps(weights, numbers, jnp.zeros((), weights.dtype), jnp.zeros((), bool), zero)
        return Steps(weights, numbers, report.recent, report.alarm, report.began)
    assert isinstance(belief, Resettable)
    reset = info.ok & (belief.run_length == 0) & (belief.retention == 0)
    change = jnp.where(info.ok, jnp.asarray(info.extras), 0.0)
    return Steps(jnp.ones(1, change.dtype), belief.run_length[None], change, reset, zero)


def join(chunks: Sequence[Steps]) -> Steps | None:
    """The steps of several chunks, one after the other; None if there are none."""
    if not chunks:
        return None
    steps: Steps = jax.tree.map(lambda *leaves: np.concatenate(leaves), *chunks)
    return steps
