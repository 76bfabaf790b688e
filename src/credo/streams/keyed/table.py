"""Which row of the stack belongs to which key."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from credo.streams.keyed.naming import KeyName

__all__ = ["PAGE", "KeyTable"]

PAGE = 1024
"""The number of rows of the stack in a page of a checkpoint."""


class KeyTable:
    """Keys and their rows ("slots") in the stack.

    Attributes:
        slots: the slot of each key.
        names: the key of each slot, None where it is free.
        seen: the number of the latest row of each slot (capacity,).
        times: the time of that row (capacity,), NaN where none was given.
        changed: the pages that differ from those of the latest checkpoint.
    """

    def __init__(self, capacity: int) -> None:
        self.slots: dict[KeyName, int] = {}
        self.names: list[KeyName | None] = []
        self.seen, self.times = np.zeros(capacity, np.int64), np.full(capacity, np.nan)
        self.changed: set[int] = set()
        self._free: list[int] = []

    def find(self, names: Sequence[KeyName]) -> np.ndarray:
        """The slot of each name (n,), -1 where it has none."""
        return np.fromiter(map(self.slots.get, names, itertools.repeat(-1)), np.int64, len(names))

    def grow(self, capacity: int) -> None:
        """Have room for more keys."""
        more = capacity - len(self.seen)
        self.seen = np.concatenate([self.seen, np.zeros(more, np.int64)])
        self.times = np.concatenate([self.times, np.full(more, np.nan)])

    def add(self, names: Iterable[KeyName]) -> list[int]:
        """Give each of some new names a slot, of which there must be enough."""
        taken = []
        for name in names:
            if self._free:
                slot = self._free.pop()
                self.names[slot] = name
            else:
                slot = len(self.names)
                self.names.append(name)
            self.slots[name] = slot
            self.times[slot], self.seen[slot] = np.nan, 0
            taken.append(slot)
        return taken

    def remove(self, names: Iterable[KeyName]) -> None:
        """Let the slots of some names be free."""
        for name in names:
            slot = self.slots.pop(name)
            self.names[slot] = None
            self._free.append(slot)
            self.changed.add(slot // PAGE)

    def restore(self, slots: Sequence[int], names: Sequence[KeyName]) -> None:
        """Put names into slots of their own, of an empty table."""
        self.names = [None] * (max(slots, default=-1) + 1)
        for slot, name in zip(slots, names, strict=True):
            self.names[slot] = name
            self.slots[name] = slot
        self._free = [slot for slot, name in enumerate(self.names) if name is None]

    def oldest(self, count: int, but: np.ndarray) -> np.ndarray:
        """The slots of the keys that were seen longest ago, without some."""
        here = np.fromiter(self.slots.values(), np.int64, len(self.slots))
        here = here[~np.isin(here, but)]
        return here[np.argsort(self.seen[here], kind="stable")[:count]]

    def latest(self, count: int) -> np.ndarray:
        """The slots of the keys that were seen last, the latest first."""
        here = np.fromiter(self.slots.values(), np.int64, len(self.slots))
        return here[np.argsort(-self.seen[here], kind="stable")[:count]]
