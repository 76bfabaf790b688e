"""Words of rows for a program, in memory that a thread uses again and again.

To find memory that begins where XLA wants it, and to copy what is written there, takes longer than to write a
row: a chunk is as long as 256 rows, of which mostly one is there.
"""

from __future__ import annotations

import threading

import numpy as np

from credo.core.types import Array, PyTree
from credo.streams.words import WordLayout, aligned, lent

__all__ = ["lend_rows"]

LENDABLE, SHAPES = 2**18, 16
"""The most words that are lent, and of how many shapes a thread keeps some."""


class _Lendings(threading.local):
    """The words that a thread lends, by their shape, and the array of JAX in the same memory."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, int], tuple[np.ndarray, Array | None]] = {}


_lendings = _Lendings()


def lend_rows(layout: WordLayout, tree: PyTree, length: int) -> Array | np.ndarray:
    """`WordLayout.give_rows` for a program that has ended before this thread calls again: the memory is the
    same one then. There is anything behind the rows.
    """
    if length * layout.size > LENDABLE:
        return layout.give_rows(tree, length)
    shape, known = (length, layout.size), _lendings.known
    if shape not in known:
        if len(known) == SHAPES:
            known.clear()
        blank = aligned(length * layout.size).reshape(shape)
        known[shape] = blank, lent(blank)
    words, array = known[shape]
    layout.fill_rows(words, tree)
    return words.copy() if array is None else array
