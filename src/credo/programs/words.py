"""Trees as one vector of 32-bit words, and back: in a compiled program and in NumPy.

An array into or out of a program costs a microsecond or more; a belief has five to twenty, as words one.
"""

from __future__ import annotations

import functools
import math
import struct
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from credo.core import forks
from credo.core.errors import CredoError
from credo.core.forks import require_threads
from credo.core.inputs import require_narrow
from credo.core.platforms import in_branch
from credo.core.types import Array, ArrayLike, PyTree

__all__ = [
    "NEVER",
    "Parts",
    "WordLayout",
    "WordReader",
    "WordWriter",
    "aligned",
    "kind_of",
    "lend_rows",
    "lent",
    "shape_of",
    "unpacked",
]

_ALIGNED = 64
"""The bytes at whose multiples an array of XLA begins."""

LARGE = 4096
"""The number of words from which an array stays as it is, because to copy it would cost more."""

NEVER = 2**62
"""More words than any array has: nothing stays as it is."""

Parts: TypeAlias = tuple[Array, tuple[Array, ...]]
"""A tree as words, beside the arrays that are not among them."""


@dataclass(frozen=True)
class WordLayout:
    """The place of each leaf of a tree among the words; -1 is an array that stays as it is."""

    treedef: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype, ...]
    places: tuple[int, ...]
    size: int

    def __hash__(self) -> int:
        return hash((self.size, self.places))

    @classmethod
    def of(cls, tree: PyTree, large: int = LARGE) -> WordLayout:
        """The layout of a tree of arrays, or of their shapes and dtypes."""
        leaves, treedef = jax.tree.flatten(tree)
        shapes = tuple(tuple(leaf.shape) for leaf in leaves)
        places = []
        size = 0
        for leaf, shape in zip(leaves, shapes, strict=True):
            count = _words(leaf.dtype) * math.prod(shape)
            among = _words(leaf.dtype) > 0 and count < large
            places.append(size if among else -1)
            size += count if among else 0
        return cls(treedef, shapes, tuple(leaf.dtype for leaf in leaves), tuple(places), size)

    @property
    def blank(self) -> PyTree:
        """The tree with the shapes and dtypes of arrays in their places."""
        kinds = zip(self.shapes, self.dtypes, strict=True)
        return jax.tree.unflatten(self.treedef, [jax.ShapeDtypeStruct(*kind) for kind in kinds])

    @property
    def many(self) -> bool:
        """Whether there are as many leaves as a bank has."""
        return sum(place >= 0 for place in self.places) >= _MANY

    def pack(self, tree: PyTree) -> Parts:
        """The words of a tree, and its large arrays, in a compiled program."""
        leaves = list(zip(self.places, jax.tree.leaves(tree), strict=True))
        among = [leaf for place, leaf in leaves if place >= 0]
        others = tuple(leaf for place, leaf in leaves if place < 0)
        if not among:
            return jnp.zeros(0, jnp.uint32), others
        if self.many:
            return _write(among), others
        parts = [
            in_branch(_write, among[start : start + _TOGETHER]) for start in range(0, len(among), _TOGETHER)
        ]
        return jnp.concatenate(parts), others

    def unpack(self, parts: Parts) -> PyTree:
        """The tree again, bit by bit, in a compiled program."""
        among = [leaf for leaf in self._kinds if leaf[0] >= 0]
        if self.many:
            return self._with(_read(among, parts[0]), parts[1])
        read: list[Array] = []
        for start in range(0, len(among), _TOGETHER):
            few = functools.partial(_read, among[start : start + _TOGETHER])
            read += in_branch(few, parts[0])
        return self._with(read, parts[1])

    def take(self, parts: Parts) -> PyTree:
        """The tree again, bit by bit, outside a compiled program, with the large arrays as they are."""
        words = np.array(parts[0])
        read = [
            _from_numbers(words[place : place + _words(dtype) * math.prod(shape)], dtype).reshape(shape)
            for place, shape, dtype in self._kinds
            if place >= 0
        ]
        return self._with(jax.device_put(read), parts[1])

    def give(self, tree: PyTree) -> Parts:
        """The words of a tree, and its large arrays, outside a compiled program."""
        require_threads()  # the words are for a compiled program
        leaves = list(zip(self.places, jax.tree.leaves(tree), strict=True))
        among = [_to_numbers(np.asarray(leaf)) for place, leaf in leaves if place >= 0]
        words = np.concatenate(among) if among else np.zeros(0, np.uint32)
        return jax.device_put(words), tuple(leaf for place, leaf in leaves if place < 0)

    def give_rows(self, tree: PyTree, length: int) -> np.ndarray:
        """The words (length, size) of n trees, whose leaves have a leading axis, outside a compiled program;
        0 behind them.
        """
        words = aligned(length * self.size).reshape(length, self.size)
        self.fill_rows(words, self.treedef.flatten_up_to(tree))
        return words

    def fill_rows(self, words: np.ndarray, leaves: Sequence[np.ndarray]) -> None:
        """Write n trees, whose leaves have a leading axis, into the first n words of some."""
        for leaf, (own, _, dtype) in zip(leaves, self._columns, strict=True):
            rows: np.ndarray = np.asarray(leaf, dtype)
            numbers, kind = (rows, dtype) if dtype.itemsize == 4 else (_to_numbers(rows), words.dtype)
            words.view(kind)[: len(rows), own] = numbers.reshape(len(rows), own.stop - own.start)

    def take_rows(self, words: np.ndarray) -> PyTree:
        """The n trees of words (n, size), whose leaves have a leading axis, outside a compiled program."""
        leaves = []
        columns = np.ascontiguousarray(words.T)
        floats = columns.view(np.float32)
        for own, shape, dtype in self._columns:
            if dtype == _FLOAT and not shape:  # as most are
                leaves.append(floats[own.start])
                continue
            lone = not shape and own.stop - own.start == 1
            numbers = columns[own.start] if lone else np.ascontiguousarray(words[:, own]).reshape(-1)
            if dtype.kind == "b":
                leaf = numbers.astype(bool)
            else:
                leaf = numbers.view(dtype) if dtype.itemsize >= 4 else _from_numbers(numbers, dtype)
            leaves.append(leaf if lone else leaf.reshape(len(words), *shape))
        return self.treedef.unflatten(leaves)

    @functools.cached_property
    def _columns(self) -> tuple[tuple[slice, tuple[int, ...], np.dtype], ...]:
        """The place of the numbers of each leaf among the words, their shape and their dtype."""
        return tuple(
            (slice(place, place + _words(dtype) * math.prod(shape)), shape, dtype)
            for place, shape, dtype in self._kinds
            if place >= 0
        )

    @property
    def _kinds(self) -> Iterable[tuple[int, tuple[int, ...], np.dtype]]:
        """The place of each leaf, its shape and its dtype."""
        return zip(self.places, self.shapes, self.dtypes, strict=True)

    def _with(self, words: Sequence[Array], others: Sequence[Array]) -> PyTree:
        """The tree of the leaves that are words and of the large arrays, both in order."""
        among = iter(words)
        rest = iter(others)
        leaves = [next(among) if place >= 0 else next(rest) for place in self.places]
        return jax.tree.unflatten(self.treedef, leaves)


