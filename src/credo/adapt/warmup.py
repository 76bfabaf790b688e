"""Learn targets in units of their own spread, once it is known: the first rows wait until then."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple

import jax
import jax.numpy as jnp

from credo.adapt.nested import B
from credo.adapt.running_moments import RunningMoments, farthest
from credo.core.errors import CredoError
from credo.core.fields import field, nonnegative_at
from credo.core.outlying import FAR
from credo.core.records import record
from credo.core.trees import as_like, select
from credo.core.types import Array, ArrayLike, DTypeLike, Key, PyTree
from credo.learners import Info, Learner
from credo.likelihoods.rescaled import FARTHEST

__all__ = ["Plan", "Scaled", "Target", "Waiting", "learn_scaled", "planned", "target_of"]


@record
class Waiting:
    """The first rows of a stream, which wait until the units of their targets are known.

    Attributes:
        rows: the weight, the target in its own units and the standardised inputs of each row (W, 2 + D), in
            one array, which costs a compiled program less than three; 0 if no row waits.

    Example:
        >>> waiting = Waiting.empty(2, 1, float)
        >>> int(waiting.keep(jnp.ones(1), jnp.asarray(5.0), jnp.asarray(1.0)).filled)
        1
    """

    rows: Array = field(nonnegative_at([0], "weights"), raw=True)

    @staticmethod
    def empty(count: int, size: int, dtype: DTypeLike) -> Waiting:
        """Room for W rows of D inputs."""
        return Waiting(jnp.zeros((count, 2 + size), dtype))

    @property
    def weight(self) -> Array:
        """The weights of the rows (W,), which are above 0 for rows that wait."""
        return self.rows[:, 0]

    @property
    def y(self) -> Array:
        """The targets in their own units (W,)."""
        return self.rows[:, 1]

    @property
    def x(self) -> Array:
        """The standardised inputs (W, D)."""
        return self.rows[:, 2:]

    @property
    def filled(self) -> Array:
        """The number of rows that wait."""
        return jnp.sum(self.weight > 0, dtype=jnp.int32)

    def keep(self, x: Array, y: Array, weight: Array) -> Waiting:
        """The rows with one more, if there is room for it."""
        here = jnp.arange(self.rows.shape[0], dtype=jnp.int32) == self.filled
        row = jnp.concatenate([weight[None], y[None], x])
        return Waiting(jnp.where(here[:, None], row[None, :], self.rows))


class Scaled(NamedTuple):
    """The results of a row with a target, named as in a `Proposal`."""

    belief: Any
    target: RunningMoments
    waiting: Waiting
    log_evidence: Array
    ok: Array
    extras: PyTree


class Plan(NamedTuple):
    """The moments after a row, the rows that wait with it, what is to be learned of it, and whether those
    that waited are learned with it.
    """

    after: RunningMoments
    kept: Waiting
    ready: Array
    flush: Array
    cut: Array
    exact: Array
    clipped: Array
    near: Array
    early: Array
    trips: Array


class _Trip(NamedTuple, Generic[B]):
    """The values that one trip of the loop hands to the next."""

    number: Array
    belief: B
    first: Array
    first_ok: Array
    info: Info


class Target(NamedTuple):
    """The target of a row in its own units and its weight, two numbers of the dtype of its moments."""

    value: Array
    weight: Array


def target_of(moments: RunningMoments, y: PyTree, weight: ArrayLike) -> Target:
    """The target of a row; a CredoError if it or the weight is not one number."""
    if jnp.size(y) != 1 or jnp.size(weight) != 1 or not jax.tree_util.all_leaves([y]):
        raise CredoError("Standardized scales one number a step: y and weight must be numbers.", field="y")
    value, share = (as_like(number, moments.values).reshape(()) for number in (y, weight))
    return Target(value, share)


def learn_scaled(
    learner: Learner[B],
    belief: B,
    before: RunningMoments,
    x: Array,
    target: Target,
    plan: Plan,
    key: Key | None,
) -> Scaled:
    """Score a row, and learn it or let it wait; if it makes the units known, learn all that waited.

    All of this is one loop of few trips around the learner's update, which is compiled once. The first trip
    scores the row by its exact target. An ordinary row has no other; a clipped one is learned in a second
    trip, with the weight (8 / z)^2 if it is more than eight standard deviations away. A row that waits has
    a second trip of weight 0, for the reports; and the row that makes the units known has one for each that
    waited.

    `before` are the moments of the targets before this one, and x (D,) are the standardised inputs.
    """
    after, kept, ready, flush, cut, exact, clipped, near, early, trips = plan
    value, share = target
    rows = kept.rows.shape[0]

    def trip(last: _Trip[B]) -> _Trip[B]:
        number = last.number
        inner = last.belief
        begin = last.number == 0
        place = jnp.clip(number - 1, 0, rows - 1)
        old = flush & ~begin
        one_x = jnp.where(old, kept.x[place], x)
        one_y = jnp.where(old, early[place], jnp.where(begin, exact, clipped))
        own_weight = jnp.where(begin, share, share * near)
        one_weight = jnp.where(old, kept.weight[place], jnp.where(ready | begin, own_weight, 0.0))
        inner = jax.lax.cond(old, lambda b: _alike(learner.time_update(b, None), b), lambda b: b, inner)
        learned, info = learner.measurement_update(inner, one_x, one_y, one_weight, key)
        inner = select(~begin | (ready & ~cut), _alike(learned, inner), inner)
        first = jnp.where(begin, info.log_evidence.astype(last.first.dtype), last.first)
        return _Trip(
            number + 1, inner, first, jnp.where(begin, info.ok, last.first_ok), _alike(info, last.info)
        )

    belief = jax.tree.map(jnp.asarray, belief)
    shapes = jax.eval_shape(lambda b: learner.measurement_update(b, x, value, share, key)[1], belief)
    blank: Info = jax.tree.map(lambda like: jnp.zeros(like.shape, like.dtype), shapes)
    start = _Trip(jnp.zeros((), jnp.int32), belief, blank.log_evidence, blank.ok, blank)

    def more(last: _Trip[B]) -> Array:
        # Where the row itself is refused, those that wait go on waiting.
        return (last.number < trips) & (~flush | (last.number == 0) | last.first_ok)

    end = jax.lax.while_loop(more, trip, start)
    evidence = jnp.where(end.first_ok, end.first, end.info.log_evidence) - jnp.log(before.scale)
    ok = jnp.where(ready, end.info.ok, end.first_ok)
    later = Waiting(jnp.where(flush, 0.0, kept.rows))
    return Scaled(end.belief, after, later, evidence, ok, end.info.extras)


def planned(before: RunningMoments, waiting: Waiting, x: Array, target: Target, clip: ArrayLike) -> Plan:
    """The plan for a row, whose standardised inputs are x (D,); a CredoError if it has another number of
    inputs than those that wait. `clip` is the largest size of a standardised target that is learned.
    """
    if jnp.shape(x) != (waiting.rows.shape[1] - 2,):
        raise CredoError(
            f"x must have the shape {(waiting.rows.shape[1] - 2,)}; got {jnp.shape(x)}.", field="x"
        )
    x = as_like(x, waiting.rows)
    value, share = target
    most = farthest(value.dtype)
    rows = waiting.rows.shape[0]
    value = jnp.where(jnp.abs(value) > most, jnp.inf, value)
    after = before.observe(value)
    ready = before.fixed | _known(before, rows)
    kept = select(ready, waiting, waiting.keep(x, value, share))
    flush = ~ready & (share > 0) & _known(after, rows)
    away = jnp.clip(before.gap(value) / before.scale, -FARTHEST, FARTHEST)
    exact = jnp.where(jnp.isinf(value), value, away)
    limit = before.limit(clip)
    cut = (jnp.abs(exact) > jnp.minimum(limit, FAR)) & jnp.isfinite(exact)
    clipped = jnp.where(cut, jnp.sign(exact) * limit, exact)
    near = (FAR / jnp.maximum(jnp.abs(exact), FAR)) ** 2
    early = jnp.clip(after.gap(kept.y) / after.scale, -after.limit(clip), after.limit(clip))
    trips = jnp.where(ready, 1 + cut.astype(jnp.int32), jnp.where(flush, 1 + kept.filled, 2))
    return Plan(after, kept, ready, flush, cut, exact, clipped, near, early, trips)


def _known(moments: RunningMoments, warmup: int) -> Array:
    """Whether enough was seen to say what the units are."""
    return (moments.count >= warmup) & moments.known


def _alike(tree: Any, like: Any) -> Any:
    """The tree with the dtypes of another, without types that JAX calls weak."""
    return jax.tree.map(lambda leaf, other: jnp.asarray(leaf, jnp.asarray(other).dtype), tree, like)
