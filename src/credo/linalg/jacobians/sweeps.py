"""Passes over a diagonal plus low-rank precision and the outer rows beside it, block by block.

What stands for P parameters is read in blocks that stay in the processor's cache: a slice of the diagonal y
and of the factor W, and the part of the rows J that belongs to it, which is made from the inputs of a layer
there and then. An update takes two passes: `measure` reads y and W for small products, and `turn` reads them
again and writes what is new.

A layer's part of a Jacobian has rows (g, c) that are inputs[g] x deltas[g, c].
The derivatives of the outputs by a layer's m results are an array of deltas (G, K, m). In the last layer each
result is an output, and output c depends on result c alone: its deltas may then be given as (G, K), which
stands for the diagonal matrices diag(deltas[g]) with m = K. Nothing of size K^2 is then multiplied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import jax
import jax.numpy as jnp

from credo.core.platforms import accelerated, in_branch, over_rows
from credo.core.records import record
from credo.core.types import Array
from credo.linalg.matrices import column_sums, on_diagonal, scale_rows, symmetric

__all__ = [
    "LayerProducts",
    "Layers",
    "alike",
    "arms",
    "by_layer",
    "heights",
    "measure",
    "meet",
    "meet_both",
    "outer_sum",
    "spread_deltas",
    "turn",
    "width",
]


def width(deltas: Array) -> int:
    """The number m of a layer's results."""
    return deltas.shape[-1]


def spread_deltas(deltas: Array) -> Array:
    """Deltas as an array (G, K, m), whichever way they are kept."""
    if deltas.ndim == 2:
        return on_diagonal(deltas)
    return deltas


def arms(weights: Array, deltas: Array) -> Array:
    """The weights (q, G, m) of the inputs that follow from weights (q, G, K) of the rows."""
    if deltas.ndim == 2:
        return weights * deltas[None]
    return jnp.einsum("qgc,gcm->qgm", weights, deltas)


def meet(reached: Array, deltas: Array) -> Array:
    """The product (q, G, K) of the deltas with what is reached through the inputs (q, G, m)."""
    if deltas.ndim == 2:
        return reached * deltas[None]
    return jnp.einsum("qgm,gcm->qgc", reached, deltas)


def alike(deltas: Array, others: Array) -> Array:
    """The products (G, K, H, D) of deltas with the deltas (H, D, m) of other rows."""
    if deltas.ndim == others.ndim == 2:
        return _on_diagonal(deltas[:, None, :] * others[None, :, :])
    first = spread_deltas(deltas)
    second = spread_deltas(others)
    flat = first.reshape(-1, first.shape[2]) @ second.reshape(-1, second.shape[2]).T
    return flat.reshape(*first.shape[:2], *second.shape[:2])


def meet_both(deltas: Array, both: Array, others: Array) -> Array:
    """The products (G, K, H, D) of deltas with other deltas (H, D, m), weighted by `both` (G, H, m)."""
    if deltas.ndim == others.ndim == 2:
        return _on_diagonal(deltas[:, None, :] * both * others[None, :, :])
    first = spread_deltas(deltas)
    second = spread_deltas(others)
    reached = first[:, :, None, :] * both[:, None, :, :]
    return jnp.einsum("gchm,hdm->gchd", reached, second)


def heights(deltas: Array, middle: Array | None) -> Array:
    """The diagonals (G, G, m) of deltas[g]' N[g, h] deltas[h], N (G K, G K); (1, G, m) for the identity."""
    groups, each = deltas.shape[:2]
    if middle is None:
        squares = deltas**2 if deltas.ndim == 2 else jax.vmap(column_sums)(deltas**2)
        return squares[None]
    if deltas.ndim == 2:
        blocks = jnp.moveaxis(middle.reshape(groups, each, groups, each), 1, 2)
        own: Array = jnp.diagonal(blocks, axis1=2, axis2=3)
        return deltas[:, None, :] * own * deltas[None, :, :]
    bent = (middle @ _side_by_side(deltas)).reshape(groups, each, groups, -1)
    return jnp.einsum("gcm,gchm->ghm", deltas, bent)


def _on_diagonal(values: Array) -> Array:
    """Values (G, H, K) as diagonal matrices (G, K, H, K)."""
    eye = jnp.eye(values.shape[2], dtype=values.dtype)
    return jnp.moveaxis(values, 2, 1)[:, :, :, None] * eye[None, :, None, :]


