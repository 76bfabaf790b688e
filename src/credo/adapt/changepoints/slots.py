"""The engine of BONE (Duran-Martin et al. 2024, arXiv 2411.10153) for discrete auxiliary variables.

At each step every hypothesis goes on, or ends and has a successor that starts from a conditional prior. All
are scored by how they predicted, and learn; then the lightest are pruned. Hypotheses live in slots, of
which those that the successors need are free after an update. Shapes are the same before and after every
verb.

Hypotheses are about how long ago the world last changed (`RunLength`), or about all times when it did
(`ChangeTimes`).

A new segment may follow all hypotheses together, those that count alike, or one. Hypotheses for which there
is no room are dropped, merged or resampled.

Several weighted hypotheses about the world: the belief, its answers, and what a finished run says.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Generic, Literal, NamedTuple, TypeAlias, TypeVar, get_args

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt.changepoints.hazards import Hazard, HazardLike, as_hazard
from credo.adapt.moments import collapse, log_sum, normalized
from credo.adapt.nested import B, Mixture, at_time, floating, renewed
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
from credo.core.fields import field
from credo.core.keys import as_key, require_key, step_key
from credo.core.records import record, replace, static_field
from credo.core.trees import as_like, select
from credo.core.types import Array, ArrayLike, DTypeLike, Key, PyTree
from credo.dynamics import Dynamics
from credo.learners import Info, Learner
from credo.learners.base import Belief

__all__ = [
    "OVERFLOWS",
    "ChangeReport",
    "ChangeTimes",
    "Changepoints",
    "Changes",
    "Hypotheses",
    "Overflow",
    "RunLength",
    "Segments",
    "SingleSuccessor",
    "SuccessorByCount",
    "SuccessorOfEach",
    "Successors",
    "alarms",
    "segmentation",
    "thin",
]

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


@record
class RunLength(Changepoints[B], Generic[B]):
    """Hypotheses about how long ago the world last changed: exact Bayes for changepoints with any learner.

    With r the number of steps since the first observation of the segment and H the hazard, for every r

        log w'(r + 1) = log w(r) + log(1 - H(r)) + log p(y | x, belief of r)
        log w'(0)     = logsumexp_r [log w(r) + log H(r)] + log p(y | x, conditional prior),

    and each belief then learns y, including that of r = 0. Sources: Adams & MacKay 2007 (arXiv 0710.3742);
    Duran-Martin et al. 2024 (BONE, arXiv 2411.10153), RL[K]-PR. Several published implementations leave out
    the update of r = 0, or forecast without it; this one is checked against the enumeration of all
    segmentations.

    Arguments:
        learner: any learner, whose own dynamics continue within a segment.
        hazard: P(change) before an observation: a number in [0, 1], a function of the run length, or a
            `Hazard`, such as `LearnedHazard(a, b)`, which also tracks the number of changes (RLCC).
        capacity: how many hypotheses K are kept from one step to the next.
        conditional_prior: what a segment begins with: `PriorReset()`, or dynamics applied to the mixture of
            all beliefs, matched in its first two moments: `Static()` (MMPR), `RandomWalk(var)`,
            `OrnsteinUhlenbeck(forgetting)`, ...
        overflow: what happens to more than K hypotheses: "drop" the lightest, "merge" it into its neighbour
            by moments, or "resample" without bias, which needs a key.
        protect: the run length below which hypotheses are not dropped while there is room, because a young
            segment needs some observations before its forecasts are good. Leave it at 0 if the hazard is
            learned: each number of changes then has young segments, which would take all the room.
        threshold: the probability of a segment not yet reported above which an alarm is given.
        separation: the number of steps after the start of a reported segment within which another start
            counts as the same. The first step counts as reported, so that no change just after it is. With 0
            such changes are reported, and outliers twice: when they come and when they go.

    Raises:
        CredoError: a number is outside its range, or `overflow` or `conditional_prior` is not allowed.

    Evidence, forecasts and run lengths are exact while K is at least the number of steps and the inner
    learner is exact. With a smaller K, `Info.extras.pruned` says what was dropped.

    Cost: K + 1 inner updates and forecasts.

    The `extras` of `Info` are `Changes`; see `segmentation` and `alarms`. `weight` scales a hypothesis's
    log evidence, which is exact at 0 and 1. In a step of length dt something changes with probability
    1 - (1 - H)^dt.

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
class ChangeTimes(Changepoints[B], Generic[B]):
    """Hypotheses about *when* the world changed, as a beam over sets of changepoint times around any learner.

    Unlike in `RunLength`, hypotheses that end at the same time keep their successors apart, each of which
    starts from a conditional prior of its own past: with `Inflation` or `RandomWalk` a change broadens what
    was known instead of erasing it. Sources: Li et al. 2021 (variational beam search, CPL-MCI); Fearnhead &
    Liu 2011 (dependence across segments, CPT-MMPR); both are scored here by the predictive density *before*
    the observation is learned, jointly over all hypotheses.

    Arguments:
        depth: how many latest starts of segments each hypothesis remembers (`belief.segments.times`). The
            other arguments are those of `RunLength`; `overflow="merge"` is not available.

    Raises:
        CredoError: a number is outside its range, or `overflow` or `conditional_prior` is not allowed.

    The result is exact while 2^t hypotheses fit.

    Cost: 2 K inner updates and forecasts.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> inner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))
        >>> learner = ChangeTimes(inner, 1 / 50, 5, credo.Inflation(1.0, "simple"), depth=2)
        >>> ys = jnp.array([1.0, 1.1, 0.9, -2.0, -2.1, -1.9])
        >>> belief, _ = credo.run(learner, learner.init(jnp.zeros(1)), jnp.ones((6, 1)), ys)
        >>> int(belief.segments.times[belief.log_weights.argmax(), 0])  # the 4th observation
        4
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
    def successors(self) -> Successors:
        """Each hypothesis has a successor of its own."""
        return SuccessorOfEach()
