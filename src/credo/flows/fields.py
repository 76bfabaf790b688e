"""One step of a learned map, with its exact log-determinant and its inverse.

In the coordinates of a frame, a step is

    u -> M (u + U tanh(W u + b)) + k,        M = T diag(exp s) T',

with T lower triangular of unit diagonal. All of s, T, U, W, b and k come from a hypernetwork. The columns of
U are scaled so that sum_j |U_j| |W_j| <= rho < 1. Then the inner map is a contraction away from the identity:
the step is invertible everywhere, its determinant is positive, and its inverse is found by fixed-point
iteration.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.records import record
from credo.core.types import Array
from credo.flows.discrete import log_det_of_update

__all__ = ["REACH", "Step", "pack_size", "unpack"]

REACH = 0.9
"""rho: the bound of the Lipschitz constant of U tanh(W u + b)."""

TURNS = 40
"""How many fixed-point iterations invert a step."""

SPAN = 4.0
"""The bound of |s|."""


@record
class Step:
    """One step of a map.

    Attributes:
        log_scales: s (d,).
        lower: T (d, d), lower triangular with a diagonal of ones.
        outer: U (d, w).
        inner: W (w, d).
        bias: b (w,).
        shift: k (d,).
    """

    log_scales: Array
    lower: Array
    outer: Array
    inner: Array
    bias: Array
    shift: Array

    @property
    def matrix(self) -> Array:
        """The symmetric M (d, d)."""
        return (self.lower * jnp.exp(self.log_scales)[None, :]) @ self.lower.T

    def forward(self, units: Array) -> Array:
        """The points (N, d) after the step."""
        return self.bent(units) @ self.matrix + self.shift[None, :]

    def bent(self, units: Array) -> Array:
        """The points (N, d) after u + U tanh(W u + b), to which the affine map follows."""
        return units + jnp.tanh(units @ self.inner.T + self.bias[None, :]) @ self.outer.T

    def log_det(self, units: Array) -> Array:
        """log |det| of the step's Jacobian at each of the points (N, d) before it."""
        slopes = 1 - jnp.tanh(units @ self.inner.T + self.bias[None, :]) ** 2
        return log_det_of_update(self.outer, slopes, self.inner) + jnp.sum(self.log_scales)

    def backward(self, units: Array) -> Array:
        """The points (N, d) that the step takes to `units`, by fixed-point iteration and a Newton step."""

        def solve(rows: Array, transposed: int) -> Array:
            return jax.scipy.linalg.solve_triangular(
                self.lower, rows.T, lower=True, trans=transposed, unit_diagonal=True
            ).T

        middle = solve(units - self.shift[None, :], 0) * jnp.exp(-self.log_scales)[None, :]
        bent = solve(middle, 1)

        def turn(points: Array, _: None) -> tuple[Array, None]:
            moved = bent - jnp.tanh(points @ self.inner.T + self.bias[None, :]) @ self.outer.T
            return jax.lax.stop_gradient(moved), None

        near, _ = jax.lax.scan(turn, jax.lax.stop_gradient(bent), None, length=TURNS)
        near = jax.lax.stop_gradient(near)
        # a Newton step doubles the digits, and carries the derivatives of the solution
        hidden = jnp.tanh(near @ self.inner.T + self.bias[None, :])
        slopes = jax.lax.stop_gradient(1 - hidden**2)
        jacobians = jnp.einsum("dw,nw,we->nde", *jax.lax.stop_gradient((self.outer, slopes, self.inner)))
        gap = near + hidden @ self.outer.T - bent
        eye = jnp.eye(near.shape[1], dtype=near.dtype)
        move: Array = jnp.linalg.solve(jacobians + eye[None], gap[:, :, None])
        return near - move[:, :, 0]


def pack_size(dim: int, width: int) -> int:
    """How many numbers of the hypernetwork make a step."""
    return 3 * dim + dim * (dim - 1) // 2 + 2 * dim * width + width


def unpack(code: Array, dim: int, width: int, innovation: Array) -> Step:
    """The step that a vector of numbers stands for.

    Arguments:
        code: the numbers (pack_size(dim, width),).
        dim, width: the sizes d and w.
        innovation: the shift of the mean that the observation suggests (d,), of which the step takes a part.
    """
    sizes = [dim, dim, dim, dim * (dim - 1) // 2, dim * width, dim * width, width]
    places = [sum(sizes[: i + 1]) for i in range(len(sizes) - 1)]
    raw, gate, free, below, outer, inner, bias = jnp.split(code, places)
    lower = jnp.eye(dim, dtype=code.dtype).at[np.tril_indices(dim, -1)].set(below)
    out, into = outer.reshape(dim, width), inner.reshape(width, dim)
    lengths = jnp.sqrt(jnp.sum(out**2, axis=0) + 1e-12) * jnp.sqrt(jnp.sum(into**2, axis=1) + 1e-12)
    out = out / jnp.maximum(1, jnp.sum(lengths) / REACH)
    return Step(SPAN * jnp.tanh(raw / SPAN), lower, out, into, bias, gate * innovation + free)
