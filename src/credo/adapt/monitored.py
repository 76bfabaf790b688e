"""A learner that is watched: when did its losses become larger than they had been?"""

from __future__ import annotations

import dataclasses
from typing import Any, Generic, NamedTuple

import jax.numpy as jnp
import numpy as np

from credo.adapt.changepoints import ChangeReport
from credo.adapt.nested import Around, B, Mixture, floating, within
from credo.adapt.questions import forecast_of
from credo.adapt.wrapper import Proposal, Wrapper
from credo.core.errors import CredoError, require_interval, require_nonnegative, require_positive
from credo.core.records import record, replace
from credo.core.trees import as_like, select
from credo.core.types import Array, ArrayLike, DTypeLike, Key, PyTree
from credo.learners.acceptance import clean, scored
from credo.likelihoods import Predictive

__all__ = [
    "RATES",
    "SIZES",
    "LevelChanges",
    "Monitored",
    "Monitoring",
    "WatchedChanges",
    "flatter_gain",
    "share_losses",
    "size_losses",
]


LEVELS = 25
"""The number of levels."""

RATES = 1.0 / (1.0 + np.exp(7.0 - 0.4 * np.arange(LEVELS)))
"""The levels of losses between 0 and 1: .001 to .93, whose odds are 1.5 times those of the one before."""

SIZES = 0.02 * 1.3 ** np.arange(LEVELS)
"""The levels of the sizes of errors, .02 to 11, each 1.3 times the one before."""

FARTHEST = 10.0
"""The largest size of an error that counts as such, since one outlier is no change."""

FREEDOM = 2.0
"""The degrees of freedom of errors, a Student's t: with 4, one or two outliers would be a change."""

POWERS = (0.2, 0.4, 0.6, 0.8)
"""The powers of a forecast of classes that are flatter than it, each as likely."""

SURPRISE = 4.5
"""The nats that flatter forecasts must gain for a change of classes. Without them, inputs that move slowly
between easy and hard regions gave 12 alarms in 10,000 rows of a world that stays; with them, one."""

MOST_GAIN = 3.5
"""The largest gain that counts of one row, since a label may be wrong: two rows at least make a change."""

# P(one level lower), P(one higher) before a row; the least number of levels that a change goes up.
DOWN = 0.01
UP = 0.001
JUMP = 3

# How many times of the latest change are kept; how many rows a new one stays; the rows that are recent.
CAPACITY = 20
YOUNG = 10
LATEST = 100

_LONG_AGO = -(2**30)


def share_losses(loss: Array) -> Array:
    """The log likelihoods of the levels (K,) for a loss u in [0, 1]: u log rate + (1 - u) log(1 - rate).

    Between two levels a and b > a it has E exp(log p_b - log p_a) <= 1 for every loss with a mean of at most
    a, since it is linear in u, so that exp is convex.
    """
    rates = jnp.asarray(RATES, loss.dtype)
    part = jnp.clip(loss, 0.0, 1.0)
    return part * jnp.log(rates) + (1.0 - part) * jnp.log1p(-rates)


def size_losses(error: Array) -> Array:
    """The log densities of an error under the levels of its size (K,), up to a constant."""
    sizes = jnp.asarray(SIZES, error.dtype)
    ratio = jnp.clip(error, -FARTHEST, FARTHEST) / sizes
    return -0.5 * (FREEDOM + 1.0) * jnp.log1p(ratio**2 / FREEDOM) - jnp.log(sizes)


def flatter_gain(probs: Array, log_prob: Array) -> Array:
    """The nats by which forecasts that are flatter than P(class) (C,) were better, given log P(y).

    It is log of the mean of q(y) / p(y) over q = p^b / sum p^b with b in `POWERS`, or `MOST_GAIN` if that is
    less. So E exp(gain) <= 1 if classes come as often as the forecast says.
    """
    tiny = jnp.finfo(probs.dtype).tiny
    logs = jnp.log(jnp.maximum(probs, tiny))
    own = jnp.maximum(log_prob, jnp.log(jnp.asarray(tiny, logs.dtype)))
    powers = jnp.asarray(POWERS, logs.dtype)
    flatter = jnp.exp(powers[:, None] * logs[None, :])
    totals = jnp.sum(jnp.where(probs[None, :] > 0, flatter, 0.0), axis=1)
    gain = jnp.log(jnp.mean(jnp.exp((powers - 1.0) * own) / totals))
    return jnp.minimum(gain, MOST_GAIN)


