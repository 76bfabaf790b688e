"""Answers of `OuterRows` to covariances, by Woodbury's identities in the space of the rows.

With rows J, the weighted Gram matrices J diag(w) J' and the products W diag(w) J' are cheap. Where
`DenseRows` subtracts rows from each other before they are squared, here their Gram matrices are: the rounding
error of J S J' is then that of J diag(1/y) J', which is relative to the variance without the kept directions;
a multiple of it is added so that the result stays positive semi-definite.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

import jax
import jax.numpy as jnp

from credo.core.records import record, replace
from credo.core.types import Array
from credo.linalg.jacobians.rows import Assimilated, Crossed
from credo.linalg.jacobians.sweeps import LayerProducts, Layers, measure, turn
from credo.linalg.matrices import (
    cholesky,
    eigh,
    identity,
    kalman_weights,
    leading_axes,
    precision,
    safe_sqrt,
    scale_rows,
    solve_lower,
    symmetric,
)

__all__ = [
    "Left",
    "OuterCross",
    "assimilate",
    "centre",
    "couple_ridge",
    "enter",
    "leading",
    "leading_frame",
    "leave",
    "left_scale",
    "left_where",
]


@record
class Centred:
    """The matrix L = diag(d) - u v' (k, k), whose products with n columns cost k n instead of k^2 n."""

    diagonal: Array
    column: Array
    weights: Array


Left: TypeAlias = Array | Centred | None
"""A factor L (k, n) on the left of n products; None for the identity."""


def centre(weights: Array) -> Centred:
    """I - 1 v', which takes from every row the mean of the rows under the weights v (k,)."""
    ones = jnp.ones_like(weights)
    return Centred(ones, ones, weights)


def leave(products: Array, left: Left) -> Array:
    """Values for the products (..., n) as values for the rows (..., k): X L'."""
    if left is None:
        return products
    if isinstance(left, Centred):
        return scale_rows(products, left.diagonal) - scale_rows(
            jnp.broadcast_to((products @ left.weights)[..., None], products.shape), left.column
        )
    return products @ left.T


def enter(coefficients: Array, left: Left) -> Array:
    """Coefficients of the rows (..., k) as coefficients of the products (..., n): C L."""
    if left is None:
        return coefficients
    if isinstance(left, Centred):
        return scale_rows(coefficients, left.diagonal) - scale_rows(
            jnp.broadcast_to((coefficients @ left.column)[..., None], coefficients.shape), left.weights
        )
    return coefficients @ left


def left_scale(left: Left, column: Array) -> Left:
    """diag(c) L."""
    if left is None:
        return jnp.diag(column)
    if isinstance(left, Centred):
        return replace(left, diagonal=column * left.diagonal, column=column * left.column)
    return column[:, None] * left


def left_where(left: Array | Centred, keep: Array) -> Left:
    """L with the rows whose `keep` (k,) is False set to zero."""
    if isinstance(left, Centred):
        diagonal, column = (jnp.where(keep, part, 0.0) for part in (left.diagonal, left.column))
        return replace(left, diagonal=diagonal, column=column)
    return jnp.where(keep[:, None], left, 0.0)


LARGE_GRAM = 128
"""The size of a Gram matrix from which the leading directions are found by iteration."""

ROUNDS = 3


def leading_frame(gram: Array, rank: int, level: Array) -> Array:
    """Orthonormal rows (R, n) along the leading eigenvectors of a positive semi-definite G (n, n).

    Small matrices are decomposed, at n^3. Of large ones, a space of 2 R directions is multiplied by G a few
    times, at n^2 R (subspace iteration; Halko, Martinsson & Tropp 2011), from the R first axes and fixed
    random directions: in a stream the first axes are the directions kept so far, and the answer is near
    them. Directions whose eigenvalues differ little are not told apart; any of them is then as good.
    """
    size = gram.shape[0]
    if size <= LARGE_GRAM or size < 4 * rank:
        return leading_axes(gram, level)[:rank]
    random = jax.random.normal(jax.random.key(0), (size, rank), gram.dtype)
    block = jnp.concatenate([jnp.eye(size, rank, dtype=gram.dtype), random], axis=1)
    for _ in range(ROUNDS):
        block = jnp.linalg.qr(gram @ block)[0]
    image = gram @ block
    vectors = eigh(symmetric(block.T @ image))[1]
    return (block @ vectors[:, ::-1][:, :rank]).T


class Outer(Protocol):
    """The part of outer rows that is needed here: their layers and their factor on the left."""

    @property
    def layers(self) -> Layers:
        """The inputs and deltas of each layer."""
        ...

    @property
    def left(self) -> Left:
        """The factor on the left of the products."""
        ...

    def attenuate(self, root: Array) -> Outer:
        """The rows A' J."""
        ...

    def squares(self, inner: Array | None = None) -> Array:
        """The diagonal of J' N J."""
        ...