def _side_by_side(deltas: Array) -> Array:
    """Deltas (G, K, m) as (G K, G m), each group in columns of its own."""
    groups, each, size = deltas.shape
    eye = jnp.eye(groups, dtype=deltas.dtype)
    return (deltas[:, :, None, :] * eye[:, None, :, None]).reshape(groups * each, groups * size)


T = TypeVar("T")

Layers: TypeAlias = tuple[tuple[Array, Array], ...]
"""The inputs (G, n) and deltas of each layer, as in `OuterRows`."""

Sums: TypeAlias = tuple[Array, tuple[tuple[Array, Array], ...]]
"""W D W', and for each layer what W D and D reach through the inputs."""

BLOCK = 2048
"""Parameters in a block. With 10 directions its slice of W takes 80 kB; of 1,024 to 8,192 it was fastest."""

FENCED = 8192
"""Parameters from which the results of `by_layer` are laid out flat in a pass of their own."""


UNROLLED = 64
"""Terms up to which a sum over an axis that is not the last is written out, which XLA's CPU code adds up in
half the time of its reduction.
"""


@record
class LayerProducts:
    """W D W' (R, R), W D J' (R, n) and J D J' (n, n) of W (R, P) and J (n, P), for a diagonal metric D."""

    own: Array
    mutual: Array
    gram: Array


@dataclass(frozen=True)
class Block:
    """The parameters of `count` inputs of a layer, from input `first` and column `start` on."""

    layer: int
    start: Array | int
    first: Array | int
    count: int
    width: int

    def columns(self, matrix: Array) -> Array:
        """The columns (..., count * width) of a matrix (..., P)."""
        return jax.lax.dynamic_slice_in_dim(matrix, self.start, self.count * self.width, axis=-1)

    def write(self, matrix: Array, part: Array) -> Array:
        """The matrix (..., P) with these columns replaced."""
        return jax.lax.dynamic_update_slice_in_dim(matrix, part, self.start, axis=-1)

    def inputs(self, h: Array) -> Array:
        """The inputs (G, count) of the layer's inputs (G, n)."""
        return jax.lax.dynamic_slice_in_dim(h, self.first, self.count, axis=1)


def measure(
    base: Array, factor: Array, layers: Layers, metrics: tuple[bool, ...]
) -> tuple[LayerProducts, ...]:
    """The small products in several metrics in one pass: D = 1 / y for True, and D = I for False."""
    rank = factor.shape[0]
    dtype = factor.dtype
    groups, each = layers[0][1].shape[:2]
    own = jnp.zeros((rank, rank), dtype)
    empty = tuple(
        (jnp.zeros((rank, groups, width(d)), dtype), jnp.zeros((groups, groups, width(d)), dtype))
        for _, d in layers
    )

    def visit(block: Block, sums: tuple[Sums, ...]) -> tuple[Sums, ...]:
        here = block.columns(factor)
        h = block.inputs(layers[block.layer][0])
        var = 1.0 / block.columns(base)
        results = []
        for weighted, (total, parts) in zip(metrics, sums, strict=True):
            scaled = scale_rows(here, var) if weighted else here
            reached, both = parts[block.layer]
            shape = (-1, block.count, block.width)
            pairs = (h[:, None, :] * h[None, :, :]).reshape(-1, block.count)
            level = var if weighted else jnp.ones_like(var)
            reached = reached + _reach(scaled.reshape(shape), h)
            both = both + (pairs @ level.reshape(shape[1:])).reshape(both.shape)
            new = tuple((reached, both) if i == block.layer else part for i, part in enumerate(parts))
            results.append((total + scaled @ here.T, new))
        return tuple(results)

    start = tuple((own, empty) for _ in metrics)
    found = []
    for total, parts in _sweep(layers, visit, start):
        mutual = sum(
            (meet(part[0], d) for part, (_, d) in zip(parts, layers, strict=True)), jnp.zeros((), dtype)
        )
        gram = sum(
            (meet_both(d, part[1], d) for part, (_, d) in zip(parts, layers, strict=True)),
            jnp.zeros((), dtype),
        )
        count = groups * each
        found.append(
            LayerProducts(
                symmetric(total), mutual.reshape(rank, count), symmetric(gram.reshape(count, count))
            )
        )
    return tuple(found)


