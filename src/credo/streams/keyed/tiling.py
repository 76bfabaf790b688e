"""Rows of many keys, cut into tiles of different keys, in which the rows of a key keep their order."""

from __future__ import annotations

import numpy as np

__all__ = ["tile_places"]


def tile_places(slots: np.ndarray, tile: int) -> tuple[np.ndarray, int]:
    """Where each row stands, tile number * width + lane (n,), and how many tiles there are.

    There are as few tiles as there can be: the rows of the commonest key, or n / width. Rows are laid out
    key by key, lane after lane (the wrap-around rule of McNaughton, 1959, "Scheduling with deadlines and
    loss functions"), and a key that goes on in the next lane takes its places in the order of the tiles.
    """
    rows = len(slots)
    order = np.argsort(slots, kind="stable")
    by_key, line = slots[order], np.arange(rows)
    begins = np.concatenate([[True], by_key[1:] != by_key[:-1]])
    starts = np.flatnonzero(begins)
    counts = np.diff(np.append(starts, rows))
    tiles = max(int(counts.max()), -(-rows // tile))
    number = np.cumsum(begins) - 1
    start, count = starts[number], counts[number]
    edge = -(-start // tiles) * tiles  # where the next lane begins
    beyond = np.where(edge > start, np.maximum(start + count - edge, 0), 0)
    place = line - start
    place = np.where(place < beyond, edge + place, line - beyond)
    found = np.empty(rows, np.int64)
    found[order] = place % tiles * tile + place // tiles
    return found, tiles
