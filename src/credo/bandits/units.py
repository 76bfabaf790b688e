"""The units of rewards: what the first rewards say, so that no prior depends on euros or cents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from credo.adapt import RunningMoments
from credo.core.fields import field, nonnegative_at
from credo.core.outlying import FAR
from credo.core.records import record, replace
from credo.core.trees import blank_row, select
from credo.core.types import Array, ArrayLike, DTypeLike, PyTree
from credo.learners import Info

__all__ = ["REWARD_SD", "LearnedUnits", "Row", "learn_in_units", "numbers_of"]

REWARD_SD = 0.4
"""The standard deviation of the first rewards in the units in which rewards are learned. That of rewards of 0
and 1 is about this, and for them the priors and the noise of the default agent were chosen."""

WARMUP = 10
"""The number of rewards from which their units are found."""

ROOM = 2 * WARMUP - 1
"""The most rewards that may wait: ten that are all alike, and nine that are not."""


def numbers_of(context: PyTree) -> PyTree:
    """A context as it waits with its reward: an array of no numbers where the world has no contexts."""
    if context is None:
        return jnp.zeros(0)
    return context


class Row(NamedTuple):
    """A reward to be learned: the context as the design takes it, the arm, the reward and its weight."""

    inputs: PyTree
    arm: Array
    reward: Array
    weight: Array


@record
class FirstRewards:
    """The first rewards, which wait until their units are known: their contexts, leaves (R, ...), and arm,
    reward and weight of each (R, 3), the weight 0 if none waits.
    """

    context: PyTree = field(raw=True)
    rows: Array = field(nonnegative_at([2], "weights"), raw=True)

    @staticmethod
    def empty(context: PyTree, dtype: DTypeLike) -> FirstRewards:
        """Room for rewards of contexts like this one."""
        blank = jax.tree.map(lambda leaf: jnp.zeros((ROOM, *jnp.shape(leaf)), dtype), context)
        return FirstRewards(blank, jnp.zeros((ROOM, 3), dtype))

    def init_arguments(self) -> dict[str, PyTree]:
        """The arguments of `init` that a belief with this part began from: a context, by its shapes."""
        return {"context": blank_row(self.context, 1)}

    @property
    def filled(self) -> Array:
        """The number of rewards that wait."""
        return jnp.sum(self.rows[:, 2] > 0, dtype=jnp.int32)

    def gap(self, reward: Array) -> Array:
        """The gap between the two values of these rewards and one more; 0 if there are not two."""
        waits = self.rows[:, 2] > 0
        values = self.rows[:, 1]
        low = jnp.minimum(jnp.min(jnp.where(waits, values, jnp.inf)), reward)
        high = jnp.maximum(jnp.max(jnp.where(waits, values, -jnp.inf)), reward)
        two = jnp.all(~waits | (values == low) | (values == high))
        return jnp.where(two, high - low, 0.0)

    @property
    def alike(self) -> Array:
        """The number of first rewards that are all alike, if there are ten or more; otherwise 0."""
        waits = self.rows[:, 2] > 0
        same = waits & (self.rows[:, 1] == self.rows[0, 1])
        length = jnp.sum(jnp.cumprod(same.astype(jnp.int32)), dtype=jnp.int32)
        return jnp.where(length >= WARMUP, length, 0)

    def keep(self, row: Row, room: Array) -> FirstRewards:
        """The rewards with one more; if there is no room for so many, the oldest goes."""
        kind = self.rows.dtype
        full = self.filled >= room
        place = jnp.minimum(self.filled, room - 1)

        def put(leaves: Array, leaf: ArrayLike) -> Array:
            later = jnp.roll(leaves, -1, axis=0).at[-1].set(0)
            return jnp.where(full, later, leaves).at[place].set(jnp.asarray(leaf, kind))

        own = jnp.stack([part.astype(kind) for part in (row.arm, row.reward, row.weight)])
        return FirstRewards(jax.tree.map(put, self.context, row.inputs), put(self.rows, own))

    def without(self, arm: int) -> FirstRewards:
        """The rewards of the other arms, in their order."""
        lost = self.rows[:, 0].astype(jnp.int32) == arm
        rows = self.rows.at[:, 2].set(jnp.where(lost, 0.0, self.rows[:, 2]))
        order = jnp.argsort(rows[:, 2] <= 0, stable=True)
        return FirstRewards(jax.tree.map(lambda leaf: leaf[order], self.context), rows[order])

    def at(self, place: Array) -> Row:
        """One of the rewards."""
        arm, reward, weight = self.rows[place]
        context = jax.tree.map(lambda leaf: leaf[place], self.context)
        return Row(context, arm.astype(jnp.int32), reward, weight)


@record
class LearnedUnits:
    """The learned units of rewards: the location and the scale of z = (reward - location) / scale.

    The scale is the standard deviation of the first ten rewards, divided by `REWARD_SD`, and the location
    their mean. If these have two values only, as rewards of 0 and 1 do, the scale is at least the gap between
    them: of a value that is rare, chance alone makes the standard deviation of ten rewards half as large or
    twice as large. If the first ten are all alike, they say nothing: units come from the first that differs
    and the nine after it. Those that were alike are learned with them if all together have two values, and
    otherwise they are left out, since they are no draws of what came later. Then both stay, since an agent
    that improves must not move the zero of what it learned. They begin again where ten rewards in a row are
    far from all others, which are other units for good (`credo.adapt.RunningMoments`). `known` holds both
    (2,); the scale is 0 until they are known.
    """

    moments: RunningMoments
    known: Array = field(nonnegative_at([1], "a scale"))
    first: FirstRewards

    @staticmethod
    def start(context: PyTree, dtype: DTypeLike) -> LearnedUnits:
        """Nothing is known, and contexts are like this one."""
        moments = RunningMoments.empty((), dtype)
        return LearnedUnits(moments, jnp.zeros(2, dtype), FirstRewards.empty(context, dtype))

    @property
    def location(self) -> Array:
        """The reward that is 0 in these units; the mean so far until they are known."""
        return jnp.where(self.known[1] > 0, self.known[0], self.moments.mean)

    @property
    def scale(self) -> Array:
        """The size of a unit; until it is known that of the spread so far, or 1."""
        so_far = jnp.where(self.moments.known, self.moments.sd / REWARD_SD, 1.0)
        return jnp.where(self.known[1] > 0, self.known[1], so_far)

    def observe(self, row: Row) -> tuple[LearnedUnits, Array]:
        """The units after a reward, and whether they are known for the first time."""
        reward = jnp.where(row.weight > 0, row.reward, jnp.nan)
        moments = self.moments.observe(reward)
        ready = self.known[1] > 0
        again = moments.restarts > self.moments.restarts
        alike = ~ready & (self.moments.count >= WARMUP) & ~self.moments.known
        differs = alike & moments.known
        begun = RunningMoments.empty((), moments.values.dtype).observe(reward)
        moments = select(differs, begun, moments)
        gap = jnp.where(ready, 0.0, self.first.gap(reward))
        now = ~ready & (moments.count >= WARMUP) & (moments.known | (gap > 0))
        fresh = jnp.stack([moments.mean, jnp.maximum(moments.sd / REWARD_SD, gap)])
        known = jnp.where(now | (ready & again), fresh, self.known)
        room = jnp.where(alike & ~differs, WARMUP, ROOM)
        first = select(ready | now | ~(row.weight > 0), self.first, self.first.keep(row, room))
        return LearnedUnits(moments, known, first), now

    def emptied(self, now: Array) -> LearnedUnits:
        """The units without first rewards, where these were learned now."""
        return replace(self, first=replace(self.first, rows=jnp.where(now, 0.0, self.first.rows)))


def learn_in_units(
    learn: Callable[[Any, Row], tuple[Any, Info]],
    belief: Any,
    units: LearnedUnits,
    row: Row,
    *,
    alone: bool = False,
) -> tuple[Any, LearnedUnits, Info]:
    """Learn a reward in its units, or let it wait; if it makes the units known, learn all that waited, or
    with `alone` none of these. The result is the belief, the units, and what the last update reported, in the
    reward's own units; a reward that waits reports no evidence.

    One beyond eight standard deviations is learned as eight, and with its full weight: a reward that is rare
    and large is what an agent looks for.
    """
    after, now = units.observe(row)
    location = after.location
    scale = after.scale
    ready = after.known[1] > 0
    waiting = units.first.filled
    unlike = units.first.gap(row.reward) == 0
    skipped = jnp.where(now & unlike, units.first.alike, 0)
    belief = jax.tree.map(jnp.asarray, belief)

    def in_units(inner: Any, row: Row) -> tuple[Any, Info]:
        away = jnp.clip((row.reward - location) / scale, -FAR * REWARD_SD, FAR * REWARD_SD)
        learned, info = learn(inner, row._replace(reward=away))
        return _alike(learned, inner), info

    def trip(state: tuple[Array, Any, Info]) -> tuple[Array, Any, Info]:
        number, inner, _ = state
        old = now & (number < waiting)
        early = units.first.at(jnp.minimum(number, ROOM - 1))
        learned, info = in_units(inner, select(old, _alike(early, row), row))
        return number + 1, learned, _alike(info, blank)

    shapes = jax.eval_shape(lambda inner: learn(inner, row)[1], belief)
    blank: Info = jax.tree.map(lambda like: jnp.zeros(like.shape, like.dtype), shapes)
    blank = replace(blank, ok=jnp.asarray(True))
    if alone:
        trips = ready.astype(jnp.int32)
        learned, info = in_units(belief, row)
        belief, info = select(ready, (learned, _alike(info, blank)), (belief, blank))
    else:
        trips = jnp.where(now, waiting + 1, ready.astype(jnp.int32))
        start = (skipped, belief, blank)
        _, belief, info = jax.lax.while_loop(lambda state: state[0] < trips, trip, start)
    own = info.log_evidence - jnp.log(scale).astype(info.log_evidence.dtype)
    evidence = jnp.where((trips > 0) & info.ok & (row.weight > 0), own, 0.0)
    return belief, after.emptied(now), replace(info, log_evidence=evidence)


def _alike(tree: Any, like: Any) -> Any:
    """The tree with the dtypes of another."""
    return jax.tree.map(lambda leaf, other: jnp.asarray(leaf, jnp.asarray(other).dtype), tree, like)
