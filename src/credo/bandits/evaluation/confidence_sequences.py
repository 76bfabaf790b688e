"""The confidence sequence of a policy's value along a log."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from credo.bandits.evaluation.estimate_warnings import require_overlap
from credo.bandits.evaluation.requests import require_request, span_of_rewards
from credo.bandits.evaluation.supermartingale_bounds import SHIFT, doubly_robust_terms, sequence_ends
from credo.bandits.evaluation.target_policies import Target
from credo.bandits.evaluation.terms import KINDS, EstimatorName
from credo.bandits.evaluation.weighed_rows import DirectModel, WeighedRows, reward_values, weigh_rows
from credo.bandits.logs import Log

__all__ = ["Bounds", "bounds_of", "confidence_sequence"]


class Bounds(NamedTuple):
    """A confidence sequence: intervals after 1, 2, ..., n rows.

    Attributes:
        low, high: the ends (n,).

    Example:
        >>> Bounds(np.array([0.0]), np.array([1.0])).low.shape
        (1,)
    """

    low: np.ndarray
    high: np.ndarray


def confidence_sequence(
    log: Log,
    policy: Target,
    *,
    estimator: EstimatorName = "ips",
    model: DirectModel | None = None,
    level: float = 0.95,
    reward_range: tuple[float, float] | None = None,
) -> Bounds:
    """Intervals of a policy's value after each row, which hold at all times together.

    So a log may be looked at every day, and an experiment stopped when the interval says so. The rows may
    come from an agent that learns; the policy must not be chosen by the same rows. The mathematics stands in
    `credo.bandits.evaluation.supermartingale_bounds`. Exact, where the rewards are in `reward_range`.

    Arguments:
        log: the decisions in the order of time; those without a reward are left out.
        policy: see `target_pmfs`.
        estimator: "ips" or "dr"; the latter needs the `pmfs` of the log, and fits its regression on the rows
            before.
        model: see `evaluate`.
        level: the probability that all intervals hold.
        reward_range: the least and the greatest reward that can occur; None takes those of the log.

    Returns:
        The ends of the intervals (n,).

    Raises:
        CredoError, DataError: as `evaluate`.

    Example:
        >>> chosen = np.arange(2000) % 2
        >>> rewards = chosen * (np.arange(2000) % 4 == 1)
        >>> log = Log(("red", "blue"), chosen, rewards, np.full(2000, 0.5))
        >>> bounds = confidence_sequence(log, "blue", reward_range=(0.0, 1.0))
        >>> bool((np.diff(bounds.low) >= 0).all()), bounds.low[-1] < 0.5 < bounds.high[-1]
        (True, np.True_)
    """
    require_request(log, estimator, "sequence", level, None, reward_range, model)
    weighed = weigh_rows(log, policy)
    require_overlap(weighed)
    values = reward_values(weighed, model, before=True, seed=0) if KINDS[estimator].models else None
    return bounds_of(weighed, values, span_of_rewards(weighed.log, reward_range, "sequence"), level)


def bounds_of(
    weighed: WeighedRows, values: np.ndarray | None, ends: tuple[float, float], level: float
) -> Bounds:
    """The confidence sequence of rows that are weighed already.

    No row of the direct model `values` (n, K) may depend on later rows; None is for ips. `ends` are the least
    and the greatest reward that can occur.
    """
    least, span = ends[0], ends[1] - ends[0]
    rewards = (weighed.log.rewards - least) / span
    if values is None:
        w = weighed.weights
        low, high = sequence_ends(w * rewards, w * (1.0 - rewards), 0.0, level)
    else:
        every = weighed.all_weights
        assert every is not None
        q = np.clip((values - least) / span, 0.0, 1.0)
        low, high = sequence_ends(
            doubly_robust_terms(weighed.target, every, weighed.log.chosen, rewards, q),
            doubly_robust_terms(weighed.target, every, weighed.log.chosen, 1.0 - rewards, 1.0 - q),
            SHIFT,
            level,
        )
    return Bounds(least + span * low, least + span * high)
