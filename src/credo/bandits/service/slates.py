"""Slates: several arms for one context, in an order, and what a reader of the list saw of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from credo.bandits.service.decision import ArmDecision
from credo.core.errors import CredoError

__all__ = ["Reading", "Slate", "seen_shares"]

Reading: TypeAlias = Literal["all", "cascade"] | Sequence[float]
"""The part of a slate that was seen: all, all down to the first click, or each place with a probability."""


@dataclass(frozen=True)
class Slate:
    """Arms in order, the first at the top, and the decision behind each of them.

    Attributes:
        id: the id of the slate, which is that of its first decision.
        decisions: a decision for each place. Its propensity is the probability of its arm at this place,
            given those above it.

    Example:
        >>> pmf = {"red": 0.5, "blue": 0.5}
        >>> first = ArmDecision("0-1", "red", 0.5, pmf, {}, {}, 0)
        >>> second = ArmDecision("0-1#2", "blue", 1.0, {"red": 0.0, "blue": 1.0}, {}, {}, 0)
        >>> slate = Slate("0-1", (first, second))
        >>> slate.arms, slate.propensity
        (('red', 'blue'), 0.5)
    """

    id: str
    decisions: tuple[ArmDecision, ...]

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of the arms, from the top."""
        return tuple(decision.arm for decision in self.decisions)

    @property
    def propensity(self) -> float:
        """The probability of the whole slate, in its order."""
        return math.prod(decision.propensity for decision in self.decisions)


def seen_shares(seen: object, count: int) -> list[float]:
    """The probabilities that places are seen; a CredoError if they are none."""
    try:
        shares = [float(share) for share in seen]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        shares = []
    if len(shares) != count or not all(0 < share <= 1 for share in shares):
        raise CredoError(
            f"seen must be 'all', 'cascade', or a probability above 0 and at most 1 for each of the {count} "
            f"places; got {seen!r:.80}.",
            field="seen",
        )
    return shares