class Reported(NamedTuple):
    """The report of one row: P(a change with it), and whether a change is reported now."""

    change: Array
    alarm: Array


@record
class LevelChanges:
    """The times of the latest change that are kept, each with the levels that losses may have now.

    It is the filter of `credo.RunLength` around a learner of the level, as one table of probabilities, which
    takes a third of the kernels.

    Attributes:
        probs: P(time of the latest change, level) (S, K), which sum to 1; one time is free and has none.
        starts: the times (S,), of which the first is 1, the first row.
        reported: the latest time that was reported.
        t: how many rows have begun.
        surprise: of classes, the most nats that flatter forecasts have gained from any row up to now, or 0.
        surprises: the largest `surprise` within 100 rows of each time (S,), or just before it.
    """

    probs: Array
    starts: Array
    reported: Array
    t: Array
    # files of before have neither
    surprise: Array = dataclasses.field(default_factory=lambda: jnp.zeros((), jnp.float32))
    surprises: Array = dataclasses.field(default_factory=lambda: jnp.zeros(CAPACITY + 1, jnp.float32))

    @staticmethod
    def first(kind: DTypeLike) -> LevelChanges:
        """No row so far: all levels are alike."""
        slots = jnp.arange(CAPACITY + 1) == 0
        probs = jnp.where(slots[:, None], jnp.full((1, LEVELS), 1.0 / LEVELS), 0.0).astype(kind)
        zero = jnp.zeros((), jnp.int32)
        starts = jnp.where(slots, 1, _LONG_AGO).astype(jnp.int32)
        none = jnp.zeros(CAPACITY + 1, kind)
        return LevelChanges(probs, starts, zero, zero, none[0], none)

    @property
    def recent(self) -> Array:
        """P(a change within the latest 100 rows)."""
        young = (self.t - self.starts < LATEST) & (self.starts > 1)
        return jnp.minimum(jnp.sum(jnp.where(young[:, None], self.probs, 0.0)), 1.0)

    def later(self, hazard: ArrayLike, dt: ArrayLike | None) -> LevelChanges:
        """Before a row: levels move a little, and the free time begins with the row.

        After a row that was not learned no time is free, and the lightest gives way.
        """
        t = self.t + 1
        weights = jnp.sum(self.probs, axis=1)
        free = jnp.arange(CAPACITY + 1) == jnp.argmin(weights)
        old = jnp.where(free[:, None], 0.0, self.probs) / jnp.sum(jnp.where(free, 0.0, weights))
        chance = as_like(hazard, old)
        if dt is not None:
            chance = -jnp.expm1(as_like(dt, old) * jnp.log1p(-chance))
        chance = jnp.where(self.t > 0, chance, 0.0)  # nothing changes before the first row
        place = np.arange(LEVELS)
        stays = jnp.asarray(1.0 - DOWN * (place > 0) - UP * (place < LEVELS - 1), old.dtype)
        moved = stays[None, :] * old
        moved = moved + jnp.asarray(DOWN, old.dtype) * jnp.pad(old[:, 1:], ((0, 0), (0, 1)))
        moved = moved + jnp.asarray(UP, old.dtype) * jnp.pad(old[:, :-1], ((0, 0), (1, 0)))
        begun = chance * (jnp.sum(old, axis=0) @ jnp.asarray(_JUMPS, old.dtype))
        probs = jnp.where(free[:, None], begun[None, :], (1.0 - chance) * moved)
        starts = jnp.where(free, t, self.starts)
        surprises = jnp.where(free, self.surprise, self.surprises)
        return replace(self, probs=probs, starts=starts, t=t, surprises=surprises)

    def surprised(self, gain: Array) -> LevelChanges:
        """After a row at which flatter forecasts of classes gained so many nats."""
        surprise = jnp.maximum(self.surprise + gain.astype(self.surprise.dtype), 0.0)
        within = self.t - self.starts < LATEST
        surprises = jnp.where(within, jnp.maximum(self.surprises, surprise), self.surprises)
        return replace(self, surprise=surprise, surprises=surprises)

    def learned(
        self, logs: Array, threshold: ArrayLike, separation: ArrayLike, least: ArrayLike = 0.0
    ) -> tuple[LevelChanges, Reported]:
        """After a row with these log likelihoods of the levels (K,); the lightest time is dropped.

        A change is reported if it is likely, and forecasts were surprised by at least so many nats.
        """
        joint = self.probs * jnp.exp(logs - jnp.max(logs)).astype(self.probs.dtype)[None, :]
        weights = jnp.sum(joint, axis=1)
        ages = self.t - self.starts
        worst = jnp.arange(CAPACITY + 1) == jnp.argmin(jnp.where(ages < YOUNG, jnp.inf, weights))
        total = jnp.sum(weights)
        change = jnp.sum(jnp.where(ages == 0, weights, 0.0)) / total
        kept = jnp.where(worst, 0.0, weights)
        probs = jnp.where(worst[:, None], 0.0, joint) / jnp.sum(kept)
        unreported = jnp.where(self.starts > self.reported + jnp.asarray(separation, jnp.int32), kept, 0.0)
        unreported = unreported / jnp.sum(kept)
        first = self.reported == 0
        likeliest = jnp.argmax(unreported)
        surprised = self.surprises[likeliest] >= as_like(least, unreported)
        alarm = (jnp.sum(unreported) > as_like(threshold, unreported)) & surprised & ~first
        start = jnp.where(first, self.t, self.starts[likeliest])
        reported = jnp.where(alarm | first, start, self.reported)
        return replace(self, probs=probs, reported=reported), Reported(change, alarm)


