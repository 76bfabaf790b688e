"""A learner that is watched: when did its losses become larger than they had been?"""

from __future__ import annotations

from typing import Any, Generic

import jax.numpy as jnp

from credo.adapt.changepoints import ChangeReport
from credo.adapt.loss_levels import LevelChanges, Reported, share_losses, size_losses
from credo.adapt.nested import Around, B, Mixture, floating, within
from credo.adapt.wrapper import Proposal, Wrapper
from credo.core.errors import CredoError, require_interval, require_positive
from credo.core.records import record, replace
from credo.core.trees import as_like, select
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.learners.acceptance import clean, scored
from credo.likelihoods import Predictive

__all__ = ["Monitored", "Monitoring", "WatchedChanges"]


@record
class WatchedChanges(ChangeReport):
    """What a step of `Monitored` says about changes.

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
    Losses are not measured by what was forecast of them: a good mixture becomes as wide as it should be
    within a few rows of a change, after which the change no longer shows.

    Arguments:
        learner: any learner of classes, numbers or counts.
        hazard: P(change) before a row. For class losses with a mean of at most the level so far, the mean
            number of rows before a false alarm is at least threshold / ((1 - threshold) hazard), but for what
            is pruned.
        threshold: the probability of a segment not yet reported above which an alarm is given.
        separation: the number of rows after the start of a reported segment within which another start counts
            as the same.
        unit: the unit of a number, above 0; 1 if targets are standardised.

    Raises:
        CredoError: a number is outside its range, or (later) the learner forecasts neither classes nor
            numbers.

    Forecasts, evidence and the belief inside are those of the learner. `extras` are a `WatchedChanges`, of
    which `credo.alarms` reads the rows. A learner that recovers in a few rows leaves little evidence of the
    change, whose probability may then fall again; the alarm was given. A row that is refused, misses its
    target or has the weight 0 is no evidence; any other weight counts as 1. The 20 likeliest times of the
    latest change are kept, and the new ones of the latest ten rows, so that probabilities are exact but for
    what is dropped.

    Cost: what the forecast's mean costs, and a few passes over 525 probabilities.

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

    def __post_init__(self) -> None:
        super().__post_init__()
        require_interval("hazard", self.hazard, 0.0, 1.0)
        require_interval("threshold", self.threshold, 0.0, 1.0)
        require_positive("unit", self.unit)

    def wrap(self, prior: B) -> Monitoring[B]:
        """The inner learner's first belief, and no change so far."""
        return Monitoring(prior, LevelChanges.first(floating(prior)), jnp.zeros((), jnp.int32))

    def advance(self, belief: Monitoring[B], dt: ArrayLike | None) -> Monitoring[B]:
        """Let time pass for the learner inside, and for changes."""
        later = self.learner.time_update(belief.belief, dt)
        return replace(belief, belief=later, changes=belief.changes.later(self.hazard, dt))

    def propose(
        self, belief: Monitoring[B], x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> Proposal[Monitoring[B]]:
        """Let the learner inside learn, and weigh when its losses became larger."""
        seen = x if self.takes_missing else clean(x)
        law = self.learner.predictive(belief.belief, seen, None, None, key)
        learned, info = self.learner.measurement_update(belief.belief, x, y, weight, key)
        levels = self._losses(law, scored(y), info.log_evidence.astype(belief.changes.probs.dtype))
        changes, reported = belief.changes.learned(levels, self.threshold, self.separation)
        new = replace(belief, belief=learned, changes=changes)
        return Proposal(new, info.log_evidence, info.ok, (reported, info.extras))

    def _losses(self, law: Predictive, y: PyTree, log_evidence: Array) -> Array:
        """The log likelihoods of the levels (25,), given what was forecast and what came."""
        if _classed(law):
            return share_losses(1.0 - jnp.exp(jnp.minimum(log_evidence, 0.0)))
        target, mean = as_like(y, log_evidence), law.mean.astype(log_evidence.dtype)
        if law.discrete:
            target, mean = (2.0 * jnp.sqrt(jnp.maximum(value, 0.0) + 0.375) for value in (target, mean))
        error = target - mean if law.discrete else (target - mean) / as_like(self.unit, mean)
        return size_losses(_root_mean_square(error) if error.ndim else error)

    def settle(self, used: Array, new: Monitoring[B], old: Monitoring[B]) -> Monitoring[B]:
        """What the learner inside has chosen stands; changes are chosen here."""
        return replace(new, changes=select(used, new.changes, old.changes))

    def report(self, belief: Monitoring[B], proposal: Proposal[Monitoring[B]], used: Array) -> Any:
        """What the step says about changes."""
        reported: Reported
        reported, inside = proposal.extras
        alarm, changes = reported.alarm & used, belief.changes
        began = jnp.where(alarm, changes.t - changes.reported, 0)
        change = jnp.asarray(jnp.where(used, reported.change, 0.0))
        return WatchedChanges(change, alarm, began, changes.recent, inside)


def _root_mean_square(errors: Array) -> Array:
    """The root of the mean square of the errors of the outputs that were observed."""
    seen = ~jnp.isnan(errors)
    squares = jnp.where(seen, errors, 0.0) ** 2
    return jnp.sqrt(jnp.sum(squares) / jnp.maximum(jnp.sum(seen.astype(errors.dtype)), 1.0))


def _classed(law: Predictive) -> bool:
    """Whether a distribution is of classes."""
    try:
        return law.discrete and law.probs is not None
    except CredoError:
        return False
