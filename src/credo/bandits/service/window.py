"""The decisions that are remembered: those that wait for their reward, and those that have had it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from credo.bandits.service.arms import Arms
from credo.bandits.service.decision import ArmDecision, RewardStatus

__all__ = ["Entry", "Window"]


@dataclass(slots=True, eq=False)
class Entry:
    """A remembered decision: `number` made its key, `arms` are those of its time, `numbers` pmf, mean, sd and
    whether allowed of the slots (4, K), `version` how often the belief had changed, `content` stands for what
    was asked, and `status` says what became of its `reward`, None before any came. `parts` of the reward came
    before it, by their names, and `observed` says that the choice was made elsewhere. If arms have features,
    these are `rows` (K, e), which decisions share, and `x` is the context alone.
    """

    id: str
    number: int
    slot: int
    arms: Arms
    x: np.ndarray | None
    numbers: np.ndarray
    version: int
    time: float
    expires: float | None
    content: str
    status: RewardStatus | None = None
    reward: float | None = None
    parts: dict[str, float] = field(default_factory=dict)
    observed: bool = False
    rows: np.ndarray | None = None

    def whole(self, value: float) -> float:
        """The reward that is learned if the last of it is this value."""
        if self.parts:
            return math.fsum([*self.parts.values(), value])
        return value

    @property
    def waits(self) -> bool:
        """Whether a reward may still be learned: none came, or one that was refused and may be corrected."""
        return self.status is not RewardStatus.LEARNED

    @property
    def arm(self) -> str:
        """The name of the chosen arm."""
        name = self.arms.slots[self.slot]
        assert name is not None
        return name

    @property
    def decision(self) -> ArmDecision:
        """The decision, as it was answered."""
        pmf, mean, sd = map(self.arms.of_slots, self.numbers[:3].tolist())
        arm = self.arm
        return ArmDecision(self.id, arm, pmf[arm], pmf, mean, sd, self.version, self.expires)


class Window:
    """The latest decisions by their ids, at most `size`, each for at most `timeout` seconds, and the ids of
    as many that have left. `waiting` counts those that wait for a reward, by the slot of their arm.
    """

    def __init__(self, size: int, timeout: float | None, arms: int) -> None:
        self.size = size
        self.timeout = timeout
        self.waiting = [0] * arms
        self._entries: dict[str, Entry] = {}
        self._gone: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    @property
    def pending(self) -> int:
        """The number of decisions that wait for a reward."""
        return sum(self.waiting)

    @property
    def gone(self) -> tuple[str, ...]:
        """The ids of decisions that have left the window, the oldest first."""
        return tuple(self._gone)

    def copy(self) -> Window:
        """A window with the same decisions."""
        other = Window(self.size, self.timeout, len(self.waiting))
        for entry in self:
            other.add(replace(entry, parts=dict(entry.parts)))
        other.forget(self.gone)
        return other

    def get(self, id: object) -> Entry | None:
        """The decision of an id, if it is in the window."""
        if isinstance(id, str):
            return self._entries.get(id)
        return None

    def has_left(self, id: object) -> bool:
        """Whether the decision of an id has left the window, as far as is remembered."""
        return isinstance(id, str) and id in self._gone

    def add(self, entry: Entry) -> None:
        """Remember a decision."""
        self._entries[entry.id] = entry
        self.waiting[entry.slot] += entry.waits

    def settle(self, entry: Entry, reward: float, status: RewardStatus) -> None:
        """Put down what became of the reward of a decision that waited."""
        entry.reward = reward
        entry.status = status
        self.waiting[entry.slot] -= not entry.waits

    def drop(self, entry: Entry) -> None:
        """Remove a decision, if it has not left."""
        if self._entries.pop(entry.id, None) is not None:
            self.waiting[entry.slot] -= entry.waits
            self.forget((entry.id,))

    def forget(self, ids: tuple[str, ...]) -> None:
        """Remember of some decisions that they have left the window."""
        self._gone.update(dict.fromkeys(ids))
        while len(self._gone) > self.size:
            del self._gone[next(iter(self._gone))]

    def over(self, now: float, room: int = 0) -> bool:
        """Whether a decision must leave. The arguments are those of `leave`."""
        if not self._entries:
            return False
        expires = next(iter(self._entries.values())).expires
        return len(self._entries) + room > self.size or (expires is not None and expires <= now)

    def leave(self, now: float, room: int = 0) -> list[Entry]:
        """Take out what is over, so that there is `room` for new ones; those that learned no reward."""
        lost = []
        while self.over(now, room):
            oldest = next(iter(self._entries.values()))
            del self._entries[oldest.id]
            self.forget((oldest.id,))
            if oldest.waits:
                self.waiting[oldest.slot] -= 1
                lost.append(oldest)
        return lost
