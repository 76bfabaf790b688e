"""What an agent decided, and what it knew."""

from __future__ import annotations

from credo.core.records import record
from credo.core.types import Array

__all__ = ["Choice"]


@record
class Choice:
    """A decision, with all that must be kept on record of it.

    Attributes:
        arm: the number of the chosen arm, from 0.
        propensity: the probability with which it was chosen, which is exact: the arm is drawn from `pmf`.
        pmf: the probability of every arm (K,), which sums to 1.
        mean: the expected reward of every arm (K,), in units of the reward.
        sd: the standard deviation of the expected reward of every arm (K,), without the noise.

    Example:
        >>> import credo
        >>> from credo import bandits
        >>> agent = bandits.Agent(credo.BetaBernoulli(), arms=3, design="arms")
        >>> choice = agent.decide(agent.init(), None, key=0)
        >>> round(float(choice.propensity), 4), choice.mean.tolist()
        (0.3333, [0.5, 0.5, 0.5])
    """

    arm: Array
    propensity: Array
    pmf: Array
    mean: Array
    sd: Array
