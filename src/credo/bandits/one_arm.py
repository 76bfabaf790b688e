"""Updates of one arm's part of a belief, if every arm has a learner of its own.

An update of an agent returns a belief about all arms, of which nearly all is as it was. Here the part of one
arm is taken out, learns, and comes back alone, so that an update costs what one arm costs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from credo.adapt import Bank, Experts, NoiseScaled
from credo.bandits.designs import ArmBeliefs, ArmsDesign
from credo.bandits.rewards import AgentBelief, Rewards
from credo.core.groups import Groups
from credo.core.records import record, replace
from credo.core.types import Array, ArrayLike, PyTree
from credo.learners import Info, Learner

__all__ = ["STAYS", "WHOLE", "ArmStep", "arm_axes", "has_arms", "learn_one_arm", "put_arm"]

# In place of an axis: an array that is no part of an arm, and one that no update changes.
WHOLE = -1
STAYS = -2


@record
class OneArm(ArmBeliefs[Any]):
    """The belief about one arm, with an axis of length 1 in place of K, and whether it is the prior, to which
    an expert that fails returns with all of its arms.
    """

    fresh: Array


class ArmStep(NamedTuple):
    """The changes that a reward makes.

    Attributes:
        before: the belief after the time update.
        after: the belief after the reward; an array that all arms share an axis of has that of the arm alone.
        info: what the update reports.
        more: whether the update changed other arms as well, so that `after` is not all of it.
    """

    before: AgentBelief[Any]
    after: AgentBelief[Any]
    info: Info
    more: Array


def has_arms(learner: Learner[Any]) -> bool:
    """Whether a learner of pairs (context, arm) learns arms apart: an `ArmsDesign`, or `Experts` of such."""
    if isinstance(learner, NoiseScaled):
        return has_arms(learner.learner)
    if isinstance(learner, Experts):
        bank = learner.bank
        return all(map(has_arms, bank.parts if isinstance(bank, Groups) else (bank,)))
    return isinstance(learner, ArmsDesign)


def _is_part(node: object) -> bool:
    return isinstance(node, Bank | ArmBeliefs)


def arm_axes(belief: AgentBelief[Any]) -> Any:
    """A tree like the belief, with the axis of the arms of each array, `WHOLE` or `STAYS`."""

    def axes(part: Any) -> Any:
        if isinstance(part, ArmBeliefs):
            axis = jnp.ndim(part.t)
            return replace(part, beliefs=jax.tree.map(lambda _: axis, part.beliefs), t=WHOLE)
        if isinstance(part, Bank):
            inside = jax.tree.map(axes, part.beliefs, is_leaf=_is_part)
            around = jax.tree.map(lambda _: WHOLE, replace(part, beliefs=None, priors=None))
            return replace(around, beliefs=inside, priors=jax.tree.map(lambda _: STAYS, part.priors))
        return WHOLE

    return jax.tree.map(axes, belief, is_leaf=_is_part)


def put_arm(axis: int, all_arms: Array, one: Array, arm: ArrayLike) -> Array:
    """An array of all arms with another part of one arm, which has an axis of length 1; `one` itself where
    there is no axis of arms.
    """
    if axis < 0:
        return one
    put: Array = jax.lax.dynamic_update_slice_in_dim(all_arms, one.astype(all_arms.dtype), arm, axis)
    return put


def learn_one_arm(
    rewards: Rewards[Any],
    belief: AgentBelief[Any],
    pair: tuple[PyTree, Array],
    reward: ArrayLike,
    weight: ArrayLike,
    key: Array,
) -> ArmStep:
    """`Rewards.step`, of which only that comes back which changes; for learners that `has_arms`.

    Arguments:
        rewards: the learner of rewards.
        belief: the belief before.
        pair: the context and the arm.
        reward, weight, key: as for `Agent.update`.
    """
    later: AgentBelief[Any] = rewards.time_update(belief, None)
    near = replace(later, belief=_taken(later.belief, pair[1]))
    learned, info = rewards.observe(near, pair, reward, weight, key, alone=True)
    inner, fresh = _returned(learned.belief, later.belief)
    more = jnp.any(jnp.stack(fresh))
    if belief.units is not None and learned.units is not None:
        # by the reward that makes the units known, all those are learned that waited
        first = (belief.units.known[1] <= 0) & (learned.units.known[1] != belief.units.known[1])
        more = more | first
    return ArmStep(later, replace(learned, belief=inner), info, more)


def _taken(belief: Any, arm: Array) -> Any:
    """The part of an arm. What knows one arm alone finds it under every number, since JAX takes the nearest
    place there is. The prior is told from it by `fresh`, and needs no numbers of its own.
    """

    def take(part: Any) -> Any:
        if isinstance(part, Bank):
            own = jax.tree.map(take, part.beliefs, is_leaf=_is_part)
            return replace(part, beliefs=own, priors=_marked(own))
        if not isinstance(part, ArmBeliefs):
            return part
        axis = jnp.ndim(part.t)
        beliefs = jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, arm, 1, axis), part.beliefs)
        return OneArm(beliefs, part.t, jnp.zeros(jnp.shape(part.t), bool))

    return jax.tree.map(take, belief, is_leaf=_is_part)


def _marked(belief: Any) -> Any:
    """The belief as a prior."""

    def mark(part: Any) -> Any:
        if isinstance(part, OneArm):
            return replace(part, fresh=jnp.ones_like(part.fresh))
        return part

    return jax.tree.map(mark, belief, is_leaf=lambda node: isinstance(node, OneArm))


def _returned(near: Any, later: Any) -> tuple[Any, list[Array]]:
    """The belief again from the part of an arm, with the priors of all arms, and where it is a prior."""
    fresh: list[Array] = []

    def back(part: Any, whole: Any) -> Any:
        if isinstance(part, Bank):
            own = jax.tree.map(back, part.beliefs, whole.beliefs, is_leaf=_is_part)
            return replace(part, beliefs=own, priors=whole.priors)
        if not isinstance(part, OneArm):
            return part
        fresh.append(jnp.any(part.fresh))
        return ArmBeliefs(part.beliefs, part.t)

    return jax.tree.map(back, near, later, is_leaf=_is_part), fresh
