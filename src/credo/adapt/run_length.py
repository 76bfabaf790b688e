"""Changepoints: hypotheses about when the current regime began, around any learner.

The engine of BONE (Duran-Martin et al. 2024, arXiv 2411.10153) for discrete auxiliary variables: at each step
every hypothesis goes on, or ends and has a successor that starts from a conditional prior; all are scored by
how they predicted, the lightest are pruned, the rest learn.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from credo.adapt.hazards import as_hazard
from credo.adapt.hypotheses import Changes, Hypotheses, Segments, floating, log_sum, normalized
from credo.adapt.overflow import OVERFLOWS, thin
from credo.adapt.priors import PriorReset, Subset, collapse, descend, require_conditional_prior
from credo.core.errors import CredoError, require_choice, require_integer, require_interval
from credo.core.keys import as_key, step_key
from credo.core.records import record, replace, static_field
from credo.core.trees import as_like, select
from credo.learners import Info, Learner
from credo.likelihoods import Predictive, WeightedPredictive

__all__ = ["ChangeTimes", "Changepoints", "RunLength"]

NEW, SUCCESSORS, PAST = "one", "by count", "each"


@record
class Changepoints(Learner):
    """What run lengths and sets of changepoints share; use `RunLength` or `ChangeTimes`."""

    learner: Learner
    hazard: Any = 0.01
    capacity: int = static_field(default=10)
    conditional_prior: Any = PriorReset()
    overflow: str = static_field(default="drop")
    protect: int = static_field(default=0)
    threshold: Any = 0.5
    separation: Any = 5

    def __post_init__(self) -> None:
        if isinstance(self.capacity, int):
            require_integer("capacity", self.capacity, 1)
            require_integer("protect", self.protect, 0)
            require_choice("overflow", self.overflow, OVERFLOWS)
        object.__setattr__(self, "hazard", as_hazard(self.hazard))
        require_conditional_prior(self.conditional_prior)
        if isinstance(self.conditional_prior, Subset) and self._births != PAST:
            raise CredoError("conditional_prior Subset() is for ChangeTimes, which tells subsets apart.")
        require_interval("threshold", self.threshold, 0.0, 1.0)

    @property
    def _depth(self) -> int:
        return 0

    @property
    def _births(self) -> str:
        return SUCCESSORS if self.hazard.counts else NEW

    @property
    def slots(self) -> int:
        """How many hypotheses there are room for: those that are kept, and their successors."""
        return self.capacity + (1 if self._births == NEW else self.capacity)

    def init(self, params: Any = None, *, var: Any = 1.0, **given: Any) -> Hypotheses:
        """One hypothesis, the inner learner's own first belief; further arguments go to that learner."""
        prior = self.learner.init(params, var=var, **given)
        size, kind = self.slots, floating(prior)
        beliefs = jax.tree.map(lambda leaf: jnp.stack([jnp.asarray(leaf)] * size), prior)
        first = jnp.arange(size) == 0
        log_weights = jnp.where(first, 0.0, -jnp.inf).astype(kind)
        whole = jnp.zeros(size, jnp.int32)
        times = jnp.full((size, self._depth), -1, jnp.int32)
        segments = Segments(jnp.where(first, -1, 0).astype(jnp.int32), whole, log_weights, whole, times)
        zero = jnp.zeros((), jnp.int32)
        return Hypotheses(log_weights, beliefs, segments, prior, zero, zero)

    def time_update(self, belief: Hypotheses, dt: Any) -> Hypotheses:
        old, dtype = belief.segments, belief.log_weights.dtype
        went_on = jax.vmap(lambda one: self.learner.time_update(one, dt))(belief.beliefs)
        count = self.slots - self.capacity
        free = jnp.argsort(belief.log_weights)[:count] if count > 1 else jnp.argmin(belief.log_weights)[None]
        alive, _ = normalized(belief.log_weights.at[free].set(-jnp.inf))
        stay, leave = self._transition(old, belief.t, dt, dtype)
        # Who the parents of each successor are, with their weights: (count, M).
        ending = alive + leave
        best = jax.lax.stop_gradient(old.best + leave)
        if self._births == PAST:
            parents = jnp.argsort(belief.log_weights)[count:]
            groups = jnp.where(jnp.arange(self.slots)[None, :] == parents[:, None], ending[None, :], -jnp.inf)
        elif self._births == SUCCESSORS:
            heads = jnp.argsort(belief.log_weights)[count:]
            same = old.count[heads][:, None] == old.count[None, :]
            earlier = jnp.tril(old.count[heads][:, None] == old.count[heads][None, :], -1)
            living = alive[heads] > -jnp.inf
            alone = living & ~jnp.any(earlier & living[None, :], axis=1)
            groups = jnp.where(same & alone[:, None], ending[None, :], -jnp.inf)
        else:
            groups = ending[None, :]
        likeliest = jnp.argmax(jnp.where(groups > -jnp.inf, best[None, :], -jnp.inf), axis=1)
        births = self._begin(belief, went_on, groups, likeliest, dt)
        beliefs = jax.tree.map(lambda a, b: a.at[free].set(b), went_on, births)
        t = belief.t + 1
        started = jnp.broadcast_to(t, (count, 1))
        times = jnp.concatenate([started, old.times[likeliest]], axis=1)[:, : self._depth]
        segments = Segments(
            (old.run_length + 1).at[free].set(0),
            old.count.at[free].set(old.count[likeliest] + 1),
            (old.best + jax.lax.stop_gradient(stay)).at[free].set(best[likeliest]),
            old.parent.at[free].set(old.run_length[likeliest]),
            old.times.at[free].set(times),
        )
        weights, _ = normalized((alive + stay).at[free].set(log_sum(groups, axis=1)))
        return Hypotheses(weights, beliefs, segments, belief.prior, belief.reported, t)

    def _transition(self, old: Segments, t: jax.Array, dt: Any, dtype: Any) -> tuple[jax.Array, jax.Array]:
        """log(1 - H) and log H of each hypothesis; nothing changes before the first observation."""
        begun = old.run_length >= 0
        lengths, counts = jnp.maximum(old.run_length, 0).astype(dtype), old.count.astype(dtype)
        chance = self.hazard.probability(lengths, counts, jnp.maximum(t, 1).astype(dtype)).astype(dtype)
        stay, leave = jnp.log1p(-chance), jnp.log(chance)
        if dt is not None:
            stay = jnp.where(chance > 0, stay * as_like(dt, stay), 0.0)
            leave = jnp.log(-jnp.expm1(stay))
        return jnp.where(begun, stay, 0.0), jnp.where(begun, leave, -jnp.inf)

    def _begin(
        self, belief: Hypotheses, went_on: Any, groups: jax.Array, likeliest: jax.Array, dt: Any
    ) -> Any:
        """The beliefs of the successors, with a leading axis."""
        prior = replace(belief.prior, t=went_on.t[0])
        if isinstance(self.conditional_prior, PriorReset):
            return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], prior)
        if self._births == PAST:
            parents = jax.tree.map(lambda leaf: leaf[likeliest], belief.beliefs)
        else:
            parents = jax.vmap(lambda weights: collapse(weights, belief.beliefs))(groups)

        def one(parent: Any) -> Any:
            return replace(descend(self.conditional_prior, parent, belief.prior, dt), t=prior.t)

        return jax.vmap(one)(parents)

    def predictive(
        self, belief: Hypotheses, x: Any, method: str | None, samples: int | None, key: Any
    ) -> Predictive:
        def one(belief: Any) -> Predictive:
            return self.learner.predictive(belief, x, method, samples, key)

        return WeightedPredictive(jax.vmap(one)(self._facing(belief)), belief.log_weights)

    def _facing(self, belief: Hypotheses) -> Any:
        """The beliefs that the next observation meets: those of the hypotheses, unless these leave it out."""
        if not isinstance(self.conditional_prior, Subset):
            return belief.beliefs
        prior = replace(belief.prior, t=belief.beliefs.t[0])
        return jax.vmap(lambda out, one: select(out, prior, one))(self._born(belief), belief.beliefs)

    def _born(self, belief: Hypotheses) -> jax.Array:
        """Which hypotheses say that something changes with the next observation (M,)."""
        return belief.segments.times[:, 0] == belief.t

    def measurement_update(
        self, belief: Hypotheses, x: Any, y: Any, weight: Any, key: Any
    ) -> tuple[Hypotheses, Info]:
        facing = self._facing(belief)
        learned, infos = jax.vmap(lambda one: self.learner.measurement_update(one, x, y, weight, key))(facing)
        if isinstance(self.conditional_prior, Subset):
            learned = jax.vmap(select)(self._born(belief), belief.beliefs, learned)
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
        urgent = segments.run_length < self.protect
        kept, beliefs, pruned = thin(
            self.overflow,
            log_weights,
            learned,
            segments.run_length,
            urgent,
            self.capacity,
            None if key is None else step_key(as_key(key), belief.t),
        )
        new = Hypotheses(kept, beliefs, segments, belief.prior, belief.reported, belief.t)
        reported, alarm = self._alarm(new)
        new = replace(new, reported=reported)
        ok = jnp.any(infos.ok & alive) & jnp.isfinite(log_evidence)
        used = ok & jnp.any(jnp.asarray(weight) != 0)
        new = select(used, new, belief)
        told = self._report(new, change, pruned, alarm, used)
        return new, Info(jnp.where(used, log_evidence, 0.0), ok, told)

    def _alarm(self, belief: Hypotheses) -> tuple[jax.Array, jax.Array]:
        """When the segment began that was last reported, and whether it is reported now."""
        starts = belief.t - belief.segments.run_length
        late = starts > belief.reported + jnp.asarray(self.separation, jnp.int32)
        news = jnp.where(late, belief.weights, 0.0)
        told = jnp.minimum(jnp.sum(news), 1.0)
        alarm = (told > as_like(self.threshold, news)) & (belief.reported > 0)
        first = belief.reported == 0
        return jnp.where(
            alarm | first, jnp.where(first, belief.t, starts[jnp.argmax(news)]), belief.reported
        ), alarm

    def _report(
        self, new: Hypotheses, change: jax.Array, pruned: jax.Array, alarm: jax.Array, used: jax.Array
    ) -> Changes:
        segments, zero = new.segments, jnp.zeros((), new.log_weights.dtype)
        born = jnp.argmax(jnp.where(segments.run_length == 0, segments.best, -jnp.inf))
        return Changes(
            jnp.where(used, change, new.change_probability),
            new.expected_run_length,
            new.map_run_length,
            segments.run_length[jnp.argmax(segments.best)],
            segments.parent[born],
            jnp.where(used, pruned, zero),
            alarm & used,
            jnp.sum(new.log_weights > -jnp.inf, dtype=jnp.int32),
        )

    def draws(self, belief: Hypotheses, key: Any, shape: tuple[int, ...]) -> Any:
        def draw(index: jax.Array, one: jax.Array) -> Any:
            chosen = jax.tree.map(lambda leaf: leaf[index], belief.beliefs)
            return self.learner.draws(chosen, one, ())

        return belief.draws(key, shape, draw)


