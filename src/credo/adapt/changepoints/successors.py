"""Whose successor a new segment is: of all hypotheses together, of those that count alike, or of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import jax
import jax.numpy as jnp

from credo.adapt.changepoints.hypotheses import Hypotheses
from credo.adapt.moments import collapse
from credo.adapt.nested import B
from credo.core.records import record
from credo.core.types import Array

__all__ = ["SingleSuccessor", "SuccessorByCount", "SuccessorOfEach", "Successors"]


class Successors(ABC):
    """Which segments may begin at a step, and from which hypotheses each of them comes."""

    apart: ClassVar[bool] = False
    """Whether every successor has one parent only, so that hypotheses with different pasts stay apart."""

    @abstractmethod
    def births(self, capacity: int) -> int:
        """How many segments may begin at a step, where `capacity` hypotheses are kept."""

    @abstractmethod
    def groups(self, belief: Hypotheses[B], births: int, alive: Array, ending: Array) -> Array:
        """The log weights that the parents bring into each successor (births, M); -inf for no parent.

        `alive` are those of the hypotheses (M,), -inf where a slot is free; `ending`, of those that end now.
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