def turn(
    base: Array, factor: Array, layers: Layers, on_factor: Array, on_rows: Array, rank: int, move: bool
) -> tuple[Array, Array, Array]:
    """New rows Z = T W + C J, for T (r, R) and C (r, n); the first `rank` are kept.

    Results: y plus the squares of the rows that are not kept (P,), the kept rows, and zero; or, where `move`,
    the last row divided by y, which is then not added.
    """
    count = on_factor.shape[0] - move
    shape = layers[0][1].shape[:2]
    sides = [arms(on_rows.reshape(-1, *shape), d) for _, d in layers]

    def visit(block: Block, new: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        level = block.columns(base)
        h = block.inputs(layers[block.layer][0])
        rows = on_factor @ block.columns(factor)
        rows = (rows.reshape(-1, block.count, block.width) + _outer(sides[block.layer], h)).reshape(
            rows.shape
        )
        increased = (
            level + sum((rows[i] ** 2 for i in range(rank + 1, count)), rows[rank] ** 2)
            if count > rank
            else level
        )
        last = block.write(new[2], rows[-1] / level) if move else new[2]
        return block.write(new[0], increased), block.write(new[1], rows[:rank]), last

    blank = jnp.zeros_like(base)
    return _sweep(layers, visit, (blank, jnp.zeros((rank, base.shape[0]), base.dtype), blank))


def by_layer(
    layers: Layers, parts: Callable[[Array, int], tuple[Array, ...]], vector: Array
) -> tuple[Array, ...]:
    """Vectors (P,) worked out layer by layer: `parts(part, layer)` of a vector's part, a matrix (n, m)."""

    def matrices(vector: Array) -> list[tuple[Array, ...]]:
        start = 0
        found = []
        for layer, (h, d) in enumerate(layers):
            shape = (h.shape[1], width(d))
            end = start + shape[0] * shape[1]
            found.append(parts(jax.lax.slice_in_dim(vector, start, end).reshape(shape), layer))
            start = end
        return found

    def vectors(found: list[tuple[Array, ...]]) -> tuple[Array, ...]:
        results = []
        for result in zip(*found, strict=True):
            flat = vector
            start = 0
            for part in result:
                flat = jax.lax.dynamic_update_slice_in_dim(flat, part.reshape(-1), start, axis=0)
                start += part.size
            results.append(flat)
        return tuple(results)

    if vector.shape[0] < FENCED:
        return vectors(matrices(vector))
    # Nothing is mixed across a branch: XLA's CPU code for outer products that are worked out along the flat
    # vector is 6 times slower.
    flat = [tuple(part.reshape(-1) for part in result) for result in in_branch(matrices, vector)]
    return in_branch(vectors, flat)


def outer_sum(side: Array, h: Array) -> Array:
    """The sum over groups of arms (G, m) times inputs (G, n): (n, m)."""
    if h.shape[0] == 1:
        return h[0][:, None] * side[0][None, :]
    return h.T @ side


def _reach(block: Array, h: Array) -> Array:
    """The sum over inputs of a block (q, b, m) times the inputs (G, b): (q, G, m)."""
    if h.shape[0] == 1 and h.shape[1] <= UNROLLED:
        return sum((block[:, i] * h[0, i] for i in range(1, h.shape[1])), block[:, 0] * h[0, 0])[:, None, :]
    if h.shape[0] == 1:
        return jnp.sum(block * h[0][None, :, None], axis=1)[:, None, :]
    return jnp.einsum("qbm,gb->qgm", block, h)


def _outer(side: Array, h: Array) -> Array:
    """The sum over groups of arms (q, G, m) times inputs (G, b): (q, b, m)."""
    if h.shape[0] == 1:
        return side[:, 0, None, :] * h[0][None, :, None]
    result: Array = over_rows(lambda arm: h.T @ arm, side)
    return result


def _sweep(layers: Layers, visit: Callable[[Block, T], T], carry: T) -> T:
    """Visit all blocks, one after the other; on an accelerator a layer is one block."""
    start = 0
    for layer, (h, d) in enumerate(layers):
        inputs = h.shape[1]
        size = width(d)
        times = 1 if accelerated() else max(1, round(inputs * size / BLOCK))
        count = inputs // times
        if times > 1:

            def one(
                i: Array,
                carry: T,
                layer: int = layer,
                start: int = start,
                count: int = count,
                size: int = size,
            ) -> T:
                return visit(Block(layer, start + i * (count * size), i * count, count, size), carry)

            times = inputs // count
            carry = jax.lax.fori_loop(0, times, one, carry)
        else:
            carry = visit(Block(layer, start, 0, count, size), carry)
        if times * count < inputs:
            at = times * count
            carry = visit(Block(layer, start + at * size, at, inputs - at, size), carry)
        start += inputs * size
    return carry
