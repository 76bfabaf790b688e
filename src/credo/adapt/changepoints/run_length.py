"""Hypotheses about how long ago the world last changed (run lengths), and about all times when it did."""

from __future__ import annotations

from typing import Generic

from credo.adapt.changepoints.slots import Changepoints
from credo.adapt.changepoints.successors import SuccessorOfEach, Successors
from credo.adapt.nested import B
from credo.core.errors import CredoError, require_integer
from credo.core.records import record, static_field

__all__ = ["ChangeTimes", "RunLength"]


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
