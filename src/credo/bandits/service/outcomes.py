"""What became of decisions: rewards, parts of them, and choices that were made elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from credo.bandits.service import observing, rewarding
from credo.bandits.service.casting import Names
from credo.bandits.service.decision import Observed, RewardStatus
from credo.bandits.service.named_arms import NamedArms
from credo.core.errors import CredoError

__all__ = ["Outcomes"]


class Outcomes(NamedArms):
    """What a `Bandit` is told about its decisions, and about those of others.

    Arguments:
        service: the parts of the bandit.

    Example:
        >>> import credo
        >>> from credo import bandits
        >>> agent = bandits.Agent(credo.BetaBernoulli(), arms=3, design="arms")
        >>> bandit = bandits.Bandit(agent, arms=["red", "blue"])
        >>> bandit.observe(None, "red", 1.0, propensity=0.5).status.value
        'learned'
        >>> round(bandit.decide().mean["red"], 4)
        0.6667
    """

    def reward(self, id: str, value: float, *, part: str | None = None) -> RewardStatus:
        """Learn the reward of a decision, once; or keep a part of it, until the last one comes.

        The whole reward is the sum of the named parts and of the one value without a name, which closes it,
        as 0 does if nothing is to come. It is learned in one piece, then, or when the window of the
        decision ends: rewards are learned by the belief of the day, and a sum is no sequence of rewards.

        Arguments:
            id: the id of the decision.
            value: its reward, or the part of it.
            part: the name of the part, such as the id of a purchase, by which a repeated one is known; None
                for the last value.

        Returns:
            What became of it, which is true only if it was learned. A reward that is a duplicate, conflicts
            with the one that was learned, came after the window, or has no decision changes nothing but the
            counts. One that the learner refused may be corrected by another.

        Raises:
            CredoError: the reward is no finite number, or outside the range, with the parts before it;
                nothing changes.
            DataError: the log cannot be written; nothing changes. If it was written, but the disk did not
                confirm it, all later calls are refused: load the bandit again, which learns what is there.
        """
        return rewarding.reward(self._engine, [id], [value], [part])[0]

    def reward_batch(
        self,
        ids: Sequence[str],
        values: Sequence[float] | np.ndarray,
        *,
        parts: Sequence[str | None] | None = None,
    ) -> list[RewardStatus]:
        """Learn several rewards, one after the other in one compiled program, as a loop of `reward` would.

        Arguments:
            ids: the ids of their decisions.
            values: the rewards.
            parts: the name of the part that each is, or None.

        Returns:
            What became of each.

        Raises:
            CredoError: one is no finite number, or there are not as many as ids; nothing changes.
        """
        ids, numbers = list(ids), list(values)
        names: list[str | None] = [None] * len(ids) if parts is None else list(parts)
        for field, given in (("values", numbers), ("parts", names)):
            if len(ids) != len(given):
                raise CredoError(
                    f"{field} must be as many as ids, {len(ids)}; got {len(given)}.", field=field
                )
        return rewarding.reward(self._engine, ids, numbers, names)

    def observe(
        self,
        context: Any,
        arm: str,
        reward: float | None = None,
        *,
        propensity: observing.Propensity = None,
        arms: Names = None,
        id: str | None = None,
    ) -> Observed:
        """Learn from a choice that was made elsewhere, as by a legacy policy or a human.

        It is kept as decisions are: in the window, in the log, and on the disk before this returns. A log
        with its propensity serves off-policy evaluation; choices whose propensity nobody knows are learned,
        and `Log.read` leaves them out and counts them.

        Arguments:
            context: as for `decide`.
            arm: the name of the chosen arm, which may be a forbidden one.
            reward: its reward; None if it comes later, by `reward` and the id.
            propensity: the probability with which it was chosen; or those of all arms by name; None if
                nobody knows.
            arms: the arms among which it was chosen, as for `decide`; None for those of `propensity`, or all.
            id: an id of your own; None for a new one. A repeated id says again what was said, and learns no
                reward twice; without one, a call that is repeated is a second choice.

        Returns:
            The id, and what became of the reward.

        Raises:
            CredoError: an arm is unknown, the propensity is no probability, the reward or the context cannot
                be used, or the id was used for another choice. Nothing changes.
            DataError: the log cannot be written.
        """
        return observing.observe(self._engine, context, arm, reward, propensity, arms, id)

    def tick(self, now: float | None = None) -> int:
        """Let the decisions whose time is over leave the window.

        Arguments:
            now: the time in seconds; None asks the clock. Time never goes back.

        Returns:
            How many had no reward, or only parts of it.
        """
        lost = self._engine.expire(self._engine.now(now))
        self._engine.sync()
        return lost
