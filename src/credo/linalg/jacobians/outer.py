"""Rows of dense layers, kept as outer products.

The outputs of a network depend on the weights of a dense layer through `[1, h] @ [b; w]`, so that each row of
the Jacobian is an outer product, layer by layer: the layer's inputs [1, h] times the derivative of the output
by the layer's result. `OuterRows` keeps the two factors. What covariances ask of rows J (k, P) then costs P
rather than k P or k^2 P, and J itself is never written.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.core.records import record, replace
from credo.core.types import Array, DTypeLike
from credo.linalg.jacobians.protocol import Rows
from credo.linalg.jacobians.woodbury import OuterCross, couple_ridge, leading
from credo.linalg.matrices import column_sums, inverse_gram, symmetric

__all__ = ["OuterRows"]


@record
class OuterRows(Rows):
    """Rows J (k, P) made of G groups of K rows: in every layer, row (g, c) is inputs[g] x deltas[g, c].

    Attributes:
        inputs: one array (G, n) a layer: 1 for the bias, then the layer's inputs.
        deltas: one array (G, K, m) a layer: derivatives by the layer's m results. The parameters (P,) are the
            layers' matrices (n, m) one after the other.
        left: L (k, G K), so that the rows are L times those products; None for the identity.

    Example:
        >>> rows = OuterRows((jnp.ones((1, 3)),), (jnp.ones((1, 2, 4)),))
        >>> rows.shape, rows.dense().shape, rows.pull(jnp.ones(2)).shape
        ((2, 12), (2, 12), (12,))
    """

    inputs: tuple[Array, ...]
    deltas: tuple[Array, ...]
    left: Array | None = None

    @property
    def count(self) -> int:
        """The number G K of products."""
        return self.deltas[0].shape[0] * self.deltas[0].shape[1]

    @property
    def shape(self) -> tuple[int, int]:
        """(k, P)."""
        size = sum(h.shape[1] * d.shape[2] for h, d in zip(self.inputs, self.deltas, strict=True))
        return (self.count if self.left is None else self.left.shape[0]), size

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
        return replace(self, left=matrix if self.left is None else matrix @ self.left)

    def scale_rows(self, column: Array) -> OuterRows:
        """diag(c) J, by the factor on the left alone."""
        left = jnp.eye(self.count, dtype=self.dtype) if self.left is None else self.left
        return replace(self, left=column[:, None] * left)

    def push(self, vector: Array) -> Array:
        """J w. Cost: G P a column."""
        if vector.ndim == 1:
            return self.cross(vector[None, :])[0]
        return self.cross(vector.T).T

    def where(self, keep: Array) -> OuterRows:
        """The rows with those whose `keep` (k,) is False set to zero."""
        if self.left is not None:
            return replace(self, left=jnp.where(keep[:, None], self.left, 0.0))
        mask = keep.reshape(self.deltas[0].shape[:2])[:, :, None]
        return replace(self, deltas=tuple(jnp.where(mask, d, 0.0) for d in self.deltas))

    def _blocks(self, matrix: Array) -> list[Array]:
        """A matrix (q, P), or a vector (P,), layer by layer: (q, n, m) or (n, m)."""
        blocks, start = [], 0
        for h, d in zip(self.inputs, self.deltas, strict=True):
            shape = (h.shape[1], d.shape[2])
            part = jax.lax.slice_in_dim(matrix, start, start + shape[0] * shape[1], axis=-1)
            blocks.append(part.reshape(matrix.shape[:-1] + shape))
            start += shape[0] * shape[1]
        return blocks

    def _leave(self, products: Array) -> Array:
        """Turn what holds of the products (..., G K) into what holds of the rows (..., k)."""
        return products if self.left is None else products @ self.left.T

    def dense(self) -> Array:
        """J itself (k, P)."""
        layers = []
        for h, d in zip(self.inputs, self.deltas, strict=True):
            pairs = (jnp.repeat(h, d.shape[1], axis=0), d.reshape(self.count, -1))
            # One product at a time: XLA's CPU code for all of them at once, laid out flat, is 4 times slower.
            layers.append(jax.lax.map(lambda pair: pair[0][:, None] * pair[1][None, :], pairs))
        products = jnp.concatenate([layer.reshape(self.count, -1) for layer in layers], axis=1)
        return products if self.left is None else self.left @ products

    def pull(self, coefficients: Array) -> Array:
        """C J (q, P) for coefficients C (q, k), or (P,) for (k,). Cost: G P a row, or k P where q is the
        larger.
        """
        if coefficients.ndim == 1:
            return self.pull(coefficients[None, :])[0]
        weights = coefficients if self.left is None else coefficients @ self.left
        if weights.shape[0] >= self.count:
            return weights @ replace(self, left=None).dense()
        parts = []
        for h, d in zip(self.inputs, self.deltas, strict=True):
            arms = jnp.einsum("qgc,gcm->qgm", weights.reshape(-1, *d.shape[:2]), d)
            parts.append(jax.lax.map(lambda arm, h=h: h.T @ arm, arms).reshape(weights.shape[0], -1))
        return jnp.concatenate(parts, axis=1)

    def cross(self, matrix: Array) -> Array:
        """M J' (q, k) for M (q, P). Cost: G q P."""
        total = jnp.zeros((), self.dtype)
        for h, d, block in zip(self.inputs, self.deltas, self._blocks(matrix), strict=True):
            if h.shape[0] == 1:
                reached = jnp.sum(block * h[0][None, :, None], axis=1)[:, None, :]
            else:
                reached = jnp.einsum("qnm,gn->qgm", block, h)
            total = total + jnp.einsum("qgm,gcm->qgc", reached, d)
        return self._leave(total.reshape(matrix.shape[0], -1))

    def gram(self, weight: Array | None = None, other: Rows | None = None) -> Array:
        """J diag(w) H' (k, l) with rows H of the same layers, by default J itself. Cost: G^2 P / m.

        Arguments:
            weight: w (P,), or None for 1.
            other: H (l, P).
        """
        second = self if other is None else other
        assert isinstance(second, OuterRows)
        weights = [None] * len(self.inputs) if weight is None else self._blocks(weight)
        total = jnp.zeros((), self.dtype)
        for h, d, hh, dd, w in zip(
            self.inputs, self.deltas, second.inputs, second.deltas, weights, strict=True
        ):
            if w is None:
                alike = (d.reshape(-1, d.shape[2]) @ dd.reshape(-1, d.shape[2]).T).reshape(
                    *d.shape[:2], *dd.shape[:2]
                )
                total = total + (h @ hh.T)[:, None, :, None] * alike
            else:
                both = (h[:, None, :] * hh[None, :, :]).reshape(-1, h.shape[1]) @ w
                reached = d[:, :, None, :] * both.reshape(h.shape[0], 1, hh.shape[0], -1)
                total = total + jnp.einsum("gchm,hdm->gchd", reached, dd)
        products = total.reshape(self.count, second.count)
        return (products if self.left is None else self.left @ products) @ (
            jnp.eye(second.count, dtype=products.dtype) if second.left is None else second.left.T
        )

    def squares(self, inner: Array | None = None) -> Array:
        """The diagonal (P,) of J' N J, for N (k, k) or the identity. Cost: G^2 P / n."""
        middle = inner
        if self.left is not None:
            middle = self.left.T @ self.left if inner is None else self.left.T @ inner @ self.left
        parts = []
        for h, d in zip(self.inputs, self.deltas, strict=True):
            if middle is None:
                parts.append((h**2).T @ jax.vmap(column_sums)(d**2))
                continue
            bent = (middle @ _spread(d)).reshape(*d.shape[:2], d.shape[0], d.shape[2])
            both = jnp.einsum("gcm,gchm->ghm", d, bent).reshape(-1, d.shape[2])
            parts.append((h[:, None, :] * h[None, :, :]).reshape(-1, h.shape[1]).T @ both)
        return jnp.concatenate([part.reshape(-1) for part in parts])

    def explained(self, var: Array) -> Array:
        """By the Gram matrix. Cost: G^2 P."""
        return var * self.squares(inverse_gram(self.gram(var)))

    def couple_diagonal(self, var: Array) -> tuple[OuterCross, Array]:
        """J S and J S J'. Cost: P."""
        return OuterCross(self, var), symmetric(self.gram(var))

    def couple_ridge(self, base: Array, factor: Array) -> tuple[OuterCross, Array]:
        """J S and J S J' by Gram matrices. Cost: P R^2."""
        var, along, inner = couple_ridge(base, factor, self)
        return OuterCross(self, var, along, factor), inner

    def leading(self, base: Array, factor: Array, rank: int, whitened: bool) -> tuple[Array, Array]:
        """By Gram matrices. Cost: P R min(R, k)."""
        return leading(base, factor, self, rank, whitened)


def _spread(deltas: Array) -> Array:
    """Deltas (G, K, m) as (G K, G m), each group in columns of its own."""
    groups, each, width = deltas.shape
    eye = jnp.eye(groups, dtype=deltas.dtype)
    return (deltas[:, :, None, :] * eye[:, None, :, None]).reshape(groups * each, groups * width)
