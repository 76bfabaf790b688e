"""Some columns of rows, and vectors that are put together from such parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import jax.numpy as jnp

from credo.core.types import Array
from credo.linalg.jacobians.dense import DenseRows
from credo.linalg.jacobians.layers import width
from credo.linalg.jacobians.outer import OuterRows
from credo.linalg.jacobians.protocol import Rows

__all__ = ["Ranges", "columns", "cut", "join", "whole_layers"]

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Columns, as ranges from a first to before a last one, in increasing order."""


def cut(array: Array, ranges: Ranges) -> Array:
    """The columns of an array (..., P) that lie in some ranges, side by side."""
    parts = [array[..., start:stop] for start, stop in ranges]
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts, axis=-1)


def join(parts: Sequence[Array], places: Sequence[Ranges]) -> Array:
    """The array (..., P) of which `cut` gives the parts at their places."""
    pieces: list[tuple[int, Array]] = []
    for part, ranges in zip(parts, places, strict=True):
        done = 0
        for start, stop in ranges:
            pieces.append((start, part[..., done : done + stop - start]))
            done += stop - start
    ordered = [piece for _, piece in sorted(pieces, key=lambda pair: pair[0])]
    return ordered[0] if len(ordered) == 1 else jnp.concatenate(ordered, axis=-1)


def whole_layers(rows: Rows, ranges: Ranges) -> tuple[int, ...] | None:
    """The layers of outer rows that make up some columns; None where these are not whole layers."""
    if not isinstance(rows, OuterRows):
        return None
    found, start = [], 0
    for index, (inputs, deltas) in enumerate(rows.layers):
        stop = start + inputs.shape[1] * width(deltas)
        if any(first <= start and stop <= last for first, last in ranges):
            found.append(index)
        elif any(first < stop and start < last for first, last in ranges):
            return None
        start = stop
    return tuple(found)


def columns(rows: Rows, ranges: Ranges) -> Rows:
    """Some columns of rows J (k, P): outer products where they are whole layers of such, or an array."""
    layers = whole_layers(rows, ranges)
    if layers and isinstance(rows, OuterRows):
        inputs, deltas = rows.inputs, rows.deltas
        return OuterRows(tuple(inputs[i] for i in layers), tuple(deltas[i] for i in layers), rows.left)
    return DenseRows(cut(rows.dense(), ranges))