@record
class OuterCross(Crossed):
    """J S (k, P) for outer rows J, as (J - c W) diag(v) with c (k, R); no c and W where S is diagonal."""

    rows: Crossed
    var: Array
    along: Array | None = None
    factor: Array | None = None

    def pull(self, coefficients: Array) -> Array:
        """c J S for c (k,) or (q, k)."""
        many = coefficients.reshape(-1, coefficients.shape[-1])
        combined = self.rows.pull(many)
        if self.along is not None and self.factor is not None:
            combined = combined - (many @ self.along) @ self.factor
        return scale_rows(combined, self.var).reshape(*coefficients.shape[:-1], combined.shape[-1])

    def dense(self) -> Array:
        """J S as an array; for inspection and tests."""
        rows = self.rows.dense()
        if self.along is not None and self.factor is not None:
            rows = rows - self.along @ self.factor
        return scale_rows(rows, self.var)


def couple_ridge(base: Array, factor: Array, rows: Outer) -> tuple[Array, Array]:
    """c and J S J' for S = inv(diag(y) + W' W), with J S = (J - c W) diag(1/y). Cost: P R^2."""
    (found,) = measure(base, factor, rows.layers, (True,))
    return _ridge(found, rows.left)


def _ridge(found: LayerProducts, left: Left) -> tuple[Array, Array]:
    """c (k, R) and J S J' (k, k), given the products in the metric 1/y. Cost: k^2 R."""
    own = found.own
    mutual = leave(found.mutual, left)
    mine = symmetric(leave(leave(found.gram, left).T, left))
    chol = cholesky(identity(own.shape[0], own.dtype) + own)
    along = solve_lower(chol, solve_lower(chol, mutual), transpose=True).T
    overlap = along @ mutual
    rest = mine - overlap - overlap.T + along @ own @ along.T
    slack = 4.0 * precision(mine.dtype).eps * jnp.diag(jnp.diagonal(mine))
    return along, symmetric(rest) + along @ along.T + slack


def leading(base: Array, factor: Array, rows: Outer, rank: int, whitened: bool) -> tuple[Array, Array]:
    """`leading` of `dense`, for outer rows, with an exact diagonal too. Cost: P R min(R, k)."""
    (found,) = measure(base, factor, rows.layers, (whitened,))
    new_base, kept, _ = _forget(base, factor, rows, found, rank, None, whitened)
    return new_base, kept


def assimilate(
    base: Array, factor: Array, rows: Outer, residual: Array, root: Array, rank: int, whitened: bool
) -> Assimilated:
    """`Rows.assimilate` for outer rows, where `couple_ridge`, which moves the mean, shares its passes."""
    found = measure(base, factor, rows.layers, (True,) if whitened else (True, False))
    along, inner = _ridge(found[0], rows.left)
    weights = kalman_weights(root, residual, inner)
    move = (-weights @ along, enter(weights, rows.left))
    new_base, kept, shift = _forget(base, factor, rows.attenuate(root), found[-1], rank, move, whitened)
    return Assimilated(shift, inner, new_base, kept)


def _forget(
    base: Array,
    factor: Array,
    rows: Outer,
    found: LayerProducts,
    rank: int,
    move: tuple[Array, Array] | None,
    whitened: bool,
) -> tuple[Array, Array, Array]:
    """y', W', and the row c W + u J, divided by y, for a move (c, u) of the mean.

    Of the k dropped directions, only those that involve W are formed, at most R of them. The others are
    combinations of B alone, and what they add to the diagonal is read off the outer products.
    """
    many = factor.shape[0]
    mutual = leave(found.mutual, rows.left)
    mine = leave(leave(found.gram, rows.left).T, rows.left)
    gram = symmetric(jnp.block([[found.own, mutual], [mutual.T, mine]]))
    level = jnp.ones((), base.dtype) if whitened else jnp.mean(base)
    others = None
    if mutual.shape[1] <= 2 * rank:
        frame = leading_axes(gram, level)
    else:
        top = leading_frame(gram, rank, level)
        basis = _range(top, many)
        frame = jnp.concatenate([top, basis.T], axis=0)
        on_rows = frame[:, many:]
        others = jnp.eye(mutual.shape[1], dtype=gram.dtype) - on_rows.T @ on_rows
    on_factor = frame[:, :many]
    on_products = enter(frame[:, many:], rows.left)
    if move is not None:
        on_factor = jnp.concatenate([on_factor, move[0][None, :]])
        on_products = jnp.concatenate([on_products, move[1][None, :]])
    new_base, kept, shift = turn(base, factor, rows.layers, on_factor, on_products, rank, move is not None)
    if move is not None:  # all that is written is finite where these few numbers are
        shift = jnp.where(jnp.isfinite(jnp.sum(on_factor) + jnp.trace(gram)), shift, jnp.nan)
    if others is not None:
        new_base = new_base + jnp.maximum(rows.squares(others), 0.0)
    return new_base, kept, shift


def _range(top: Array, many: int) -> Array:
    """An orthonormal basis (n, R) of the columns of (I - T' T)[:, :R], T = `top`; zero if dependent."""
    size = top.shape[1]
    outside = jnp.eye(size, many, dtype=top.dtype) - top.T @ top[:, :many]
    values, vectors = eigh(symmetric(outside.T @ outside))
    small = values <= precision(values.dtype).eps * jnp.maximum(values[-1], 1.0)
    return (outside @ vectors) * jnp.where(small, 0.0, 1.0 / safe_sqrt(jnp.where(small, 1.0, values)))[
        None, :
    ]
