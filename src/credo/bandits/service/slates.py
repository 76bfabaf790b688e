"""Slates: several arms for one context, in an order, and what a reader of the list clicked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from credo.bandits.logs.json_lines import MARK, place_id
from credo.bandits.service.casting import Names, as_names
from credo.bandits.service.decision import ArmDecision, RewardStatus
from credo.bandits.service.outcomes import Outcomes
from credo.core.errors import CredoError, require_integer

__all__ = ["Reading", "Slate", "Slates"]

Reading: TypeAlias = Literal["all", "cascade"] | Sequence[float]
"""What a reader saw of a slate: all of it, all down to the first click, or each place with a probability."""


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


class Slates(Outcomes):
    """The verbs of a `Bandit` for slates. A slate is one decision a place, each among the arms that are left.

    So everything that holds for decisions holds for it: it is on the disk before it is answered, its
    propensities are exact, and a repeated id gives the same slate.

    Arguments:
        service: the parts of the bandit.

    Example:
        >>> import credo
        >>> from credo import bandits
        >>> agent = bandits.Agent(credo.BetaBernoulli(), arms=3, design="arms")
        >>> bandit = bandits.Bandit(agent, arms=["red", "blue", "green"])
        >>> slate = bandit.decide_slate(size=2)
        >>> [str(status) for status in bandit.reward_slate(slate.id, [0, 1], seen="cascade") if status]
        ['learned', 'learned']
    """

    def decide_slate(
        self, context: Any = None, arms: Names = None, *, size: int, id: str | None = None
    ) -> Slate:
        """Choose several arms in an order: each place is a decision among the arms that are not above it.

        An agent scores arms one by one, so a slate has no sense of arms that go well together.

        Arguments:
            context: as for `decide`.
            arms: as for `decide`.
            size: how many arms, S, at most as many as may be chosen.
            id: an id of your own, without "#"; None for a new one. The places below the first have ids that
                end in "#2", "#3", ... A repeated id gives the same slate again, whatever has become of its
                arms; one that broke off, or is asked for with a larger size, gets the places that it lacks.

        Returns:
            The slate.

        Raises:
            CredoError: as for `decide`; or there are fewer arms than places, or arms have shares, which are
                of single decisions; or the slate of the id has more places. Nothing changes.
            DataError: the log cannot be written. The places that are there already are found by the id.

        Cost: S decisions.
        """
        require_integer("size", size, 1, self._engine.window.size)
        if id is not None and MARK in id:
            raise CredoError(f"id of a slate must be without '{MARK}'; got {id!r}.", field="id")
        there = 0 if id is None else self._places(id)
        if there > size:
            raise CredoError(
                f"size must be at least that of the slate {id!r}, {there}; got {size}.", field="size"
            )
        if 1 < size != there and self.shares:
            raise CredoError(
                f"size must be 1 where arms have shares, which are of single decisions; got {size}.",
                field="size",
            )
        names = as_names(arms)
        ids = [] if id is None else [place_id(id, place) for place in range(1, there + 1)]
        above = [entry.arm for entry in map(self._engine.window.get, ids) if entry is not None]
        left = list(self.arms if names is None else dict.fromkeys(names))
        possible = there + sum(name not in self.forbidden and name not in above for name in left)
        if possible < size:
            raise CredoError(
                f"size must be at most the number of arms that may be chosen, {possible}; got {size}.",
                field="size",
            )
        found = [self._engine.decide(context, names, id)]
        for place in range(2, size + 1):
            left = [name for name in left if name != found[-1].arm]
            own = place_id(found[0].id, place)
            before = self._engine.window.get(own)
            rest = {name: names[name] for name in left} if isinstance(names, Mapping) else tuple(left)
            found.append(
                self._engine.decide(context, rest, own) if before is None else self._engine.answer(before)
            )
        return Slate(found[0].id, tuple(found))

    def reward_slate(
        self, id: str, values: Sequence[float], *, seen: Reading = "cascade"
    ) -> list[RewardStatus | None]:
        """Learn what a reader of a slate did.

        Of a place that was not seen nothing is learned. With the probabilities e_k that place k is seen
        (the position-based model, Craswell et al. 2008, WSDM), v_k / e_k is learned, whose expectation is the
        value of an arm that is seen: exact in the mean, with more noise further down.

        Arguments:
            id: the id of the slate.
            values: the reward of each place, (S,), such as 1 for a click and 0 for none.
            seen: "cascade": the reader goes from the top down and stops at the first reward that is not 0;
                "all": all places were seen; or the probabilities e_k (S,), above 0 and at most 1.

        Returns:
            What became of the reward of each place; None if the place was not seen. Such a place waits for
            its reward until its window ends, and is dropped then.

        Raises:
            CredoError: there are not as many values as places, or a probability is none; or places are left
                without a reward where `on_missing` would have a reward learned for them; or as for `reward`.
            DataError: as for `reward`.
        """
        numbers = list(values)
        ids = [place_id(id, place) for place in range(1, max(self._places(id) or len(numbers), 1) + 1)]
        if len(numbers) != len(ids):
            raise CredoError(
                f"values must be as many as the places of the slate, {len(ids)}; got {len(numbers)}.",
                field="values",
            )
        stop = len(ids)
        if isinstance(seen, str) and seen == "cascade":
            stop = next((place for place, value in enumerate(numbers) if value != 0), len(ids) - 1) + 1
            if stop < len(ids) and self._engine.on_missing != "drop":
                raise CredoError(
                    "seen must be 'all' or probabilities where on_missing is a reward, which would be "
                    "learned for places that nobody saw; got 'cascade'.",
                    field="seen",
                )
        elif not (isinstance(seen, str) and seen == "all"):
            numbers = [value / share for value, share in zip(numbers, _shares(seen, stop), strict=True)]
        learned = self.reward_batch(ids[:stop], numbers[:stop])
        return [*learned, *[None] * (len(ids) - stop)]

    def _places(self, id: str) -> int:
        """How many places a slate has in the window; 0 if it is not there."""
        window, count = self._engine.window, 0
        while window.get(place_id(id, count + 1)) is not None:
            count += 1
        return count


def _shares(seen: object, count: int) -> list[float]:
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