def _jumps() -> np.ndarray:
    """P(level after a change | level before it) (K, K)."""
    before = np.arange(LEVELS)[:, None]
    after = np.arange(LEVELS)[None, :]
    open_to = (after >= np.minimum(before + JUMP, LEVELS - 1)).astype(float)
    moves: np.ndarray = open_to / open_to.sum(axis=1, keepdims=True)
    return moves


_JUMPS = _jumps()


@record
class WatchedChanges(ChangeReport):
    """The report of a step of `Monitored` on changes.

    Attributes:
        change: P(losses became larger with this row, given all so far).
        alarm: whether this row is the first to report a change.
        began: how many rows before this one the reported change was; 0 without an alarm.
        recent: P(losses became larger within the latest 100 rows).
        inside: the `extras` of the learner inside.

    Example:
        >>> import credo
        >>> learner = Monitored(credo.BetaBernoulli())
        >>> belief, info = learner.step(learner.init(), None, 1.0)
        >>> float(info.extras.recent), bool(info.extras.alarm)
        (0.0, False)
    """

    change: Array
    alarm: Array
    began: Array
    recent: Array
    inside: PyTree


@record
class Monitoring(Around[B], Generic[B]):
    """The belief of a learner, and when its losses may have become larger.

    Attributes:
        belief: the belief of the learner inside.
        changes: P(time of the latest change, level of losses), by the losses so far.
        t: how many times `predict` has been called.

    Example:
        >>> import credo
        >>> belief = Monitored(credo.BetaBernoulli(a=3.0)).init()
        >>> float(belief.mean), float(belief.recent)
        (0.75, 0.0)
    """

    belief: B
    changes: LevelChanges
    t: Array

    @property
    def recent(self) -> Array:
        """P(losses became larger within the latest 100 rows)."""
        return self.changes.recent

    @property
    def weights(self) -> Array:
        """The weights of the members, if the learner inside is a mixture.

        Raises:
            AttributeError: it is none.
        """
        mixture: Mixture[Any] | None = within(self.belief, Mixture)
        if mixture is None:
            raise AttributeError(f"a {type(self.belief).__name__} has no weights: it is no mixture.")
        return mixture.weights


