"""Rewards on their way to the learner: whole ones, and parts that come one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from credo.bandits.service.content import require_reward, require_within
from credo.bandits.service.decision import RewardStatus
from credo.bandits.service.engine import Engine
from credo.bandits.service.window import Entry
from credo.core.errors import CredoError

__all__ = ["add_part", "reward"]

_COUNTED = (RewardStatus.LEARNED, RewardStatus.REFUSED, RewardStatus.ADDED)
"""The statuses that `Engine.learn` and `add_part` count themselves."""


def reward(
    engine: Engine, ids: Sequence[str], values: Sequence[float], parts: Sequence[str | None]
) -> list[RewardStatus]:
    """Learn rewards, one after the other; those with the name of a part wait for the last one."""
    for value, part in zip(values, parts, strict=True):
        require_reward(value)
        if part is not None and (not isinstance(part, str) or not part):
            raise CredoError(f"part must be a text; got {part!r}.", field="part")
    numbers = list(map(float, values))
    now = engine.arrive()
    answers: list[RewardStatus | None] = []
    with engine.writing:
        if engine.reward_range is not None:
            _require_sums(engine, ids, numbers, parts)
        learn: dict[str, tuple[int, Entry, float]] = {}

        def settle() -> None:
            engine.learn([(entry, value) for _, entry, value in learn.values()], now, imputed=False)
            for place, entry, _ in learn.values():
                answers[place] = entry.status
            learn.clear()

        for place, (id, value, part) in enumerate(zip(ids, numbers, parts, strict=True)):
            entry = engine.window.get(id)
            if entry is not None and id in learn:
                settle()  # so that this one is judged by what became of the first
            if entry is None or not entry.waits or part in entry.parts:
                answers.append(_judged(engine, id, entry, value, part))
            elif part is not None:
                answers.append(add_part(engine, entry, part, value, now))
            else:
                learn[id] = place, entry, value
                answers.append(None)
        settle()
        with engine.books:
            said = [answer for answer in answers if answer is not None]
            engine.tally.update([answer.value for answer in said if answer not in _COUNTED])
    engine.sync()
    return said


def add_part(engine: Engine, entry: Entry, part: str, value: float, now: float) -> RewardStatus:
    """Keep a part of a reward, the log first. The lock `writing` is held."""
    if engine.ledger is not None:
        engine.ledger.part(entry, part, value, now)
    with engine.books:
        entry.parts[part] = value
        engine.tally["added"] += 1
    return RewardStatus.ADDED


def _require_sums(
    engine: Engine, ids: Sequence[str], values: Sequence[float], parts: Sequence[str | None]
) -> None:
    """Refuse rewards outside the range, each with the parts before it: the sum may be learned at any time."""
    sums: dict[str, dict[str, float]] = {}
    for id, value, part in zip(ids, values, parts, strict=True):
        entry = engine.window.get(id)
        before = {} if entry is None or not entry.waits else sums.setdefault(id, dict(entry.parts))
        if part in before:
            continue
        require_within(sum(before.values()) + value, engine.reward_range, parts=bool(before))
        if part is not None:
            before[part] = value


def _judged(engine: Engine, id: object, entry: Entry | None, value: float, part: str | None) -> RewardStatus:
    """The status of a reward that is not learned."""
    if entry is None:
        if engine.window.has_left(id):
            return RewardStatus.EXPIRED
        return RewardStatus.UNKNOWN
    before = entry.reward if part is None else entry.parts.get(part)
    if value == before:
        return RewardStatus.DUPLICATE
    return RewardStatus.CONFLICT
