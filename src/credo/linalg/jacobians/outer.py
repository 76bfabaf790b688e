"""Rows of dense layers, kept as outer products.

The outputs of a network depend on the weights of a dense layer through `[1, h] @ [b; w]`, so that each row of
the Jacobian is an outer product, layer by layer: the layer's inputs [1, h] times the derivative of the output
by the layer's result. `OuterRows` keeps the two factors. What covariances ask of rows J (k, P) then costs P
rather than k P or k^2 P, and J itself is never written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp

from credo.core.platforms import over_rows
from credo.core.records import record, replace
from credo.core.types import Array, DTypeLike
from credo.linalg.jacobians.rows import Assimilated, DenseRows, Rows
from credo.linalg.jacobians.sweeps import (
    Layers,
    alike,
    arms,
    by_layer,
    heights,
    meet,
    meet_both,
    outer_sum,
    spread_deltas,
    width,
)
from credo.linalg.jacobians.woodbury import (
    Left,
    OuterCross,
    assimilate,
    centre,
    couple_ridge,
    enter,
    leading,
    leave,
    left_scale,
    left_where,
)
from credo.linalg.matrices import inverse_gram, kalman_weights, symmetric

__all__ = ["OuterRows", "Ranges", "columns", "cut", "join", "whole_layers"]


@record
class OuterRows(Rows):
    """Rows J (k, P) made of G groups of K rows: in every layer, row (g, c) is inputs[g] x deltas[g, c].

    Attributes:
        inputs: one array (G, n) a layer: 1 for the bias, then the layer's inputs.
        deltas: one array (G, K, m) a layer: derivatives by the layer's m results; or (G, K) where result c
            is output c, which stands for diagonal matrices (G, K, K). The parameters (P,) are the layers'
            matrices (n, m) one after the other.
        left: L (k, G K), so that the rows are L times those products; None for the identity.
    """

    inputs: tuple[Array, ...]
    deltas: tuple[Array, ...]
    left: Left = None

    @property
    def count(self) -> int:
        """The number G K of products."""
        return self.deltas[0].shape[0] * self.deltas[0].shape[1]

    @property
    def layers(self) -> Layers:
        """The inputs and deltas of each layer."""
        return tuple(zip(self.inputs, self.deltas, strict=True))

    @property
    def shape(self) -> tuple[int, int]:
        """(k, P)."""
        size = sum(h.shape[1] * width(d) for h, d in zip(self.inputs, self.deltas, strict=True))
        return (self.left.shape[0] if isinstance(self.left, jax.Array) else self.count), size

    @property
    def dtype(self) -> DTypeLike:
        """The dtype of the products."""
        return self.deltas[0].dtype

    @property
    def compact(self) -> bool:
        """Whether these are the products themselves."""
        return self.left is None

    def mix_rows(self, matrix: Array) -> OuterRows:
        """M J, by the factor on the left alone. Cost: m k G K."""
        return replace(self, left=enter(matrix, self.left))

    def combine(self, coefficients: Array) -> OuterRows:
        """The rows of each group combined with coefficients (G K,); for products without a `left`."""
        assert self.left is None
        weights = coefficients.reshape(1, *self.deltas[0].shape[:2])
        return replace(self, deltas=tuple(arms(weights, d)[0][:, None, :] for d in self.deltas))

    def centre(self, weights: Array) -> OuterRows:
        """(I - 1 v') J for weights v (k,) that sum to 1, at a cost of k; for products without a `left`."""
        assert self.left is None
        return replace(self, left=centre(weights))

    def scale_rows(self, column: Array) -> OuterRows:
        """diag(c) J, by the factor on the left alone."""
        return replace(self, left=left_scale(self.left, column))

    def attenuate(self, root: Array) -> OuterRows:
        """A' J, by the factor on the left alone."""
        if root.ndim == 1:
            return self.scale_rows(root)
        return self.mix_rows(root.T)

    def push(self, vector: Array) -> Array:
        """J w. Cost: G P a column."""
        if vector.ndim == 1:
            return self.cross(vector[None, :])[0]
        return self.cross(vector.T).T

    def where(self, keep: Array) -> OuterRows:
        """The rows with those whose `keep` (k,) is False set to zero."""
        if self.left is not None:
            return replace(self, left=left_where(self.left, keep))
        mask = keep.reshape(self.deltas[0].shape[:2])
        return replace(
            self,
            deltas=tuple(jnp.where(mask if d.ndim == 2 else mask[:, :, None], d, 0.0) for d in self.deltas),
        )

    def _blocks(self, matrix: Array) -> list[Array]:
        """A matrix (q, P), or a vector (P,), layer by layer: (q, n, m) or (n, m)."""
        blocks = []
        start = 0
        for h, d in zip(self.inputs, self.deltas, strict=True):
            shape = (h.shape[1], width(d))
            part = jax.lax.slice_in_dim(matrix, start, start + shape[0] * shape[1], axis=-1)
            blocks.append(part.reshape(matrix.shape[:-1] + shape))
            start += shape[0] * shape[1]
        return blocks

    def dense(self) -> Array:
        """J itself (k, P)."""
        layers = []
        for h, d in zip(self.inputs, self.deltas, strict=True):
            pairs = (jnp.repeat(h, d.shape[1], axis=0), spread_deltas(d).reshape(self.count, -1))
            # One product at a time: XLA's CPU code for all of them at once, laid out flat, is 4 times slower.
            layers.append(over_rows(lambda arm, side: arm[:, None] * side[None, :], *pairs))
        products = jnp.concatenate([layer.reshape(self.count, -1) for layer in layers], axis=1)
        return leave(products.T, self.left).T

    def pull(self, coefficients: Array) -> Array:
        """C J (q, P) for coefficients C (q, k), or (P,) for (k,). Cost: G P a row, or k P where q is the
        larger.
        """
        if coefficients.ndim == 1:
            return self.pull(coefficients[None, :])[0]
        weights = enter(coefficients, self.left)
        if weights.shape[0] >= self.count:
            return weights @ replace(self, left=None).dense()
        parts = []
        for h, d in zip(self.inputs, self.deltas, strict=True):
            reach = arms(weights.reshape(-1, *d.shape[:2]), d)
            parts.append(over_rows(lambda arm, h=h: h.T @ arm, reach).reshape(weights.shape[0], -1))
        return jnp.concatenate(parts, axis=1)

    def cross(self, matrix: Array) -> Array:
        """M J' (q, k) for M (q, P). Cost: G q P."""
        total = jnp.zeros((), self.dtype)
        for h, d, block in zip(self.inputs, self.deltas, self._blocks(matrix), strict=True):
            if h.shape[0] == 1:
                reached = jnp.sum(block * h[0][None, :, None], axis=1)[:, None, :]
            else:
                reached = jnp.einsum("qnm,gn->qgm", block, h)
            total = total + meet(reached, d)
        return leave(total.reshape(matrix.shape[0], -1), self.left)

    def gram(self, weight: Array | None = None, other: Rows | None = None) -> Array:
        """J diag(w) H' (k, l) with rows H of the same layers, by default J itself. Cost: G^2 P / m."""
        second = self if other is None else other
        assert isinstance(second, OuterRows)
        weights = [None] * len(self.inputs) if weight is None else self._blocks(weight)
        total = jnp.zeros((), self.dtype)
        for h, d, hh, dd, w in zip(
            self.inputs, self.deltas, second.inputs, second.deltas, weights, strict=True
        ):
            if w is None:
                total = total + (h @ hh.T)[:, None, :, None] * alike(d, dd)
            else:
                both = (h[:, None, :] * hh[None, :, :]).reshape(-1, h.shape[1]) @ w
                total = total + meet_both(d, both.reshape(h.shape[0], hh.shape[0], -1), dd)
        products = total.reshape(self.count, second.count)
        return leave(leave(products, second.left).T, self.left).T

    def squares(self, inner: Array | None = None) -> Array:
        """The diagonal (P,) of J' N J, for N (k, k) or the identity. Cost: G^2 P / n."""
        middle = inner
        if self.left is not None:
            eye = jnp.eye(self.shape[0], dtype=self.dtype)
            left = enter(eye if inner is None else inner, self.left)
            middle = enter(left.T, self.left).T if inner is not None else left.T @ left

        def part(blank: Array, layer: int) -> tuple[Array]:
            h, d = self.layers[layer]
            both = heights(d, middle)
            pairs = h**2 if middle is None else (h[:, None, :] * h[None, :, :]).reshape(-1, h.shape[1])
            return (outer_sum(both.reshape(-1, both.shape[2]), pairs),)

        return by_layer(self.layers, part, jnp.zeros(self.shape[1], self.dtype))[0]

    def explained(self, var: Array) -> Array:
        """By the Gram matrix. Cost: G^2 P."""
        return var * self.squares(inverse_gram(self.gram(var)))

    def couple_diagonal(self, var: Array) -> tuple[OuterCross, Array]:
        """J S and J S J'. Cost: P."""
        return OuterCross(self, var), symmetric(self.gram(var))

    def assimilate_diagonal(self, var: Array, residual: Array, root: Array) -> tuple[Array, Array, Array]:
        """Layer by layer. Cost: P."""
        inner = symmetric(self.gram(var))
        weights = enter(kalman_weights(root, residual, inner)[None, :], self.left)
        added = self.attenuate(root)
        middle = enter(jnp.eye(added.shape[0], dtype=self.dtype), added.left)
        middle = middle.T @ middle

        def part(here: Array, layer: int) -> tuple[Array, Array]:
            h, d = self.layers[layer]
            side = arms(weights.reshape(1, *d.shape[:2]), d)[0]
            both = heights(d, middle)
            pairs = (h[:, None, :] * h[None, :, :]).reshape(-1, h.shape[1])
            squares = outer_sum(both.reshape(-1, both.shape[2]), pairs)
            return here * outer_sum(side, h), here / (1.0 + here * squares)

        shift, new = by_layer(self.layers, part, var)
        return shift, inner, new

    def couple_ridge(self, base: Array, factor: Array) -> tuple[OuterCross, Array]:
        """J S and J S J' by Gram matrices. Cost: P R^2."""
        along, inner = couple_ridge(base, factor, self)
        return OuterCross(self, 1.0 / base, along, factor), inner

    def leading(self, base: Array, factor: Array, rank: int, whitened: bool) -> tuple[Array, Array]:
        """By Gram matrices. Cost: P R min(R, k)."""
        return leading(base, factor, self, rank, whitened)

    def assimilate(
        self, base: Array, factor: Array, residual: Array, root: Array, rank: int, whitened: bool
    ) -> Assimilated:
        """In two passes over y and W, block by block. Cost: P R min(R, k)."""
        return assimilate(base, factor, self, residual, root, rank, whitened)


Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Columns, as ranges from a first to before a last one, in increasing order."""


def cut(array: Array, ranges: Ranges) -> Array:
    """The columns of an array (..., P) that lie in some ranges, side by side."""
    parts = [array[..., start:stop] for start, stop in ranges]
    if len(parts) == 1:
        return parts[0]
    return jnp.concatenate(parts, axis=-1)


def join(parts: Sequence[Array], places: Sequence[Ranges]) -> Array:
    """The array (..., P) of which `cut` gives the parts at their places."""
    pieces: list[tuple[int, Array]] = []
    for part, ranges in zip(parts, places, strict=True):
        done = 0
        for start, stop in ranges:
            pieces.append((start, part[..., done : done + stop - start]))
            done += stop - start
    ordered = [piece for _, piece in sorted(pieces, key=lambda pair: pair[0])]
    if len(ordered) == 1:
        return ordered[0]
    return jnp.concatenate(ordered, axis=-1)


def whole_layers(rows: Rows, ranges: Ranges) -> tuple[int, ...] | None:
    """The layers of outer rows that make up some columns; None if these are not whole layers."""
    if not isinstance(rows, OuterRows):
        return None
    found = []
    start = 0
    for index, (inputs, deltas) in enumerate(rows.layers):
        stop = start + inputs.shape[1] * width(deltas)
        if any(first <= start and stop <= last for first, last in ranges):
            found.append(index)
        elif any(first < stop and start < last for first, last in ranges):
            return None
        start = stop
    return tuple(found)


def columns(rows: Rows, ranges: Ranges) -> Rows:
    """Some columns of rows J (k, P): outer products if they are whole layers of such, or an array."""
    layers = whole_layers(rows, ranges)
    if layers and isinstance(rows, OuterRows):
        inputs = rows.inputs
        deltas = rows.deltas
        return OuterRows(tuple(inputs[i] for i in layers), tuple(deltas[i] for i in layers), rows.left)
    return DenseRows(cut(rows.dense(), ranges))
