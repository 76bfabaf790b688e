"""The features of truth values, categories and words; words and rare categories are hashed into few.

A word w goes to the slot h(w) mod S, where h is the CRC-32 of its UTF-8 bytes, and another bit of h is its
sign, so that words that share a slot cancel on average: inner products are unbiased (Weinberger et al. 2009,
"Feature hashing for large scale multitask learning"). The features of n words are divided by sqrt(n).
"""

from __future__ import annotations

import re
import zlib
from itertools import chain

import numpy as np

from credo.tables.cells import Cells, cell_text, is_missing, to_list, truth
from credo.tables.schema import ColumnSpec

__all__ = ["find_words", "hash_words", "one_hot", "slot_of"]

_WORD = re.compile(r"\w+")
_SIGN = 1 << 31


def slot_of(text: str, slots: int) -> int:
    """The slot of a category among a number of slots."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass")) % slots


def find_words(text: str) -> list[str]:
    """The words of a text, in small letters."""
    return _WORD.findall(text.lower())


def hash_words(column: ColumnSpec, cells: Cells, x: np.ndarray, at: int) -> np.ndarray:
    """Fill the features of a text column in `x` (n, D) from `at` on, and find its missing cells (n,)."""
    cells = to_list(cells)
    lost = np.array([is_missing(cell) for cell in cells], bool)
    bags = [[] if gone else find_words(cell_text(cell)) for cell, gone in zip(cells, lost, strict=True)]
    sizes = np.array([len(bag) for bag in bags], np.int64)
    words = "\n".join(chain.from_iterable(bags)).encode("utf-8", "surrogatepass").split(b"\n")
    numbers = np.fromiter(map(zlib.crc32, words), np.int64)[: sizes.sum()]  # nothing is split into one word
    signs = np.where(numbers & _SIGN, -1.0, 1.0)
    slots = (numbers & ~_SIGN) % column.slots
    rows = np.repeat(np.arange(len(bags)), sizes)
    sums = np.bincount(rows * column.slots + slots, signs, len(bags) * column.slots)
    scale = np.sqrt(np.maximum(sizes, 1.0))
    x[:, at : at + column.slots] = sums.reshape(len(bags), column.slots) / scale[:, None]
    return lost


def one_hot(column: ColumnSpec, cells: Cells, x: np.ndarray, at: int) -> tuple[np.ndarray, np.ndarray]:
    """Fill a boolean or categorical column's features in `x`; which cells are missing, and unknown (n,)."""
    cells = to_list(cells)
    if column.kind == "boolean":
        signs = {True: 1, False: -1, None: 0}
        codes = np.array([signs[truth(cell)] for cell in cells], np.int64).reshape(len(cells))
        lost = np.zeros(len(cells), bool)
        for row in np.flatnonzero(codes == 0).tolist():
            lost[row] = is_missing(cells[row])
        x[:, at] = codes
        return lost, (codes == 0) & ~lost
    index = column.index
    other = len(index)
    if len(cells) == 1:
        cell = cells[0]
        code = index[cell] if isinstance(cell, str) and cell in index else _code_of(column, cell)
        if code >= 0:
            x[0, at + code] = 1.0
        return np.array([code < 0]), np.array([code == other and not column.slots])
    codes = np.array([index.get(cell, -1) if isinstance(cell, str) else -1 for cell in cells], np.int64)
    codes = codes.reshape(len(cells))
    lost = codes < 0
    if not lost.any():  # all are known
        x[np.arange(len(codes)), at + codes] = 1.0
        return lost, np.zeros(len(codes), bool)
    for row in np.flatnonzero(lost).tolist():
        codes[row] = _code_of(column, cells[row])
    present = np.flatnonzero(codes >= 0)
    x[present, at + codes[present]] = 1.0
    return codes < 0, (codes == other) & (column.slots == 0)


def _code_of(column: ColumnSpec, cell: object) -> int:
    """The number of the feature of a cell that may not be written as its category is; -1 if it is missing."""
    if is_missing(cell):
        return -1
    text = cell_text(cell)
    other = len(column.index)
    code = column.index.get(text, other)
    if code == other and column.slots:
        return code + slot_of(text, column.slots)
    return code
