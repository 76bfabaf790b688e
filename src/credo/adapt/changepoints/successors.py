"""Predecessors of a new segment, and the fate of hypotheses for which there is no room.

A segment may follow all hypotheses together, those that count alike, or one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal, NamedTuple, TypeAlias, TypeVar, get_args

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt.changepoints.hypotheses import Hypotheses
from credo.adapt.moments import collapse, normalized
from credo.adapt.nested import B
from credo.core.errors import CredoError
from credo.core.keys import require_key
from credo.core.records import record
from credo.core.types import Array, Key

__all__ = [
    "OVERFLOWS",
    "Overflow",
    "SingleSuccessor",
    "SuccessorByCount",
    "SuccessorOfEach",
    "Successors",
    "thin",
]


class Successors(ABC):
    """Which segments may begin at a step, and from which hypotheses each of them comes."""

    apart: ClassVar[bool] = False
    """Whether every successor has one parent only, so that hypotheses with different pasts stay apart."""

    @abstractmethod
    def births(self, capacity: int) -> int:
        """The number of segments that may begin at a step, where `capacity` hypotheses are kept."""

    @abstractmethod
    def groups(self, belief: Hypotheses[B], births: int, alive: Array, ending: Array) -> Array:
        """The log weights that the parents bring into each successor (births, M); -inf for no parent.

        `alive` are those of the hypotheses (M,), -inf if a slot is free; `ending`, of those that end now.
        """

    def parents(self, belief: Hypotheses[B], groups: Array, likeliest: Array) -> B:
        """The belief before the change, of each successor: the mixture of its parents, by moments."""
        return jax.vmap(lambda weights: collapse(weights, belief.beliefs))(groups)


@record
class SingleSuccessor(Successors):
    """One new segment, whichever hypothesis ends: all that matters of the past is when it began."""

    def births(self, capacity: int) -> int:
        """One."""
        return 1

    def groups(self, belief: Hypotheses[B], births: int, alive: Array, ending: Array) -> Array:
        """All hypotheses are parents."""
        return ending[None, :]


@record
class SuccessorByCount(Successors):
    """One new segment for each number of changes so far: for a hazard that is learned from it."""

    def births(self, capacity: int) -> int:
        """As many as are kept: each may have a count of its own."""
        return capacity

    def groups(self, belief: Hypotheses[B], births: int, alive: Array, ending: Array) -> Array:
        """The hypotheses with the same count are the parents of one successor."""
        counts = belief.segments.count
        heads = jnp.argsort(belief.log_weights)[births:]
        same = counts[heads][:, None] == counts[None, :]
        earlier = jnp.tril(counts[heads][:, None] == counts[heads][None, :], -1)
        living = alive[heads] > -jnp.inf
        first = living & ~jnp.any(earlier & living[None, :], axis=1)
        return jnp.where(same & first[:, None], ending[None, :], -jnp.inf)


@record
class SuccessorOfEach(Successors):
    """One new segment for each hypothesis: hypotheses are sets of changepoints."""

    apart: ClassVar[bool] = True

    def births(self, capacity: int) -> int:
        """As many as are kept."""
        return capacity

    def groups(self, belief: Hypotheses[B], births: int, alive: Array, ending: Array) -> Array:
        """Each successor has one parent."""
        parents = jnp.argsort(belief.log_weights)[births:]
        slots = jnp.arange(belief.log_weights.shape[0])
        return jnp.where(slots[None, :] == parents[:, None], ending[None, :], -jnp.inf)

    def parents(self, belief: Hypotheses[B], groups: Array, likeliest: Array) -> B:
        """The belief of the only parent."""
        parents: B = jax.tree.map(lambda leaf: leaf[likeliest], belief.beliefs)
        return parents


T = TypeVar("T")

Overflow: TypeAlias = Literal["drop", "merge", "resample"]
"""The treatment of hypotheses for which there is no room."""

OVERFLOWS: tuple[Overflow, ...] = get_args(Overflow)
"""All ways to handle an overflow."""


class _Crowd(NamedTuple):
    """M hypotheses, of which at most `capacity` may stay."""

    log_weights: Array
    run_length: Array
    urgent: Array
    capacity: int


def thin(
    overflow: Overflow,
    log_weights: Array,
    beliefs: T,
    run_length: Array,
    urgent: Array,
    capacity: int,
    key: Key | None,
) -> tuple[Array, T, Array]:
    """Keep at most `capacity` of M hypotheses: log weights of sum one, the beliefs, the probability dropped.

    "drop" keeps the heaviest; "resample" draws among the light ones so that every weight is right on average
    (Fearnhead & Liu 2007); "merge" folds the lightest into the one of the nearest run length, by moments,
    where only one is too many. Those that are `urgent` (M,) are kept as long as there is room.
    """
    crowd = _Crowd(log_weights, run_length, urgent, capacity)
    if overflow == "merge":
        return _merge(crowd, beliefs)
    if overflow == "resample":
        survivors, pruned = _resample(crowd, require_key(key, "overflow='resample'"))
    else:
        survivors, pruned = _drop(crowd)
    return survivors, beliefs, pruned


def _heaviest(log_weights: Array, urgent: Array, capacity: int) -> Array:
    """Which hypotheses are the heaviest, urgent ones first."""
    alive = log_weights > -jnp.inf
    rank = jnp.where(urgent & alive, log_weights + 1e6, log_weights)
    size = log_weights.shape[0]
    if size == capacity + 1:
        return jnp.arange(size) != jnp.argmin(rank)
    return jnp.zeros(size, bool).at[jax.lax.top_k(rank, capacity)[1]].set(True)


def _drop(crowd: _Crowd) -> tuple[Array, Array]:
    log_weights = crowd.log_weights
    keep = _heaviest(log_weights, crowd.urgent, crowd.capacity)
    pruned = jnp.sum(jnp.where(keep, 0.0, jnp.exp(log_weights)))
    return normalized(jnp.where(keep, log_weights, -jnp.inf))[0], pruned


def _resample(crowd: _Crowd, key: Array) -> tuple[Array, Array]:
    """Stratified optimal resampling: with sum_k min(w_k / c, 1) = capacity, weights above c stay as they are
    and the others survive with probability w / c and weigh c.
    """
    log_weights = crowd.log_weights
    capacity = crowd.capacity
    weights = jnp.exp(log_weights)
    size = weights.shape[0]
    dtype = weights.dtype
    falling = jnp.sort(weights)[::-1]
    # With the A heaviest kept as they are, c = (the rest's sum) / (capacity - A).
    rest = jnp.maximum(1.0 - jnp.concatenate([jnp.zeros(1, dtype), jnp.cumsum(falling)[:-1]]), 0.0)
    room = capacity - jnp.arange(size)
    level = jnp.where(room > 0, rest / jnp.maximum(room, 1).astype(dtype), jnp.inf)
    fits = (room > 0) & (falling <= level)
    threshold = jnp.where(jnp.any(fits), level[jnp.argmax(fits)], 0.0)
    light = (weights < threshold) & (weights > 0)
    chances = jnp.cumsum(jnp.where(light, weights / jnp.where(threshold > 0, threshold, 1.0), 0.0))
    start = jax.random.uniform(key, (), dtype)
    # One survivor for each whole number that u + (the running sum) passes.
    passed = jnp.floor(chances + start) > jnp.floor(
        jnp.concatenate([jnp.zeros(1, dtype), chances[:-1]]) + start
    )
    redrawn = jnp.where(light & passed, jnp.log(threshold), -jnp.inf)
    survivors = jnp.where(light, redrawn, log_weights)
    few = jnp.sum((weights > 0).astype(jnp.int32)) <= capacity
    survivors = jnp.where(few, log_weights, survivors)
    # Rounding may leave one too many.
    keep = _heaviest(survivors, jnp.zeros_like(crowd.urgent), capacity)
    survivors = jnp.where(keep, survivors, -jnp.inf)
    pruned = jnp.sum(jnp.where(survivors > -jnp.inf, 0.0, weights))
    return normalized(survivors)[0], pruned


def _merge(crowd: _Crowd, beliefs: T) -> tuple[Array, T, Array]:
    log_weights = crowd.log_weights
    run_length = crowd.run_length
    if log_weights.shape[0] != crowd.capacity + 1:
        raise CredoError(
            "overflow='merge' needs run lengths with one successor (a hazard that is not learned)."
        )
    keep = _heaviest(log_weights, crowd.urgent, crowd.capacity)
    lost = jnp.argmin(keep)
    near = keep & (log_weights > -jnp.inf)
    far = np.iinfo(run_length.dtype).max
    host = jnp.argmin(jnp.where(near, jnp.abs(run_length - run_length[lost]), far))
    pair = jnp.stack([host, lost])
    both = jax.tree.map(lambda leaf: leaf[pair], beliefs)
    full = log_weights[lost] > -jnp.inf
    mixture = collapse(log_weights[pair], both)
    beliefs = jax.tree.map(
        lambda leaf, one: leaf.at[host].set(jnp.where(full, one, leaf[host])), beliefs, mixture
    )
    total = jnp.logaddexp(log_weights[host], log_weights[lost])
    rest = jnp.where(keep, log_weights, -jnp.inf)
    survivors = rest.at[host].set(jnp.where(full, total, log_weights[host]))
    return survivors, beliefs, jnp.zeros((), log_weights.dtype)
