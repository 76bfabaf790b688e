"""The engine of BONE (Duran-Martin et al. 2024, arXiv 2411.10153) for discrete auxiliary variables.

At each step every hypothesis goes on, or ends and has a successor that starts from a conditional prior. All
are scored by how they predicted, and learn; then the lightest are pruned. Hypotheses live in slots, of
which those that the successors need are free after an update. Shapes are the same before and after every
verb.
"""

from __future__ import annotations

from typing import Generic, NamedTuple

import jax
import jax.numpy as jnp

from credo.adapt.changepoints.hazards import Hazard, HazardLike, as_hazard
from credo.adapt.changepoints.hypotheses import Changes, Hypotheses, Segments
from credo.adapt.changepoints.successors import (
    OVERFLOWS,
    Overflow,
    SingleSuccessor,
    SuccessorByCount,
    Successors,
    thin,
)
from credo.adapt.moments import log_sum, normalized
from credo.adapt.nested import B, at_time, floating, renewed
from credo.adapt.priors import ConditionalPrior, PriorReset, Subset, descend, require_conditional_prior
from credo.adapt.questions import Answer, Question, weighted
from credo.adapt.wrapper import Proposal, Wrapper
from credo.core.errors import (
    CredoError,
    require_choice,
    require_integer,
    require_interval,
    require_nonnegative,
)
from credo.core.keys import as_key, step_key
from credo.core.records import record, replace, static_field
from credo.core.trees import as_like, select
from credo.core.types import Array, ArrayLike, DTypeLike, Key, PyTree
from credo.dynamics import Dynamics
from credo.learners import Learner
from credo.learners.base import Belief

__all__ = ["Changepoints"]


class _Verdict(NamedTuple):
    """The facts about the changes of a step that are known only while the step is being made."""

    change: Array
    pruned: Array
    alarm: Array


