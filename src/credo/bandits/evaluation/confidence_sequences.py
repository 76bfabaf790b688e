"""Confidence sequences of a policy's value, whose intervals hold together at all times of a growing log.

For terms X_i >= 0 with the mean m given the past, any predictable guess c_i in [0, 1] and any predictable
rate l_i in [0, 1),

    exp( sum_i l_i (X_i - m) - psi(l_i) (X_i - c_i)^2 ),     psi(l) = -log(1 - l) - l

is a supermartingale, since exp(l y - psi(l) y^2) <= 1 + l y for y >= -1 (Fan et al., 2015; Howard et al.,
2021). So by Ville's inequality, with probability 1 - delta or more, for all n at once,

    m >= ( sum l_i X_i - log(1 / delta) - sum psi(l_i) (X_i - c_i)^2 ) / sum l_i .

The guess is the mean so far, and l_i is the predictable plug-in of Waudby-Smith & Ramdas (2024). Nothing is
asked of the greatest X_i, so the weights need no bound: rewards in [0, 1] give the lower end from w r, and
the upper end from w (1 - r), since the weights have the mean 1 (Waudby-Smith et al., 2024, "Anytime-valid
off-policy inference for contextual bandits"). Nor need the rows be independent: the log may come from an
agent that learns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from credo.bandits.evaluation.estimate_warnings import require_overlap, require_request, span_of_rewards
from credo.bandits.evaluation.estimator_kinds import KINDS, EstimatorName
from credo.bandits.evaluation.target_policies import Target
from credo.bandits.evaluation.weighed_rows import DirectModel, WeighedRows, reward_values, weigh_rows
from credo.bandits.logs import Log

__all__ = ["Bounds", "bounds_of", "confidence_sequence"]

SHIFT = 4.0
"""The most by which the terms of the doubly robust estimator may be below 0."""

_FASTEST = 0.5


def lower_sequence(terms: np.ndarray, delta: float) -> np.ndarray:
    """Lower bounds (n,) of the mean of terms (n,) >= 0, which hold together with probability 1 - delta.

    Each term has the same mean given those before it, at most 1. A bound is the greatest so far, at least 0.
    """
    count = np.arange(1, terms.size + 1)
    total = np.concatenate([[0.0], np.cumsum(terms)[:-1]])
    guess = np.minimum((0.5 + total) / count, 1.0)
    errors = (terms - guess) ** 2
    var = (0.25 + np.concatenate([[0.0], np.cumsum(errors)[:-1]])) / count
    nats = np.log(1.0 / delta)
    rate = np.minimum(np.sqrt(2.0 * nats / (var * count * np.log1p(count))), _FASTEST)
    price = -np.log1p(-rate) - rate
    bound = (np.cumsum(rate * terms) - nats - np.cumsum(price * errors)) / np.cumsum(rate)
    return np.maximum.accumulate(np.maximum(bound, 0.0))


def doubly_robust_terms(
    target: np.ndarray, weights: np.ndarray, chosen: np.ndarray, rewards: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """The doubly robust terms (n,), with the direct model cut so that they are at least -`SHIFT`.

    q'(x, k) = min(q(x, k), SHIFT / w(x, k)) is still a function of the context and the arm, so the terms
    w (r - q'(x, a)) + sum_k pi(k | x) q'(x, k) have the same mean; and they are at least -w q' >= -SHIFT.
    Here pi is `target` (n, K), w = pi / p (n, K), r is in [0, 1], and q (n, K) in [0, 1] must not depend on
    the row's reward or those after it.
    """
    rows = np.arange(len(chosen))
    with np.errstate(divide="ignore"):
        cut = np.minimum(values, SHIFT / weights)
    drawn = weights[rows, chosen] * (rewards - cut[rows, chosen])
    return np.asarray(drawn + (target * cut).sum(axis=1))


def sequence_ends(
    below: np.ndarray, above: np.ndarray, shift: float, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """The confidence sequence, lower and upper ends (n,), of a value in [0, 1].

    Given the past, the terms `below` (n,) have the value as their mean, and `above` 1 - value; both are at
    least -`shift`, which is 0 for weighted rewards and `SHIFT` for `doubly_robust_terms`.
    """

    def bound(terms: np.ndarray) -> np.ndarray:
        scaled = (terms + shift) / (1.0 + shift)
        lowest = lower_sequence(np.maximum(scaled, 0.0), (1.0 - level) / 2.0)
        return np.maximum((1.0 + shift) * lowest - shift, 0.0)

    low = bound(below)
    return low, 1.0 - bound(above)


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
    `credo.bandits.evaluation.confidence_sequences`. Exact, where the rewards are in `reward_range`.

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
    least = ends[0]
    span = ends[1] - ends[0]
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
