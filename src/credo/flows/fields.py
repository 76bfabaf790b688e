"""One step of a learned map, with its exact log-determinant and its inverse.

In the coordinates of a frame, a step is

    u -> M (u + U tanh(W u + b)) + k,        M = T diag(exp s) T',

with T lower triangular of unit diagonal. All of s, T, U, W, b and k come from a hypernetwork. The columns of
U are scaled so that sum_j |U_j| |W_j| <= rho < 1. Then the inner map is a contraction away from the identity:
the step is invertible everywhere, its determinant is positive, and its inverse is found by fixed-point
iteration.

A "convex" residual has U = W' diag(c) instead, and no bound on positive c: the inner map is then the
gradient of a strongly convex function, u'u / 2 + sum_j c_j log cosh(W_j u + b_j). It may tear a set apart
as steeply as it likes, which particles need that pass from one mode to another. Only negative c are scaled,
so that sum_j |c_j| |W_j|^2 <= rho. The inverse minimises a convex function.

Log-determinants are those of the map as it is computed, not of a differential equation. A step
u -> u + U tanh(W u + b) has the Jacobian I + U D W with D = diag(1 - tanh^2), one for every particle. Its
determinant is taken from d x d matrices, or by the matrix determinant lemma from w x w ones,
det(I + U D W) = det(I + D W U), whichever are smaller.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike

__all__ = ["FlowStep", "Residual", "log_det_of_stack", "log_det_of_update", "pack_size", "unpack"]

UNROLL = 16
"""The size up to which a stack of matrices is eliminated column by column, all matrices at once."""


def log_det_of_stack(matrices: Array) -> Array:
    """log |det| of N matrices (d, d, N), whose last axis counts them.

    The matrices are close enough to the identity for elimination without exchanges: with E the difference
    from the identity, every leading block is regular where the spectral norm of E is below 1. For small d
    this takes a tenth of the time of N calls of LAPACK.
    """
    size = matrices.shape[0]
    if size > UNROLL:
        logs: Array = jnp.linalg.slogdet(jnp.moveaxis(matrices, -1, 0))[1]
        return logs
    total = jnp.zeros_like(matrices[0, 0])
    rest = matrices
    for _ in range(size - 1):
        pivot = rest[0, 0]
        total = total + jnp.log(jnp.abs(pivot))
        factors = rest[1:, 0] / pivot[None, :]
        rest = rest[1:, 1:] - factors[:, None, :] * rest[0, 1:][None, :, :]
    return total + jnp.log(jnp.abs(rest[0, 0]))


def log_det_of_update(outer: Array, slopes: Array, inner: Array) -> Array:
    """log |det(I + U diag(s_n) W)| for every particle n (N,), with U (d, w), s (N, w) and W (w, d)."""
    size, width = outer.shape
    if width < size:
        cross = inner @ outer
        stack = jnp.moveaxis(slopes[:, :, None] * cross[None, :, :], 0, -1)
        return log_det_of_stack(stack + jnp.eye(width, dtype=outer.dtype)[:, :, None])
    return log_det_of_stack(jacobians_of_update(outer, slopes, inner))


def jacobians_of_update(outer: Array, slopes: Array, inner: Array) -> Array:
    """I + U diag(s_n) W for every particle n (d, d, N), with arguments as of `log_det_of_update`."""
    size, width = outer.shape
    table = outer[:, None, :] * inner.T[None, :, :]
    stack = (table.reshape(size * size, width) @ slopes.T).reshape(size, size, -1)
    return stack + jnp.eye(size, dtype=outer.dtype)[:, :, None]


def solve_stack(matrices: Array, columns: Array) -> Array:
    """The solutions (d, N) of N linear systems, by elimination as in `log_det_of_stack`."""
    size = matrices.shape[0]
    if size > UNROLL:
        solved: Array = jnp.linalg.solve(jnp.moveaxis(matrices, -1, 0), columns.T[:, :, None])
        return solved[:, :, 0].T
    rest = matrices
    below = columns
    rows = []
    for _ in range(size):
        rows.append((rest[0], below[0]))
        factors = rest[1:, 0] / rest[0, 0][None, :]
        below = below[1:] - factors * below[0][None, :]
        rest = rest[1:, 1:] - factors[:, None, :] * rest[0, 1:][None, :, :]
    found: list[Array] = []
    for row, right in reversed(rows):
        # the unknowns after this one, in order
        known = right - sum((c * u for c, u in zip(row[1:], found, strict=True)), jnp.zeros_like(right))
        found.insert(0, known / row[0])
    return jnp.stack(found)


Residual: TypeAlias = Literal["bounded", "convex"]
"""The term that a step adds: any hidden units under a bound, or the gradient of a convex function."""

REACH = 0.9
"""rho: the bound of the Lipschitz constant of U tanh(W u + b)."""

TURNS = 40
"""The number of fixed-point iterations that invert a step."""

DESCENTS = 12
"""The number of damped Newton steps that invert a convex step."""

SPAN = 4.0
"""The bound of |s|."""


@record
class FlowStep:
    """One step of a map: s (d,), T (d, d), U (d, w), W (w, d), b (w,), k (d,), and the kind of U."""

    log_scales: Array
    lower: Array
    outer: Array
    inner: Array
    bias: Array
    shift: Array
    convex: bool = static_field(default=False)

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
        """The points (N, d) that the step takes to `units`: by iteration, and a Newton step at the end."""

        def solve(rows: Array, transposed: int) -> Array:
            return jax.scipy.linalg.solve_triangular(
                self.lower, rows.T, lower=True, trans=transposed, unit_diagonal=True
            ).T

        middle = solve(units - self.shift[None, :], 0) * jnp.exp(-self.log_scales)[None, :]
        bent = solve(middle, 1)

        fixed: FlowStep = jax.lax.stop_gradient(self)
        near = fixed._descend(bent) if self.convex else fixed._iterate(bent)
        # a Newton step doubles the digits, and carries the derivatives of the solution
        return near - self._newton(jax.lax.stop_gradient(near), bent)

    def _iterate(self, bent: Array) -> Array:
        """About the points that the inner map takes to `bent`, if it is a contraction away from I."""
        bent = jax.lax.stop_gradient(bent)

        def turn(points: Array, _: None) -> tuple[Array, None]:
            return bent - jnp.tanh(points @ self.inner.T + self.bias[None, :]) @ self.outer.T, None

        return jax.lax.scan(turn, bent, None, length=TURNS)[0]

    def _descend(self, bent: Array) -> Array:
        """The same if it is the gradient of a convex function, by damped Newton steps.

        The third derivative of log cosh is at most twice the second, so that a move p is shortened to
        log(1 + b) / b of its length, with b = 2 max_j |W_j p| (Sun & Tran-Dinh 2019): the function falls at
        every step.
        """
        bent = jax.lax.stop_gradient(bent)

        def turn(points: Array, _: None) -> tuple[Array, None]:
            move = self._newton(points, bent)
            reach = 2 * jnp.max(jnp.abs(move @ self.inner.T), axis=1) + 1e-6
            return points - (jnp.log1p(reach) / reach)[:, None] * move, None

        return jax.lax.scan(turn, bent, None, length=DESCENTS)[0]

    def _newton(self, near: Array, bent: Array) -> Array:
        """The shift that a Newton step takes off `near` (N, d), on the way to points that become `bent`."""
        hidden = jnp.tanh(near @ self.inner.T + self.bias[None, :])
        slopes = jax.lax.stop_gradient(1 - hidden**2)
        jacobians = jacobians_of_update(*jax.lax.stop_gradient((self.outer, slopes, self.inner)))
        return solve_stack(jacobians, (near + hidden @ self.outer.T - bent).T).T


def pack_size(dim: int, width: int, residual: Residual = "bounded") -> int:
    """The number of values of the hypernetwork that make a step."""
    outer = width if residual == "convex" else dim * width
    return 3 * dim + dim * (dim - 1) // 2 + outer + dim * width + width


def unpack(
    code: Array,
    dim: int,
    width: int,
    innovation: Array,
    residual: Residual = "bounded",
    strength: ArrayLike = 1.0,
) -> FlowStep:
    """The step that a vector of numbers (pack_size(dim, width),) stands for.

    It takes a part of `innovation`, the shift of the mean that the observation suggests (d,). `strength`
    multiplies everything but that part and the hidden units: with 0, and no innovation, the step is the
    identity.
    """
    convex = residual == "convex"
    outside = width if convex else dim * width
    sizes = [dim, dim, dim, dim * (dim - 1) // 2, outside, dim * width, width]
    places = [sum(sizes[: i + 1]) for i in range(len(sizes) - 1)]
    raw, gate, free, below, outer, inner, bias = jnp.split(code, places)
    raw, free, below, outer = (part * jnp.asarray(strength, code.dtype) for part in (raw, free, below, outer))
    lower = jnp.eye(dim, dtype=code.dtype).at[np.tril_indices(dim, -1)].set(below)
    into = inner.reshape(width, dim)
    if convex:
        falling = jnp.maximum(-outer, 0)
        bound = jnp.maximum(1, jnp.sum(falling * jnp.sum(into**2, axis=1)) / REACH)
        out = into.T * (jnp.maximum(outer, 0) - falling / bound)[None, :]
    else:
        out = outer.reshape(dim, width)
        lengths = jnp.sqrt(jnp.sum(out**2, axis=0) + 1e-12) * jnp.sqrt(jnp.sum(into**2, axis=1) + 1e-12)
        out = out / jnp.maximum(1, jnp.sum(lengths) / REACH)
    return FlowStep(SPAN * jnp.tanh(raw / SPAN), lower, out, into, bias, gate * innovation + free, convex)