_FLOAT = np.dtype(np.float32)

_TOGETHER = 6
"""The number of leaves that are read or written side by side, in a branch that counts as one operation: where
more than eight are ready, XLA wakes another thread, which costs more than a step of a small filter."""

_MANY = 48
"""The number of leaves from which no branch is made: a learner that has so many is a bank, whose step takes
longer than to wake a thread, and whose branches take longer to compile than what is read in them."""


def _read(places: Sequence[tuple[int, tuple[int, ...], np.dtype]], words: Array) -> list[Array]:
    """Some leaves from the words."""
    return [
        _from_words(words[place : place + _words(dtype) * math.prod(shape)], dtype).reshape(shape)
        for place, shape, dtype in places
    ]


def _write(leaves: list[Array]) -> Array:
    """The words of some leaves, joined as what most of them are: floats, whose bits no copy changes."""
    floats = [_to_floats(leaf) for leaf in leaves]
    return jax.lax.bitcast_convert_type(jnp.concatenate(floats), jnp.uint32)


def _to_floats(leaf: Array) -> Array:
    """The words of a leaf, as numbers of 32 bits that have these."""
    if leaf.dtype == jnp.float32:
        return leaf.reshape(-1)
    return jax.lax.bitcast_convert_type(_to_words(leaf), jnp.float32)


