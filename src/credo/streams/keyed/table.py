"""Which row of the stack belongs to which key: a hash table of arrays, some 35 bytes for a whole number."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from credo.streams.keyed.naming import KeyName

__all__ = ["PAGE", "KeyTable"]

PAGE = 1024
"""The number of rows of the stack in a page of a checkpoint."""

# What a slot holds: nothing, a whole number that is its own code, or another name, whose code is a hash.
FREE = 0
NUMBER = 1
OTHER = 2

_EMPTY = -1
_GONE = -2
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_LEAST = 64


class KeyTable:
    """Keys and their rows ("slots") in the stack.

    The index is a table with open addressing: a key begins to look at the place that the upper bits of its
    code times the golden ratio say (Knuth, 1973, "Sorting and searching", section 6.4), and goes on to the
    next places. Many keys look side by side, in NumPy.

    Attributes:
        end: the number of the first slot that was never taken.
        seen: the number of the latest row of each slot (capacity,).
        times: the time of that row (capacity,), NaN where none was given.
        changed: the pages whose rows differ from those of the latest checkpoint.
        renamed: the pages whose keys do.
    """

    def __init__(self, capacity: int) -> None:
        self.end = 0
        self.seen = np.zeros(capacity, np.int64)
        self.times = np.full(capacity, np.nan)
        self.changed: set[int] = set()
        self.renamed: set[int] = set()
        self._codes = np.zeros(capacity, np.int64)
        self._kinds = np.zeros(capacity, np.uint8)
        self._others: list[KeyName | None] = []  # of all slots, once there is one that is no number
        self._free: list[int] = []
        self._index = np.full(_LEAST, _EMPTY, np.int32)
        self._used = 0

    def __len__(self) -> int:
        return self.end - len(self._free)

    def find(self, names: Sequence[KeyName]) -> np.ndarray:
        """The slot of each name (n,), -1 where it has none."""
        codes, kinds = _coded(names)
        found = np.full(len(names), -1, np.int64)
        rows = np.arange(len(names))
        at = self._start(codes, kinds)
        last = len(self._index) - 1
        while len(rows):
            slots = self._index[at]
            same = (slots >= 0) & (self._codes[slots] == codes[rows]) & (self._kinds[slots] == kinds[rows])
            if self._others and (some := np.flatnonzero(same & (kinds[rows] == OTHER))).size:
                theirs = list(map(self._others.__getitem__, slots[some].tolist()))
                ours = list(map(names.__getitem__, rows[some].tolist()))
                if theirs != ours:  # other names with the same hash
                    same[some] = list(map(operator.eq, theirs, ours))
            found[rows[same]] = slots[same]
            further = np.flatnonzero(~same & (slots != _EMPTY))
            rows = rows[further]
            at = (at[further] + 1) & last
        return found

    def names(self, slots: np.ndarray) -> list[KeyName | None]:
        """The key of each slot, None where it is free."""
        kinds = self._kinds[slots]
        names: list[KeyName | None] = self._codes[slots].tolist()
        if (kinds != NUMBER).any():
            for row in np.flatnonzero(kinds != NUMBER).tolist():
                names[row] = self._others[slots[row]] if kinds[row] == OTHER else None
        return names

    def grow(self, capacity: int) -> None:
        """Have room for more keys."""
        more = capacity - len(self.seen)
        self.seen, self._codes, self._kinds = (
            np.concatenate([one, np.zeros(more, one.dtype)]) for one in (self.seen, self._codes, self._kinds)
        )
        self.times = np.concatenate([self.times, np.full(more, np.nan)])

    def add(self, names: Iterable[KeyName]) -> np.ndarray:
        """Give each of some new and different names a slot (n,), of which there must be enough."""
        new = list(names)
        reused = min(len(new), len(self._free))
        again = [self._free.pop() for _ in range(reused)]
        slots = np.array([*again, *range(self.end, self.end + len(new) - reused)], np.int64)
        self._name(slots, new)
        self.times[slots] = np.nan
        self.seen[slots] = 0
        return slots

    def remove(self, slots: np.ndarray) -> None:
        """Free some slots."""
        at = self._start(self._codes[slots], self._kinds[slots])
        last = len(self._index) - 1
        rows = np.arange(len(slots))
        while len(rows):
            there = self._index[at] == slots[rows]
            self._index[at[there]] = _GONE
            rows = rows[~there]
            at = (at[~there] + 1) & last
        self._kinds[slots] = FREE
        for slot in slots.tolist() if self._others else ():
            self._others[slot] = None
        self._free += slots.tolist()
        self._mark(slots)

    def restore(self, slots: np.ndarray, names: Sequence[KeyName]) -> None:
        """Put names into slots of their own, of an empty table."""
        self._name(slots, names)
        self._free = np.flatnonzero(self._kinds[: self.end] == FREE).tolist()
        self.renamed.clear()
        self.changed.clear()

    def oldest(self, count: int, but: np.ndarray) -> np.ndarray:
        """The slots of the keys that were seen longest ago, without some."""
        here = np.setdiff1d(self._taken(), but)
        return here[np.argsort(self.seen[here], kind="stable")[:count]]

    def latest(self, count: int) -> np.ndarray:
        """The slots of the keys that were seen last, the latest first."""
        here = self._taken()
        return here[np.argsort(-self.seen[here], kind="stable")[:count]]

    def _taken(self) -> np.ndarray:
        return np.flatnonzero(self._kinds[: self.end] != FREE)

    def _mark(self, slots: np.ndarray) -> None:
        pages = np.unique(slots // PAGE).tolist()
        self.changed.update(pages)
        self.renamed.update(pages)

    def _name(self, slots: np.ndarray, names: Sequence[KeyName]) -> None:
        """Note the names of slots that were free, and bring them into the index."""
        self._codes[slots], self._kinds[slots] = _coded(names)
        self.end = max(self.end, int(slots.max(initial=-1)) + 1)
        if self._others or (self._kinds[slots] == OTHER).any():
            self._others += [None] * (self.end - len(self._others))
            for slot, name in zip(slots.tolist(), names, strict=True):
                if self._kinds[slot] == OTHER:
                    self._others[slot] = name
        self._mark(slots)
        if 2 * (self._used + len(slots)) > len(self._index):
            size = _LEAST
            while size < 3 * (len(self) + len(slots)):
                size *= 2
            self._index = np.full(size, _EMPTY, np.int32)
            self._used = 0
            slots = self._taken()
        self._place(slots)

    def _place(self, slots: np.ndarray) -> None:
        """Bring slots into the index, of which each takes the first place that it finds free."""
        at = self._start(self._codes[slots], self._kinds[slots])
        last = len(self._index) - 1
        while len(slots):
            free = np.flatnonzero(self._index[at] < 0)
            places, first = np.unique(at[free], return_index=True)
            here = free[first]
            self._used += int((self._index[places] == _EMPTY).sum())
            self._index[places] = slots[here]
            rest = np.ones(len(slots), bool)
            rest[here] = False
            slots = slots[rest]
            at = (at[rest] + 1) & last

    def _start(self, codes: np.ndarray, kinds: np.ndarray) -> np.ndarray:
        """The places in the index at which to begin (n,)."""
        bits = np.uint64(64 - (len(self._index) - 1).bit_length())
        mixed = (codes.view(np.uint64) ^ (kinds.astype(np.uint64) << np.uint64(32))) * _GOLDEN
        return (mixed >> bits).astype(np.int64)


def _coded(names: Sequence[KeyName]) -> tuple[np.ndarray, np.ndarray]:
    """The code of each name and its kind (n,)."""
    types = set(map(type, names))
    if types == {int}:
        try:
            return np.array(names, np.int64), np.full(len(names), NUMBER, np.uint8)
        except OverflowError:
            pass
    codes: Any = np.fromiter(map(hash, names), np.int64, len(names))
    kinds = np.full(len(names), OTHER, np.uint8)
    for row, name in enumerate(names) if int in types else ():
        if isinstance(name, int) and -(2**63) <= name < 2**63:
            codes[row] = name
            kinds[row] = NUMBER
    return codes, kinds
