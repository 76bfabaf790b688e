"""The words of the beliefs of all keys: one matrix that compiled programs take and give back."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.errors import CredoError
from credo.core.types import Array
from credo.streams.keyed.away import Away, Kept
from credo.streams.keyed.naming import KeyName
from credo.streams.keyed.programs import growing, putter, taker
from credo.streams.keyed.table import PAGE, KeyTable

__all__ = ["Stack", "rounded"]

_LEAST = 8
"""The smallest number of slots that a program reads or writes."""


def rounded(count: int, least: int = _LEAST) -> int:
    """The next power of four times `least`, so that there are few programs."""
    size = least
    while size < count:
        size *= 4
    return size


class Stack:
    """The beliefs of keys as words (capacity, size), which of them are in memory, and where the others are.

    Arguments:
        size: the number of words of a belief.
        capacity: for how many keys there is room at first.
        evict: the most keys in memory, or None.
    """

    def __init__(self, size: int, capacity: int, evict: int | None) -> None:
        self.size, self.evict = size, evict
        self.capacity = capacity if evict is None else min(capacity, evict)
        require_memory(self.capacity, size)
        self.table = KeyTable(self.capacity)
        self.away = None if evict is None else Away()
        self.epoch, self.absent = 1, 0
        self._words: deque[Array] = deque([jnp.zeros((self.capacity, size), jnp.uint32)], maxlen=1)

    @property
    def words(self) -> Array:
        """The matrix."""
        return self._words[0]

    @property
    def keys(self) -> int:
        """How many keys there are, in memory and away."""
        return len(self.table) + self.absent

    def pass_over(self, learn: Callable[..., tuple[Array, Array]], *arguments: Any, row: int = 2) -> Array:
        """Let a program have the matrix, as its argument number `row`, and keep what it gives back."""
        words, reports = learn(*arguments[:row], self._words[0], *arguments[row:])
        self._words.append(words)
        return reports

    def require_room(self, names: Sequence[KeyName], here: np.ndarray) -> None:
        """Make room for some keys that are not in memory, beside those in the slots `here`."""
        need = len(self.table) + len(names)
        if self.evict is not None and need > self.evict:
            self._send_away(self.table.oldest(need - self.evict + self.evict // 16, here))
            need = len(self.table) + len(names)
        capacity = self.capacity
        while capacity < need:
            capacity *= 2
        if self.evict is not None:
            capacity = min(capacity, self.evict)
        if capacity > self.capacity:
            require_memory(capacity, self.size)
            self._words.append(growing(self._words[0], capacity))
            self.table.grow(capacity)
            self.capacity = capacity

    def find_away(self, names: Sequence[KeyName]) -> dict[KeyName, Kept]:
        """Those of some keys, none of which is in memory, that are away."""
        return {} if self.away is None or not self.absent else self.away.get(names)

    def bring(self, found: dict[KeyName, Kept]) -> None:
        """Bring keys that were away into memory, where there is room."""
        if not found:
            return
        slots = self.table.add(found)
        words = np.stack([one.words for one in found.values()])
        self.put(slots, words)
        self.table.seen[slots] = [one.seen for one in found.values()]
        self.table.times[slots] = [one.time for one in found.values()]
        self.absent -= len(found)

    def rows(self, start: int, stop: int) -> np.ndarray:
        """The words (n, size) of consecutive slots; to be let go of before a program has the matrix again."""
        if jax.default_backend() == "cpu":  # where the memory is the processor's, without a copy
            words: Any = self._words[0]
            lent: np.ndarray = np.from_dlpack(words)[start:stop]
            return lent
        return self.take(np.arange(start, stop))

    def take(self, slots: Sequence[int] | np.ndarray) -> np.ndarray:
        """The words (n, size) of some slots."""
        some = np.full(rounded(len(slots)), self.capacity, np.int32)
        some[: len(slots)] = slots
        return np.asarray(taker(self._words[0], some))[: len(slots)]

    def put(self, slots: Sequence[int] | np.ndarray, words: np.ndarray) -> None:
        """Write the words (n, size) of some slots."""
        length = rounded(len(slots))
        some = np.full(length, self.capacity, np.int32)
        some[: len(slots)] = slots
        padded = np.zeros((length, self.size), np.uint32)
        padded[: len(slots)] = words
        self._words.append(putter(self._words[0], some, padded))

    def replace(self, words: np.ndarray) -> None:
        """Begin again with a matrix (capacity, size)."""
        self.capacity = len(words)
        self.table = KeyTable(self.capacity)
        self._words.append(jnp.array(words))

    def drop(self, names: Sequence[KeyName]) -> None:
        """Forget keys, here and away; one that there is not is refused before any is forgotten."""
        gone = dict.fromkeys(names)
        slots = self.table.find(list(gone))
        outside = [name for name, slot in zip(gone, slots.tolist(), strict=True) if slot < 0]
        away = self.find_away(outside)
        for name in outside:
            if name not in away:
                raise CredoError(f"keys must be among those that were learned; got {name!r}.", field="keys")
        self.table.remove(slots[slots >= 0])
        if self.away is not None:
            self.away.drop(gone, self.epoch)
        self.absent -= len(away)

    def _send_away(self, slots: np.ndarray) -> None:
        table, away = self.table, self.away
        assert away is not None
        for start in range(0, len(slots), PAGE):
            part = slots[start : start + PAGE]
            names = [name for name in table.names(part) if name is not None]
            away.put(names, self.epoch, table.seen[part], table.times[part], self.take(part))
            table.remove(part)
            self.absent += len(names)


def require_memory(capacity: int, size: int) -> None:
    """Refuse a capacity that does not fit into the memory of this machine."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on this system
        return
    if jax.default_backend() == "cpu" and 4 * size * capacity > memory:
        raise CredoError(
            f"capacity must fit into memory: {capacity:,} keys of {4 * size:,} bytes take "
            f"{4 * size * capacity / 1e9:,.1f} GB, and there are {memory / 1e9:,.1f} GB; `evict` keeps a "
            "part of the keys on the disk.",
            field="capacity",
        )