def _words(dtype: np.dtype) -> int:
    """The number of words of a number; 0 for what is no number, such as a typed key."""
    if not isinstance(dtype, np.dtype) or dtype.kind not in "biuf":
        return 0
    return max(1, dtype.itemsize // 4)


def _to_words(leaf: Array) -> Array:
    if leaf.dtype.kind == "b":
        return leaf.reshape(-1).astype(jnp.uint32)
    return jax.lax.bitcast_convert_type(leaf, _bits(leaf.dtype)).reshape(-1).astype(jnp.uint32)


def _from_words(words: Array, dtype: np.dtype) -> Array:
    if dtype.kind == "b":
        return words != 0
    if dtype.itemsize < 4:
        words = words.astype(_bits(dtype))
    return jax.lax.bitcast_convert_type(words.reshape(-1, 2) if dtype.itemsize == 8 else words, dtype)


def _to_numbers(leaf: np.ndarray) -> np.ndarray:
    """The result of `_to_words`, in NumPy."""
    flat: np.ndarray = np.ascontiguousarray(leaf).reshape(-1)
    words: np.ndarray = flat.view(_bits(leaf.dtype)).astype(np.uint32, copy=False)
    return words


def _from_numbers(words: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The result of `_from_words`, in NumPy."""
    if dtype.itemsize >= 4:
        return words.view(dtype)
    numbers: np.ndarray = words != 0 if dtype.kind == "b" else words.astype(_bits(dtype)).view(dtype)
    return numbers


class WordWriter:
    """Writes the leaves of trees of one layout as words, in NumPy; `views` are their places among them, and
    `lent` is an array of JAX in the same memory, where there can be one.
    """

    def __init__(self, layout: WordLayout) -> None:
        self.words = aligned(layout.size)
        self.views: list[np.ndarray] = []
        self._narrow = []
        self._integers = [at for at, dtype in enumerate(layout.dtypes) if dtype.kind in "iu"]
        for shape, dtype, place in zip(layout.shapes, layout.dtypes, layout.places, strict=True):
            own = self.words[place : place + _words(dtype) * math.prod(shape)]
            wide = dtype.itemsize >= 4
            view = own.view(dtype).reshape(shape) if wide else np.zeros(shape, dtype)
            self.views.append(view)
            if not wide:
                self._narrow.append((own, view.view(_bits(dtype)).reshape(-1)))
        self.lent = lent(self.words)

    def __call__(self, leaves: Sequence[ArrayLike]) -> np.ndarray:
        """The words, in an array of their own; an integer that does not fit is refused."""
        self._fill(leaves)
        return self.words.copy()

    def lend(self, leaves: Sequence[ArrayLike]) -> Array | np.ndarray:
        """The words for a program that has ended before this writer is used again, likewise."""
        self._fill(leaves)
        return self.in_place

    @property
    def in_place(self) -> Array | np.ndarray:
        """The words that are written, without a copy where a program can read them in this place."""
        if self.lent is None:
            return self.words.copy()
        return self.lent

    def _fill(self, leaves: Sequence[ArrayLike]) -> None:
        if forks.forked:
            require_threads()  # the words are for a compiled program
        for at in self._integers:
            leaf = leaves[at]
            if type(leaf) is not int or not 0 <= leaf < 2**31:  # as counts and places are not
                require_narrow("an integer of a row", leaf)
        for view, leaf in zip(self.views, leaves, strict=True):
            view[...] = leaf
        for own, bits in self._narrow:
            own[:] = bits


def aligned(size: int) -> np.ndarray:
    """Words (n,) in memory that starts where XLA wants it."""
    memory = np.zeros(4 * size + _ALIGNED, np.uint8)
    start = -memory.ctypes.data % _ALIGNED
    return memory[start : start + 4 * size].view(np.uint32)


def lent(words: np.ndarray) -> Array | None:
    """An array of JAX in the same memory; None if JAX would not do without a copy."""
    with jax.ensure_compile_time_eval():
        array = jax.device_put(words, may_alias=True)
    return array if np.shares_memory(np.asarray(array), words) else None


class WordReader:
    """Reads trees of one layout from words, with plain numbers in place of scalars."""

    def __init__(self, layout: WordLayout) -> None:
        self._treedef = layout.treedef
        self.places = layout.places
        self.size = layout.size
        formats: list[str] = []
        self._flags: list[int] = []
        self._arrays: list[tuple[int, int, int, np.dtype, tuple[int, ...]]] = []
        for at, kind in enumerate(zip(layout.shapes, layout.dtypes, layout.places, strict=True)):
            shape, dtype, place = kind
            count = _words(dtype) * math.prod(shape)
            # numbers that are words as they are come by one call, and the others are read from their places
            if not shape and dtype.char in "fdil?":
                formats.append({"l": "q", "?": "I"}.get(dtype.char, dtype.char))
                self._flags += [at] * (dtype.char == "?")
            else:
                formats.append(f"{4 * count}x")
                self._arrays.append((at, place, place + count, dtype, shape))
        self._numbers = struct.Struct("=" + "".join(formats))
        self._floats = struct.Struct(f"={layout.size}f")

    def __call__(self, words: Array | np.ndarray, start: int = 0) -> PyTree:
        """The tree whose words begin at a place among those of a program, which are waited for."""
        every: Any = np.asarray(words) if self._arrays else words
        leaves: list[Any] = list(unpacked(self._numbers, every, start))
        if self._arrays:
            for at, place, end, dtype, shape in self._arrays:
                own = every[start + place : start + end]
                values = _from_numbers(own, dtype)
                leaves.insert(at, values.reshape(shape) if shape else values.item())
        for at in self._flags:
            leaves[at] = leaves[at] != 0
        return self._treedef.unflatten(leaves)

    def floats(self, words: Array | np.ndarray) -> tuple[float, ...]:
        """The numbers of a tree of nothing but floats of 32 bits, one after another."""
        return unpacked(self._floats, words, 0)


def unpacked(form: struct.Struct, words: Any, start: int) -> tuple[Any, ...]:
    """The numbers that begin at a place among words, which are waited for: from where they lie, if that is
    one piece of the memory of the processor.
    """
    try:
        return form.unpack_from(words, 4 * start)
    except (BufferError, TypeError):
        return form.unpack_from(np.asarray(words).data, 4 * start)


def _bits(dtype: np.dtype) -> np.dtype:
    """The unsigned integers of the same size, of at most a word."""
    return np.dtype(f"uint{8 * min(dtype.itemsize, 4)}")


def kind_of(leaf: ArrayLike) -> object:
    """The kind of a leaf of a row, on which the program depends."""
    if isinstance(leaf, np.ndarray):
        return (leaf.shape, leaf.dtype.char)
    return _slow_kind(leaf)


def _slow_kind(leaf: ArrayLike) -> object:
    if isinstance(leaf, float | int):
        return type(leaf)
    return (np.shape(leaf), np.asarray(leaf).dtype.char)


def shape_of(leaf: ArrayLike) -> jax.ShapeDtypeStruct:
    """The shape and JAX's dtype of a leaf of a row."""
    array = np.asarray(leaf)
    if array.dtype.kind not in "biuf":
        raise CredoError(f"x and y must hold numbers; got dtype {array.dtype}.")
    return jax.ShapeDtypeStruct(array.shape, jax.dtypes.canonicalize_dtype(array.dtype))


LENDABLE = 2**18
"""The most words that are lent."""

SHAPES = 16
"""Of how many shapes a thread keeps words to be lent."""


class _Lendings(threading.local):
    """The words that a thread lends, by their shape, and the array of JAX in the same memory.

    To find memory that begins where XLA wants it, and to copy what is written there, takes longer than to
    write a row: a chunk is as long as 256 rows, of which mostly one is there.
    """

    def __init__(self) -> None:
        self.known: dict[tuple[int, int], tuple[np.ndarray, Array | None]] = {}


_lendings = _Lendings()


def lend_rows(layout: WordLayout, leaves: Sequence[np.ndarray], length: int) -> Array | np.ndarray:
    """`WordLayout.give_rows` for a program that has ended before this thread calls again: the memory is the
    same one then. There is anything behind the rows. `leaves` are those of the tree.
    """
    if length * layout.size > LENDABLE:
        return layout.give_rows(layout.treedef.unflatten(leaves), length)
    shape = (length, layout.size)
    known = _lendings.known
    if shape not in known:
        if len(known) == SHAPES:
            known.clear()
        blank = aligned(length * layout.size).reshape(shape)
        known[shape] = blank, lent(blank)
    words, array = known[shape]
    layout.fill_rows(words, leaves)
    return words.copy() if array is None else array