@record
class RunLength(Changepoints):
    """Hypotheses about how long ago the world last changed: exact Bayes for changepoints, around any learner.

    With r the steps since the segment's first observation and H the hazard, for every r

        log w'(r + 1) = log w(r) + log(1 - H(r)) + log p(y | x, belief of r)
        log w'(0)     = logsumexp_r [log w(r) + log H(r)] + log p(y | x, conditional prior),

    and each belief then learns y, that of r = 0 too. Sources: Adams & MacKay 2007 (arXiv 0710.3742);
    Duran-Martin et al. 2024 (BONE, arXiv 2411.10153), RL[K]-PR. Several published implementations leave out
    the update of r = 0, or forecast without it; this one is checked against the enumeration of all
    segmentations.

    Arguments:
        learner: any learner; its own dynamics go on within a segment.
        hazard: P(change) before an observation: a number in [0, 1], a function of the run length, or a
            `Hazard`, such as `LearnedHazard(a, b)`, which keeps the number of changes along (RLCC).
        capacity: how many hypotheses K are kept from one step to the next.
        conditional_prior: what a segment begins with: `PriorReset()`, or dynamics applied to the mixture of
            all beliefs, matched in its first two moments: `Static()` (MMPR), `RandomWalk(q)`,
            `OrnsteinUhlenbeck(gamma)`, ...
        overflow: when there are more than K: "drop" the lightest, "merge" it into its neighbour by moments,
            or "resample" without bias (needs a key).
        protect: run lengths below this are not dropped while there is room: a young segment needs some
            observations to show its worth.
        threshold: an alarm is given when the probability of a segment that was not reported yet exceeds this.
        separation: segments that began no more than so many steps after the reported one count as the same.

    Exact (evidence, forecasts, run lengths) while K is at least the number of steps, where the inner learner
    is; with fewer, `Info.extras.pruned` says what was dropped. Cost: K + 1 inner updates and forecasts.

    The `extras` of `Info` are `Changes`. `weight` scales a hypothesis's log evidence, which is exact at 0 and
    1. With `dt`, a step of length dt changes with probability 1 - (1 - H)^dt.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> inner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> learner = RunLength(inner, hazard=1 / 50, capacity=5)
        >>> belief = learner.init(jnp.zeros(1))
        >>> for y in [1.0, 1.1, 0.9, -2.0, -2.1, -1.9]:
        ...     belief, info = learner.step(belief, jnp.ones(1), y)
        >>> int(belief.map_run_length)
        2
    """


@record
class ChangeTimes(Changepoints):
    """Hypotheses about *when* the world changed: a beam over sets of changepoint times, around any learner.

    Unlike in `RunLength`, hypotheses that end at the same time keep their successors apart, each of which
    starts from a conditional prior of its own past: with `Inflation` or `RandomWalk` a change broadens what
    was known instead of erasing it. Sources: Li et al. 2021 (variational beam search, CPL-MCI); Fearnhead &
    Liu 2011 (dependence across segments, CPT-MMPR); both are scored here by the predictive density *before*
    the observation is learned, over all hypotheses together.

    Arguments:
        depth: how many latest starts of segments each hypothesis remembers (`belief.segments.times`).
        The others are those of `RunLength`; `overflow="merge"` is not available.

    Exact while 2^t hypotheses fit. Cost: 2 K inner updates and forecasts.
    """

    depth: int = static_field(default=5)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.depth, int):
            require_integer("depth", self.depth, 1)
        if self.overflow == "merge":
            raise CredoError("overflow must be 'drop' or 'resample' for sets of changepoints; got 'merge'.")

    @property
    def _depth(self) -> int:
        return self.depth

    @property
    def _births(self) -> str:
        return PAST
