"""The belief of several weighted hypotheses about the world, and what can be asked of it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as jss

from credo.adapt.wrapped import Mixture
from credo.core.errors import require_integer
from credo.core.records import record

__all__ = ["Changes", "Hypotheses", "Segments", "floating", "log_sum", "normalized"]


@record
class Segments:
    """What M hypotheses say of the past: one entry a hypothesis.

    Attributes:
        run_length: steps since the first observation of the current segment (M,); -1 before any observation.
        count: how many changes there were (M,).
        best: the log probability of the hypothesis's likeliest past (M,), up to a constant.
        parent: for a segment that begins now, the run length at which its likeliest predecessor ended (M,).
        times: the latest starts of segments, newest first (M, depth).
    """

    run_length: jax.Array
    count: jax.Array
    best: jax.Array
    parent: jax.Array
    times: jax.Array


@record
class Changes:
    """What a step says of changes; the `extras` of an `Info`.

    Attributes:
        change: P(a segment began with this observation, given all so far); 1 at the very first one.
        run_length: the expected run length.
        map_run_length: the likeliest run length.
        best_run_length: the run length in the likeliest past (for `segmentation`).
        parent_run_length: if a segment began here, the run length at which the one before it ended.
        pruned: the probability of the hypotheses that were dropped in this step.
        alarm: whether a change is reported, for the first time, with this observation.
        hypotheses: how many have a probability above 0.
    """

    change: jax.Array
    run_length: jax.Array
    map_run_length: jax.Array
    best_run_length: jax.Array
    parent_run_length: jax.Array
    pruned: jax.Array
    alarm: jax.Array
    hypotheses: jax.Array


@record
class Hypotheses(Mixture):
    """M hypotheses about the auxiliary variable, each with a belief of its own.

    Attributes:
        log_weights: log probabilities (M,), which sum to one; -inf for an empty slot.
        beliefs: the beliefs, as one belief whose arrays have a leading axis M.
        segments: what the hypotheses say of the past.
        prior: the belief before any data.
        reported: when the segment began that was last reported by an alarm.
        t: how many times `predict` has been called.
    """

    log_weights: jax.Array
    beliefs: Any
    segments: Segments
    prior: Any
    reported: jax.Array
    t: jax.Array

    @property
    def change_probability(self) -> jax.Array:
        """P(the latest observation began a segment); on a predicted belief, P(the next one does)."""
        return jnp.sum(jnp.where(self.segments.run_length == 0, self.weights, 0.0))

    @property
    def expected_run_length(self) -> jax.Array:
        """E[run length]."""
        lengths = jnp.maximum(self.segments.run_length, 0).astype(self.log_weights.dtype)
        return jnp.sum(self.weights * lengths)

    @property
    def map_run_length(self) -> jax.Array:
        """The likeliest run length; hypotheses of the same length are added up."""
        lengths = self.segments.run_length
        same = lengths[:, None] == lengths[None, :]
        return lengths[jnp.argmax(jnp.where(same, self.weights[None, :], 0.0).sum(axis=1))]

    def run_length_probs(self, size: int) -> jax.Array:
        """P(run length = 0, ..., size - 1), (size,); longer ones are added to the last."""
        require_integer("size", size, 1)
        return (
            jnp.zeros(size, self.log_weights.dtype)
            .at[jnp.clip(self.segments.run_length, 0, size - 1)]
            .add(self.weights)
        )


def floating(belief: Any) -> Any:
    """The floating-point dtype of a belief."""
    kinds = [jnp.asarray(leaf).dtype for leaf in jax.tree.leaves(belief)]
    found = [kind for kind in kinds if jnp.issubdtype(kind, jnp.floating)]
    return max(found, key=lambda kind: jnp.finfo(kind).bits) if found else jnp.zeros(()).dtype


def log_sum(logs: jax.Array, axis: int | None = None) -> jax.Array:
    """logsumexp, whose derivative is 0 where everything is -inf."""
    dead = jnp.max(logs, axis=axis) == -jnp.inf
    wide = dead if axis is None else jnp.expand_dims(dead, axis)
    return jnp.where(dead, -jnp.inf, jss.logsumexp(jnp.where(wide, 0.0, logs), axis=axis))


def normalized(log_weights: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Log weights that sum to one, and the log of the sum before; where nothing is alive they stay -inf."""
    total = log_sum(log_weights)
    return jnp.where(total > -jnp.inf, log_weights - total, log_weights), total
