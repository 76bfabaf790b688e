"""The work of keyed learners: which rows go into which tiles, and what the compiled programs are given."""

from __future__ import annotations

import ctypes
import functools
import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt.moments import collapse
from credo.core.errors import CredoError, Named
from credo.core.types import Array, PyTree
from credo.learners import Info, Learner
from credo.programs.form import Form, setting_of
from credo.programs.words import NEVER, WordLayout, shape_of
from credo.streams.keyed.away import Away, Kept
from credo.streams.keyed.naming import KeyName, salt
from credo.streams.keyed.programs import (
    POOLED,
    Lanes,
    Prior,
    draws,
    forecaster,
    growing,
    learner_of,
    pooler,
    putter,
    taker,
)
from credo.streams.keyed.table import PAGE, KeyTable
from credo.streams.live import Answer
from credo.streams.scoring import Outcome

__all__ = ["Engine", "Late", "tile_places"]


def give_back() -> None:
    """Give the system what was freed and is kept for later, such as 80 MB after a program was compiled.

    Only the C library of GNU keeps so much, and has a function for it; with another one nothing happens.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@functools.cache
def _trim() -> Callable[[int], int] | None:
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    return trim


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
        self.size = size
        self.evict = evict
        self.capacity = capacity if evict is None else min(capacity, evict)
        require_memory(self.capacity, size)
        self.table = KeyTable(self.capacity)
        self.away = None if evict is None else Away()
        self.epoch = 1
        self.absent = 0
        self._words: deque[Array] = deque([jnp.zeros((self.capacity, size), jnp.uint32)], maxlen=1)

    @property
    def words(self) -> Array:
        """The matrix."""
        return self._words[0]

    @property
    def keys(self) -> int:
        """The number of keys, in memory and away."""
        return len(self.table) + self.absent

    def pass_over(self, learn: Callable[..., tuple[Array, Array]], *arguments: Any, row: int = 2) -> Array:
        """Give a program the matrix, as its argument number `row`, and keep what it gives back."""
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
        if self.away is None or not self.absent:
            return {}
        return self.away.get(names)

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
        table = self.table
        away = self.away
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
            f"{4 * size * capacity / 1000000000.0:,.1f} GB, and there are {memory / 1000000000.0:,.1f} "
            f"GB; {Named('evict')} keeps a part of the keys on the disk.",
            field="capacity",
        )


def tile_places(slots: np.ndarray, tile: int) -> tuple[np.ndarray, int]:
    """The place of each row, tile number * width + lane (n,), and the number of tiles.

    There are as few tiles as there can be: the rows of the commonest key, or n / width. Rows are laid out
    key by key, lane after lane (the wrap-around rule of McNaughton, 1959, "Scheduling with deadlines and
    loss functions"), and a key that goes on in the next lane takes its places in the order of the tiles.
    """
    rows = len(slots)
    order = np.argsort(slots, kind="stable")
    by_key = slots[order]
    line = np.arange(rows)
    begins = np.concatenate([[True], by_key[1:] != by_key[:-1]])
    starts = np.flatnonzero(begins)
    counts = np.diff(np.append(starts, rows))
    tiles = max(int(counts.max()), -(-rows // tile))
    number = np.cumsum(begins) - 1
    start = starts[number]
    count = counts[number]
    edge = -(-start // tiles) * tiles  # where the next lane begins
    beyond = np.where(edge > start, np.maximum(start + count - edge, 0), 0)
    place = line - start
    place = np.where(place < beyond, edge + place, line - beyond)
    found = np.empty(rows, np.int64)
    found[order] = place % tiles * tile + place // tiles
    return found, tiles


Late: TypeAlias = Literal["refuse", "now"]
"""The treatment of rows that are earlier than another of their key."""

TILES = 1024
"""The most tiles of different keys in a compiled call."""


class Engine:
    """A learner, the beliefs of its keys, and the programs that step them.

    Arguments and `learner`, `tile`, `rows`: see `Keyed`. `begin` must come first.
    """

    def __init__(
        self,
        learner: Learner[Any],
        of_inputs: Prior | None,
        *,
        tile: int,
        capacity: int,
        pooled: int | None,
        evict: int | None,
        random: Array | None,
    ) -> None:
        self.learner = learner
        self.of_inputs = of_inputs
        self.tile = tile
        self.capacity = capacity
        self.pooled = pooled
        self.evict = evict
        self.random = random
        self.rows = 0
        self.begun = False
        self.timed: bool | None = None
        self.saved: Any = None  # what `pages` knows of the latest checkpoint

    def begin(self, first: Any) -> None:
        """Begin with the belief of a new key, from which the layout of all is known."""
        setting, key_kind = setting_of(self.learner, self.random)
        belief = jax.tree.map(jnp.asarray, first)
        state = WordLayout.of(belief, NEVER)
        if min(state.places, default=0) < 0:
            raise CredoError("prior must hold nothing but numbers; it holds a key of JAX.", field="prior")
        form = Form.of(WordLayout.of(setting), state, key_kind)
        self.first = belief
        self.lanes = Lanes(form, self.tile, self.of_inputs, draws(belief))
        self.setting = form.setting.give(setting)
        self.prior_words = np.asarray(state.give(belief)[0])
        self.stack = Stack(state.size, self.capacity, self.evict)
        self.begun = True
        if self.pooled is not None:
            self._require_moments()

    def _require_moments(self) -> None:
        try:
            two = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), self.first)
            jax.eval_shape(collapse, jnp.zeros(2), two)
        except CredoError as error:
            kind = type(self.first).__name__
            raise CredoError(
                f"pooled needs beliefs whose moments can be matched, such as Gaussian; got {kind}.",
                field="pooled",
            ) from error

    def onward(self, names: list[KeyName], clock: np.ndarray, late: Late) -> tuple[np.ndarray, np.ndarray]:
        """The times (n,) to which the keys of rows are moved, and which rows are earlier than another of
        their key (n,), where these are not refused.
        """
        table = self.stack.table
        slots = table.find(names)
        here = slots >= 0
        away = self.stack.find_away(list(dict.fromkeys(names[row] for row in np.flatnonzero(~here))))
        latest: dict[KeyName, float] = {name: one.time for name, one in away.items()}
        begun: list[float] = np.where(here, table.times[slots], -np.inf).tolist()
        moved = clock.copy()
        for row, (name, time, first) in enumerate(zip(names, clock.tolist(), begun, strict=True)):
            before = latest.get(name, first)
            if time < before:
                if late == "refuse":
                    raise CredoError(
                        f"times must not go back for a key; got {time} after {before} at row {row}.",
                        field="times",
                    )
                moved[row] = time = before
            latest[name] = time
        return moved, moved > clock

    def pieces(self, names: list[KeyName], renewed: bool = True) -> list[slice]:
        """The parts of a call: each with few enough rows and keys, and up to where the prior is renewed."""
        parts = []
        start = 0
        while start < len(names):
            stop = min(start + TILES * self.tile, len(names))
            if renewed and self.pooled is not None:
                stop = min(stop, start + self.pooled - (self.rows + start) % self.pooled)
            while self.evict is not None and len(set(names[start:stop])) > self.evict // 2:
                stop = start + (stop - start) // 2
            parts.append(slice(start, stop))
            start = stop
        return parts

    def learn(
        self, names: list[KeyName], rows: tuple[PyTree, PyTree, np.ndarray], clock: np.ndarray | None
    ) -> tuple[Outcome, Info, np.ndarray]:
        """Forecast, score and learn the rows of a part of a call: their inputs, observations and weights; and
        the slots of their keys."""
        xs, ys, weights = rows
        table = self.stack.table
        slots = self._bring(names)
        known = slots >= 0
        new = list(dict.fromkeys(names[row] for row in np.flatnonzero(~known)))
        self.stack.require_room(new, slots[known])
        dtype = jax.dtypes.canonicalize_dtype(float)
        steps = np.zeros(len(names), dtype)
        dts = None if clock is None else steps
        row = (xs, ys, weights.astype(dtype), dts, self._salts(names), known)
        layout = _layout(row)
        table.add(new)
        try:
            if new:
                firsts = np.flatnonzero(~known)
                slots[firsts] = table.find([names[row] for row in firsts.tolist()])
                repeated = np.ones(len(firsts), bool)
                repeated[np.unique(slots[firsts], return_index=True)[1]] = False
                known[firsts[repeated]] = True
            if clock is not None:
                steps[:] = self._steps(slots, clock)
            places, tiles = tile_places(slots, self.tile)
            length = rounded(tiles)
            built = learner_of.cache_info().misses
            program, told = learner_of(self.lanes, layout, self.stack.capacity, length)
            words, at = self._tiles(layout, row, slots, places, length)
            given = (self.setting, self.prior_words, words, at, np.int32(tiles))
            reports = self.stack.pass_over(program, *given)
            if learner_of.cache_info().misses != built:
                give_back()
        except BaseException:
            table.remove(table.find(new))
            raise
        outcome, info = told.take_rows(np.asarray(reports).reshape(-1, told.size)[places])
        table.seen[slots] = self.rows + 1 + np.arange(len(names))
        if clock is not None:
            table.times[slots] = clock
        table.changed.update(np.unique(slots // PAGE).tolist())
        self.rows += len(names)
        self.timed = clock is not None
        if self.pooled is not None and self.rows % self.pooled == 0:
            self._renew()
        return outcome, info, slots

    def ask(self, names: list[KeyName], xs: PyTree, clock: np.ndarray | None, answer: Answer) -> Any:
        """The answers of the forecasts for the rows of a part of a call."""
        slots = self._bring(names)
        known = slots >= 0
        dts = None if clock is None else np.where(known, clock - self.stack.table.times[slots], 0.0)
        row = (xs, dts, self._salts(names), known)
        layout = _layout(row)
        # a forecast changes nothing, so rows of one key may stand side by side
        places = np.arange(len(names))
        tiles = -(-len(names) // self.tile)
        length = rounded(tiles)
        program, told = forecaster(self.lanes, layout, self.stack.capacity, length, answer)
        at = np.where(known, slots, self.stack.capacity)
        rows, at = self._tiles(layout, row, at, places, length)
        reports = program(self.setting, self.prior_words, self.stack.words, rows, at, np.int32(tiles))
        return told.take_rows(np.asarray(reports).reshape(-1, told.size)[places])

    def drop(self, names: list[KeyName]) -> None:
        """Forget keys; one that there is not is refused before any is forgotten."""
        if not self.begun:
            raise CredoError(f"keys must be among those that were learned; got {names[0]!r}.", field="keys")
        self.stack.drop(names)

    def words_of(self, key: KeyName) -> np.ndarray | None:
        """The words of a key, None where it was never learned."""
        if not self.begun:
            return None
        slots = self.stack.table.find([key])
        if slots[0] >= 0:
            words: np.ndarray = self.stack.take(slots)[0]
            return words
        away = self.stack.find_away([key])
        if away:
            return away[key].words
        return None

    def _bring(self, names: list[KeyName]) -> np.ndarray:
        """The slots of some keys (n,), those from the disk included; -1 for a new one."""
        stack = self.stack
        slots = stack.table.find(names)
        if stack.absent and (slots < 0).any():
            unknown = dict.fromkeys(names[row] for row in np.flatnonzero(slots < 0))
            found = stack.find_away(list(unknown))
            stack.require_room(list(found), slots[slots >= 0])
            stack.bring(found)
            slots = stack.table.find(names)
        return slots

    def _tiles(
        self, layout: WordLayout, row: PyTree, slots: np.ndarray, places: np.ndarray, length: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The words of rows in their places among tiles, and their slots."""
        rows = np.zeros((length * self.tile, layout.size), np.uint32)
        rows[places] = layout.give_rows(row, len(slots))
        at = np.full(length * self.tile, self.stack.capacity, np.int32)
        at[places] = slots
        return rows.reshape(length, self.tile, -1), at.reshape(length, self.tile)

    def _steps(self, slots: np.ndarray, clock: np.ndarray) -> np.ndarray:
        """The time since the latest row of each row's key (n,), 0 at the first."""
        order = np.argsort(slots, kind="stable")
        times = clock[order]
        sorted_slots = slots[order]
        before = np.concatenate([[np.nan], times[:-1]])
        first = np.concatenate([[True], sorted_slots[1:] != sorted_slots[:-1]])
        before[first] = self.stack.table.times[sorted_slots[first]]
        steps = np.empty(len(slots))
        steps[order] = np.where(np.isnan(before), 0.0, times - before)
        return steps

    def _salts(self, names: list[KeyName]) -> np.ndarray | None:
        drawing = self.random is not None or self.lanes.own
        if drawing:
            return np.array([salt(name) for name in names], np.uint32)
        return None

    def _renew(self) -> None:
        """Set the first belief of new keys to the mixture of the beliefs of the latest keys."""
        most = POOLED if self.evict is None else min(POOLED, self.evict // 4)
        some = self.stack.table.latest(most)
        slots = np.full(POOLED, self.stack.capacity, np.int32)
        slots[: len(some)] = some
        program = pooler(self.lanes, self.stack.capacity)
        first = np.asarray(self.lanes.form.state.give(self.first)[0])
        self.prior_words = np.asarray(program(first, self.stack.words, slots, np.int32(len(some))))


def _layout(rows: PyTree) -> WordLayout:
    """The layout of one of some rows."""
    return WordLayout.of(jax.tree.map(lambda leaf: shape_of(np.asarray(leaf)[0]), rows), NEVER)
