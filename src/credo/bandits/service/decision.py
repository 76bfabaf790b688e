"""The answers of a bandit: decisions, what became of a reward, counts and explanations."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["ArmDecision", "Counts", "Explanation", "Observed", "RewardStatus"]


class RewardStatus(enum.StrEnum):
    """The status of a reward. Only `LEARNED` is true.

    "learned": it was learned. "added": it is a part of a reward, which is learned when the last of it comes.
    "duplicate": this reward, or this part, came before. "conflict": another one came for this decision, and
    stays. "expired": the decision's window is over. "unknown": there is no decision of this id. "refused":
    the update would have given a belief that is not finite, so that nothing was learned, and time passed as
    with a reward that never came; another reward may correct it.

    Example:
        >>> bool(RewardStatus.LEARNED), bool(RewardStatus.DUPLICATE), RewardStatus.DUPLICATE == "duplicate"
        (True, False, True)
    """

    LEARNED = "learned"
    ADDED = "added"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    EXPIRED = "expired"
    UNKNOWN = "unknown"
    REFUSED = "refused"

    def __bool__(self) -> bool:
        return self is RewardStatus.LEARNED


class ArmDecision(NamedTuple):
    """A decision of a `Bandit`, with all that must be kept on record of it.

    Attributes:
        id: its id, by which its reward comes.
        arm: the name of the chosen arm.
        propensity: the probability with which it was chosen, which is exact; for a choice that was made
            elsewhere it is the one that was said, or NaN.
        pmf: the probability of every arm, by name; 0 for arms that were not allowed, and NaN if nobody
            said it.
        mean: the expected reward of every arm.
        sd: the standard deviation of the expected reward of every arm, without the noise.
        version: how often the belief that decided had changed.
        expires: the time after which its reward no longer counts, in seconds; None if there is none.

    Example:
        >>> ArmDecision("0-1", "red", 0.5, {"red": 0.5, "blue": 0.5}, {}, {}, 0).expires is None
        True
    """

    id: str
    arm: str
    propensity: float
    pmf: dict[str, float]
    mean: dict[str, float]
    sd: dict[str, float]
    version: int
    expires: float | None = None


class Counts(NamedTuple):
    """The numbers of decisions and rewards of a bandit so far.

    Attributes:
        decisions: the decisions.
        pending: the decisions that wait for their reward, or for another one than was refused.
        learned: the rewards that were learned.
        duplicate: the rewards that were learned before.
        conflict: the rewards of decisions that have learned another one.
        expired: the rewards that came after the window.
        unknown: the rewards of ids that no decision has.
        refused: the rewards that the learner refused.
        dropped: the decisions whose window ended without a reward, from which nothing was learned.
        imputed: the decisions whose window ended without a reward, and the default reward was learned.
        observed: the choices that were made elsewhere.
        added: the parts of rewards.
        summed: the decisions whose window ended with parts of a reward alone, whose sum was learned.

    Example:
        >>> Counts(decisions=3, pending=1).learned
        0
    """

    decisions: int = 0
    pending: int = 0
    learned: int = 0
    duplicate: int = 0
    conflict: int = 0
    expired: int = 0
    unknown: int = 0
    refused: int = 0
    dropped: int = 0
    imputed: int = 0
    observed: int = 0
    added: int = 0
    summed: int = 0


class Observed(NamedTuple):
    """A choice that was made elsewhere, and what became of its reward; true if the reward was learned.

    Attributes:
        id: the id of the choice, by which a later reward comes.
        status: what became of the reward; None if none has come yet.

    Example:
        >>> bool(Observed("0-1", RewardStatus.LEARNED)), bool(Observed("0-2", None))
        (True, False)
    """

    id: str
    status: RewardStatus | None

    def __bool__(self) -> bool:
        return bool(self.status)


@dataclass(frozen=True)
class Explanation:
    """The reason why an arm was chosen, and the belief about the arms at that context today.

    Attributes:
        decision: the decision.
        greedy: the arm with the largest expected reward then.
        explored: whether another arm was chosen.
        floor: the least probability that the policy left to an allowed arm.
        reason: one sentence.
        version: how often the belief has changed by now.
        mean, sd: what is believed now about the expected reward of every arm at that context.
        best: the probability that each arm is the best of those that were allowed, as believed now.
        prior_mean, prior_sd: what was believed before any reward; empty if the prior is not known.
        data_share: the share 1 - (sd / prior_sd)^2 of the prior variance that is gone; empty without a prior.
        status: "pending", or what became of the reward.
        shared: the names and values that share a place of the vector in which this context has something, as
            far as they are known: what is believed of one is believed of the others.

    Example:
        >>> decision = ArmDecision("0-1", "red", 0.2, {"red": 0.2, "blue": 0.8}, {}, {}, 0)
        >>> Explanation(decision, "blue", True, 0.0, "", 0, {}, {}, {}, {}, {}, {}, "pending").decision.arm
        'red'
    """

    decision: ArmDecision
    greedy: str
    explored: bool
    floor: float
    reason: str
    version: int
    mean: dict[str, float]
    sd: dict[str, float]
    best: dict[str, float]
    prior_mean: dict[str, float]
    prior_sd: dict[str, float]
    data_share: dict[str, float]
    status: str
    shared: tuple[tuple[str, ...], ...] = ()