@record
class Changepoints(Wrapper[Hypotheses[B], B], Generic[B]):
    """The common base of run lengths and sets of changepoints. Use `RunLength` or `ChangeTimes`."""

    hazard: HazardLike = 0.01
    capacity: int = static_field(default=10)
    conditional_prior: ConditionalPrior[B] | Dynamics = PriorReset()
    overflow: Overflow = static_field(default="drop")
    protect: int = static_field(default=0)
    threshold: ArrayLike = 0.5
    separation: ArrayLike = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.capacity, int):
            require_integer("capacity", self.capacity, 1)
            require_integer("protect", self.protect, 0)
            require_choice("overflow", self.overflow, OVERFLOWS)
        require_nonnegative("separation", self.separation)
        object.__setattr__(self, "hazard", as_hazard(self.hazard))
        require_conditional_prior(self.conditional_prior)
        if isinstance(self.conditional_prior, Subset) and not self.successors.apart:
            raise CredoError(
                "conditional_prior must not be Subset() here; only ChangeTimes keeps a belief a subset."
            )
        require_interval("threshold", self.threshold, 0.0, 1.0)

    @property
    def _hazard(self) -> Hazard:
        return as_hazard(self.hazard)

    @property
    def _depth(self) -> int:
        """The number of starts of segments that a hypothesis remembers."""
        return 0

    @property
    def successors(self) -> Successors:
        """The rule that says which hypotheses a new segment follows."""
        if self._hazard.counts:
            return SuccessorByCount()
        return SingleSuccessor()

    @property
    def slots(self) -> int:
        """The number of slots: for the hypotheses that are kept, and for their successors."""
        return self.capacity + self.successors.births(self.capacity)

    def wrap(self, prior: B) -> Hypotheses[B]:
        """One hypothesis, which holds the inner learner's own first belief."""
        size = self.slots
        kind = floating(prior)
        beliefs = jax.tree.map(lambda leaf: jnp.stack([jnp.asarray(leaf)] * size), prior)
        first = jnp.arange(size) == 0
        log_weights = jnp.where(first, 0.0, -jnp.inf).astype(kind)
        whole = jnp.zeros(size, jnp.int32)
        times = jnp.full((size, self._depth), -1, jnp.int32)
        segments = Segments(jnp.where(first, -1, 0).astype(jnp.int32), whole, log_weights, whole, times)
        zero = jnp.zeros((), jnp.int32)
        return Hypotheses(log_weights, beliefs, segments, prior, zero, zero)

    def advance(self, belief: Hypotheses[B], dt: ArrayLike | None) -> Hypotheses[B]:
        """Every hypothesis goes on, and those that may end have successors in the free slots."""
        old = belief.segments
        dtype = belief.log_weights.dtype
        survivors = jax.vmap(lambda one: self.learner.time_update(one, dt))(belief.beliefs)
        births = self.slots - self.capacity
        free = (
            jnp.argsort(belief.log_weights)[:births] if births > 1 else jnp.argmin(belief.log_weights)[None]
        )
        alive, _ = normalized(belief.log_weights.at[free].set(-jnp.inf))
        stay, leave = self._transition(old, belief.t, dt, dtype)
        # Who the parents of each successor are, with their weights: (births, M).
        groups = self.successors.groups(belief, births, alive, alive + leave)
        best = jax.lax.stop_gradient(old.best + leave)
        likeliest = jnp.argmax(jnp.where(groups > -jnp.inf, best[None, :], -jnp.inf), axis=1)
        newborn = self._begin(belief, _first_clock(survivors), groups, likeliest, dt)
        beliefs = jax.tree.map(lambda a, b: _put(a, free, b), survivors, newborn)
        started = jnp.broadcast_to(belief.t + 1, (births, 1))
        times = jnp.concatenate([started, old.times[likeliest]], axis=1)[:, : self._depth]
        segments = Segments(
            _put(old.run_length + 1, free, jnp.zeros_like(likeliest)),
            _put(old.count, free, old.count[likeliest] + 1),
            _put(old.best + jax.lax.stop_gradient(stay), free, best[likeliest]),
            _put(old.parent, free, old.run_length[likeliest]),
            _put(old.times, free, times),
        )
        weights, _ = normalized((alive + stay).at[free].set(log_sum(groups, axis=1)))
        return replace(belief, log_weights=weights, beliefs=beliefs, segments=segments)

    def _transition(
        self, old: Segments, t: Array, dt: ArrayLike | None, dtype: DTypeLike
    ) -> tuple[Array, Array]:
        """log(1 - H) and log H of each hypothesis; nothing changes before the first observation."""
        started = old.run_length >= 0
        lengths = jnp.maximum(old.run_length, 0).astype(dtype)
        counts = old.count.astype(dtype)
        chance = self._hazard.probability(lengths, counts, jnp.maximum(t, 1).astype(dtype)).astype(dtype)
        stay = jnp.log1p(-chance)
        leave = jnp.log(chance)
        if dt is not None:
            stay = jnp.where(chance > 0, stay * as_like(dt, stay), 0.0)
            leave = jnp.log(-jnp.expm1(stay))
        return jnp.where(started, stay, 0.0), jnp.where(started, leave, -jnp.inf)

    def _begin(
        self, belief: Hypotheses[B], t: Array, groups: Array, likeliest: Array, dt: ArrayLike | None
    ) -> B:
        """The beliefs of the successors at the inner time t, with a leading axis."""
        if isinstance(self.conditional_prior, PriorReset):
            start: B = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], renewed(belief.prior, t))
            return start

        def one(parent: B) -> B:
            return at_time(descend(self.conditional_prior, parent, belief.prior, dt), t)

        return jax.vmap(one)(self.successors.parents(belief, groups, likeliest))

    def ask(self, belief: Hypotheses[B], x: PyTree, question: Question) -> Answer:
        answers = jax.vmap(lambda inner: question(self.learner, inner, x))(self._facing(belief))
        return weighted(answers, belief.log_weights)

    def pick(self, belief: Hypotheses[B], key: Array) -> tuple[Learner[B], B]:
        which = jax.random.categorical(key, belief.log_weights)
        inner: B = jax.tree.map(lambda leaf: leaf[which], self._facing(belief))
        return self.learner, inner

    def _facing(self, belief: Hypotheses[B]) -> B:
        """The beliefs that the next observation meets, which differ where a hypothesis leaves it out."""
        if not isinstance(self.conditional_prior, Subset):
            return belief.beliefs
        prior = renewed(belief.prior, _first_clock(belief.beliefs))

        def one(newborn: Array, inner: B) -> B:
            return select(newborn, prior, inner)

        return jax.vmap(one)(self._newborn(belief), belief.beliefs)

    def _newborn(self, belief: Hypotheses[B]) -> Array:
        """Which hypotheses say that something changes with the next observation (M,)."""
        return belief.segments.times[:, 0] == belief.t

    def propose(
        self, belief: Hypotheses[B], x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> Proposal[Hypotheses[B]]:
        """Score all hypotheses, let them learn, and drop those for which there is no room."""
        facing = self._facing(belief)
        learned, infos = jax.vmap(lambda one: self.learner.measurement_update(one, x, y, weight, key))(facing)
        if isinstance(self.conditional_prior, Subset):
            learned = jax.vmap(select)(self._newborn(belief), belief.beliefs, learned)
        # A hypothesis that cannot take in what others can has met something impossible.
        scores = jnp.where(infos.ok, infos.log_evidence, -jnp.inf).astype(belief.log_weights.dtype)
        if jnp.ndim(weight) == 0:
            scores = jnp.where(infos.ok, scores * as_like(weight, scores), scores)
        alive = belief.log_weights > -jnp.inf
        log_weights, log_evidence = normalized(jnp.where(alive, belief.log_weights + scores, -jnp.inf))
        segments = belief.segments
        best = jnp.where(alive, segments.best + jax.lax.stop_gradient(scores), -jnp.inf)
        top = jnp.max(best)
        segments = replace(segments, best=jnp.where(top > -jnp.inf, best - top, best))
        change = jnp.sum(jnp.where(segments.run_length == 0, jnp.exp(log_weights), 0.0))
        survivors, beliefs, pruned = thin(
            self.overflow,
            log_weights,
            learned,
            segments.run_length,
            segments.run_length < self.protect,
            self.capacity,
            None if key is None else step_key(as_key(key), belief.t),
        )
        new = replace(belief, log_weights=survivors, beliefs=beliefs, segments=segments)
        reported, alarm = self._alarm(new)
        ok = jnp.any(infos.ok & alive) & jnp.isfinite(log_evidence)
        return Proposal(replace(new, reported=reported), log_evidence, ok, _Verdict(change, pruned, alarm))

    def _alarm(self, belief: Hypotheses[B]) -> tuple[Array, Array]:
        """The start of the segment that was reported last, and whether it is reported now."""
        starts = belief.t - belief.segments.run_length
        late = starts > belief.reported + jnp.asarray(self.separation, jnp.int32)
        unreported = jnp.where(late, belief.weights, 0.0)
        chance = jnp.minimum(jnp.sum(unreported), 1.0)
        alarm = (chance > as_like(self.threshold, unreported)) & (belief.reported > 0)
        first = belief.reported == 0
        start = jnp.where(first, belief.t, starts[jnp.argmax(unreported)])
        return jnp.where(alarm | first, start, belief.reported), alarm

    def report(self, belief: Hypotheses[B], proposal: Proposal[Hypotheses[B]], used: Array) -> Changes:
        """The report of the step on changes, according to the belief that was kept."""
        change: Array
        pruned: Array
        change, pruned, alarm = proposal.extras
        segments = belief.segments
        zero = jnp.zeros((), belief.log_weights.dtype)
        newborn = jnp.argmax(jnp.where(segments.run_length == 0, segments.best, -jnp.inf))
        return Changes(
            jnp.where(used, change, belief.change_probability),
            belief.expected_run_length,
            belief.map_run_length,
            segments.run_length[jnp.argmax(segments.best)],
            segments.parent[newborn],
            jnp.where(used, pruned, zero),
            alarm & used,
            jnp.sum(belief.log_weights > -jnp.inf, dtype=jnp.int32),
        )

    def draws(self, belief: Hypotheses[B], key: Key, shape: tuple[int, ...]) -> PyTree:
        def draw(index: Array, one_key: Array) -> PyTree:
            inner = jax.tree.map(lambda leaf: leaf[index], belief.beliefs)
            return self.learner.draws(inner, one_key, ())

        return belief.draws(key, shape, draw)


def _put(slots: Array, free: Array, values: Array) -> Array:
    """The slots (M, ...) with new values (births, ...) in those that are free (births,).

    One slot is written in place, where a scatter would copy all of them.
    """
    values = values.astype(slots.dtype)
    if free.shape[0] == 1:
        written: Array = jax.lax.dynamic_update_index_in_dim(slots, values[0], free[0], 0)
        return written
    return slots.at[free].set(values)


def _first_clock(beliefs: Belief) -> Array:
    """The clock that several beliefs share."""
    return beliefs.t[0]