@record
class Monitored(Wrapper[Monitoring[B], B], Generic[B]):
    """Watch a learner: the probability that its losses became larger, and when.

    The loss of a class is u = 1 - p(y), and that of a number the error e = y - E[y] of its forecast (of a
    count, the difference of the roots 2 sqrt(y + 3/8)). Losses have a level on a grid of 25: a rate q between
    0.001 and 0.93 with the likelihood q^u (1 - q)^(1 - u), or a size s between 0.02 and 11 with a Student's t
    of 2 degrees of freedom. Within a segment the level goes down one step with probability 0.01 a row, as a
    learner becomes better, and up with 0.001. A change takes it at least three steps up: odds of at least 3.3
    times, or errors of at least 2.2 times as before. When the latest change was is found as in `RunLength`
    (Adams & MacKay 2007), whose segments have levels, not learners, so that it costs little:

        log w'(r + 1) = log w(r) + log(1 - hazard) + log sum_k P(level k | r) p_k(loss)
        log w'(0)     = logsumexp_r [log w(r) + log hazard] + log sum_k P(level k | a change) p_k(loss).

    A learner that becomes better gives no alarm, and one that becomes worse little by little hardly ever.
    The level of losses is not measured by what was forecast of them: a good mixture becomes as wide as it
    should be within a few rows of a change, after which the change no longer shows. But losses of classes
    also rise where the rows become harder, though nothing has changed. Forecasts say so then, while those of
    the first rows after a change are too sure. So an alarm about classes takes both: a higher level, and
    flatter forecasts q = p^b / sum p^b, with b from 0.2 to 0.8, that were better by `surprise` nats than p,
    summed from any row on up to a hundred rows after the change. A row counts for 3.5 nats at most, so that
    one wrong label is no change. If classes come as often as forecast, the sum from a given row on ever gets
    there with a probability of at most exp(-surprise) (Ville 1939).

    Arguments:
        learner: any learner of classes, numbers or counts.
        hazard: P(change) before a row. For class losses with a mean of at most the level so far, the mean
            number of rows before a false alarm is at least threshold / ((1 - threshold) hazard), but for what
            is pruned.
        threshold: the probability of a segment not yet reported above which an alarm is given.
        separation: the number of rows after the start of a reported segment within which another start counts
            as the same. The first row counts as reported, so that no change just after it is.
        unit: the unit of a number, above 0; 1 if targets are standardised.
        surprise: the nats by which flatter forecasts of classes must be better for an alarm, at least 0;
            with 0 a higher level of the losses is enough.

    Raises:
        CredoError: a number is outside its range, or (later) the learner forecasts neither classes nor
            numbers.

    Forecasts, evidence and the belief inside are those of the learner. `extras` are a `WatchedChanges`, of
    which `credo.alarms` reads the rows. A learner that recovers in a few rows leaves little evidence of the
    change, whose probability may then fall again; the alarm was given. A row that is refused, misses its
    target or has the weight 0 is no evidence; any other weight counts as 1. The 20 likeliest times of the
    latest change are kept, and the new ones of the latest ten rows, so that probabilities are exact but for
    what is dropped.

    Cost: what the forecast's mean costs, and a few passes over 525 probabilities; of C classes four powers of
    each as well.

    Example:
        Coins that change after 200 throws:

        >>> import credo, jax
        >>> ones = jax.random.uniform(jax.random.key(0), (400,)) < jnp.where(jnp.arange(400) < 200, 0.02, 0.7)
        >>> learner = Monitored(credo.BetaBernoulli())
        >>> belief, trace = credo.run(learner, learner.init(), None, ones.astype(float))
        >>> credo.adapt.alarms(trace)
        array([210])
    """

    hazard: ArrayLike = 3e-4
    threshold: ArrayLike = 0.9
    separation: ArrayLike = 5
    unit: ArrayLike = 1.0
    surprise: ArrayLike = SURPRISE

    def __post_init__(self) -> None:
        super().__post_init__()
        require_interval("hazard", self.hazard, 0.0, 1.0)
        require_interval("threshold", self.threshold, 0.0, 1.0)
        require_nonnegative("separation", self.separation)
        require_positive("unit", self.unit)
        require_nonnegative("surprise", self.surprise)

    def wrap(self, prior: B) -> Monitoring[B]:
        """The inner learner's first belief, and no change so far."""
        return Monitoring(prior, LevelChanges.first(floating(prior)), jnp.zeros((), jnp.int32))

    def advance(self, belief: Monitoring[B], dt: ArrayLike | None) -> Monitoring[B]:
        """Advance the learner inside, and the belief about changes, by a step of time."""
        later = self.learner.time_update(belief.belief, dt)
        return replace(belief, belief=later, changes=belief.changes.later(self.hazard, dt))

    def propose(
        self, belief: Monitoring[B], x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> Proposal[Monitoring[B]]:
        """Update the learner inside, and weigh when its losses became larger."""
        seen = x if self.takes_missing else clean(x)
        distribution = forecast_of(self.learner, belief.belief, seen, None, None, key)
        learned, info = self.learner.measurement_update(belief.belief, x, y, weight, key)
        kind = belief.changes.probs.dtype
        log_evidence = info.log_evidence.astype(kind)
        levels = self._losses(distribution, scored(y), log_evidence)
        changes = belief.changes
        least: ArrayLike = 0.0
        if _classed(distribution):
            changes = changes.surprised(flatter_gain(distribution.probs.astype(kind), log_evidence))
            least = self.surprise
        changes, reported = changes.learned(levels, self.threshold, self.separation, least)
        new = replace(belief, belief=learned, changes=changes)
        return Proposal(new, info.log_evidence, info.ok, (reported, info.extras))

    def _losses(self, distribution: Predictive, y: PyTree, log_evidence: Array) -> Array:
        """The log likelihoods of the levels (25,), given what was forecast and what came."""
        if _classed(distribution):
            return share_losses(1.0 - jnp.exp(jnp.minimum(log_evidence, 0.0)))
        target = as_like(y, log_evidence)
        mean = distribution.mean.astype(log_evidence.dtype)
        if distribution.discrete:
            target, mean = (2.0 * jnp.sqrt(jnp.maximum(value, 0.0) + 0.375) for value in (target, mean))
        error = target - mean if distribution.discrete else (target - mean) / as_like(self.unit, mean)
        return size_losses(_root_mean_square(error) if error.ndim else error)

    def settle(self, used: Array, new: Monitoring[B], old: Monitoring[B]) -> Monitoring[B]:
        """Keep what the learner inside has chosen, and choose between the beliefs about changes."""
        return replace(new, changes=select(used, new.changes, old.changes))

    def report(self, belief: Monitoring[B], proposal: Proposal[Monitoring[B]], used: Array) -> Any:
        """The report of the step on changes."""
        reported: Reported
        reported, inside = proposal.extras
        alarm = reported.alarm & used
        changes = belief.changes
        began = jnp.where(alarm, changes.t - changes.reported, 0)
        change = jnp.asarray(jnp.where(used, reported.change, 0.0))
        return WatchedChanges(change, alarm, began, changes.recent, inside)


def _root_mean_square(errors: Array) -> Array:
    """The root of the mean square of the errors of the outputs that were observed."""
    seen = ~jnp.isnan(errors)
    squares = jnp.where(seen, errors, 0.0) ** 2
    return jnp.sqrt(jnp.sum(squares) / jnp.maximum(jnp.sum(seen.astype(errors.dtype)), 1.0))


def _classed(distribution: Predictive) -> bool:
    """Whether a distribution is of classes."""
    try:
        return distribution.discrete and distribution.probs is not None
    except CredoError:
        return False
