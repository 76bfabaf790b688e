"""The time of a bandit, which no step of a clock sets ahead for good."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

__all__ = ["Clock", "Time"]

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
