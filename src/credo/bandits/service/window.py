"""The decisions that are remembered, with and without their reward, and the time after which they leave."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from credo.bandits.service.arms import Arms
from credo.bandits.service.decision import ArmDecision, RewardStatus

__all__ = ["Clock", "Entry", "Time", "Window"]

Clock: TypeAlias = Callable[[], float]
"""A function that tells the time in seconds."""


class Time:
    """Seconds that never go back, and go on where a clock does.

    If no `clock` is passed, it is the system's at the start, and from then on `time.monotonic`, which no
    correction of the system's clock moves. A clock that goes back has `behind` seconds less from then on, so
    that time goes on with it: latest = max(latest, clock + behind).
    """

    def __init__(self, clock: Clock | None, latest: float = -math.inf, behind: float = 0.0) -> None:
        self.clock = clock
        self.latest = latest
        self.behind = behind
        self._start = time.time() - time.monotonic()

    def copy(self) -> Time:
        """Another time that goes on from here."""
        other = Time(self.clock, self.latest, self.behind)
        other._start = self._start
        return other

    def now(self, now: float | None = None) -> float:
        """The time by the clock, or a time that somebody says it is; one that lies behind changes nothing."""
        if now is None:
            told = self._start + time.monotonic() if self.clock is None else float(self.clock())
            if told + self.behind < self.latest:
                self.behind = self.latest - told
            now = told + self.behind
        self.latest = max(self.latest, float(now))
        return self.latest

    def to_dict(self) -> dict[str, Any]:
        """The state, as JSON data. It is saved by the system's clock, which tells how long a bandit rests."""
        stepped = 0.0 if self.clock is not None else self._start + time.monotonic() - time.time()
        return {
            "latest": self.latest if math.isfinite(self.latest) else None,
            "behind": self.behind + stepped,
        }

    @classmethod
    def restore(cls, saved: Mapping[str, Any], clock: Clock | None) -> Time:
        """The time that `to_dict` described, by another clock."""
        latest = -math.inf if saved["latest"] is None else float(saved["latest"])
        behind = float(saved["behind"])
        if math.isnan(latest) or not math.isfinite(behind):
            raise ValueError(f"times must be finite; got {latest!r} and {behind!r}")
        return cls(clock, latest, behind)


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
        names = self.arms.names
        order = self.arms.order
        numbers = self.numbers[:3] if order is None else self.numbers[:3, order]
        shares, means, sds = numbers.tolist()
        pmf = dict(zip(names, shares, strict=True))
        mean = dict(zip(names, means, strict=True))
        sd = dict(zip(names, sds, strict=True))
        arm = self.arms.slots[self.slot]
        assert arm is not None
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

    def unused(self, name: str) -> str:
        """A name like this one that no decision has, as far as is remembered."""
        while name in self._entries or name in self._gone:
            name += "+"
        return name

    def has_left(self, id: object) -> bool:
        """Whether the decision of an id has left the window, as far as is remembered."""
        return isinstance(id, str) and id in self._gone

    def add(self, entry: Entry) -> None:
        """Remember a decision."""
        self._entries[entry.id] = entry
        self.waiting[entry.slot] += entry.status is not RewardStatus.LEARNED

    def settle(self, entry: Entry, reward: float, status: RewardStatus) -> None:
        """Put down what became of the reward of a decision that waited."""
        entry.reward = reward
        entry.status = status
        self.waiting[entry.slot] -= status is RewardStatus.LEARNED

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
