"""Eigenvectors of Gram matrices whose rows may be of very different length."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.types import Array
from credo.linalg.entries import diagonal, identity
from credo.linalg.matrices import eigh, mixing, precision, symmetric

__all__ = ["leading_axes"]

_SWEEPS = 8


@jax.custom_jvp
def leading_axes(gram: Array, level: Array) -> Array:
    """The eigenvectors of a Gram matrix (n, n) as rows, by falling eigenvalue; differentiable as `eigh` is.

    A library's eigenvectors are right to eps times the largest eigenvalue. Of a row whose square is smaller
    than that they know nothing, and the rounding of a long row then stands where the short one was. Where
    a long row is so long that its rounding exceeds a short one, and `level`, below which squares do not
    matter, Jacobi's rotations take over, which are right relative to each row (Demmel & Veselic 1992). The
    loop that holds them is not entered elsewhere.

    Cost: n^3; n^3 for each of at most 8 n^2 / 2 rotations where the rows are so different.
    """
    if gram.shape[0] == 1:
        return jnp.ones_like(gram)
    values = diagonal(gram)
    _, usual = eigh(gram)
    positive = jnp.where(values > 0, values, jnp.full_like(values, jnp.inf))
    least = jnp.maximum(jnp.min(positive), level)
    apart = jnp.max(values) * precision(gram.dtype).eps > least

    # The matrix is a state of the loop that changes: XLA would otherwise rotate it before it asks whether to.
    def rotate(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        return _jacobi(state[1]), jnp.zeros_like(gram), jnp.asarray(False)

    begin = (usual[:, ::-1].T, gram, apart)
    axes, _, _ = jax.lax.while_loop(lambda state: state[2], rotate, begin)
    return axes


@leading_axes.defjvp
def _leading_axes_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    (gram, level) = primals
    (tangent, _) = tangents
    axes = leading_axes(gram, level)
    values = jnp.diagonal(axes @ gram @ axes.T)
    inner = axes @ symmetric(tangent) @ axes.T
    return axes, mixing(values, inner).T @ axes


def _jacobi(gram: Array) -> Array:
    """The eigenvectors as rows, by cyclic rotations, until no two rows meet."""
    size = gram.shape[0]
    eps = precision(gram.dtype).eps
    first, second = (jnp.asarray(places, jnp.int32) for places in np.triu_indices(size, 1))

    def unfinished(state: tuple[Array, Array, Array]) -> Array:
        matrix, _, sweep = state
        root = jnp.sqrt(jnp.diagonal(matrix))
        meet = jnp.abs(matrix[first, second]) > 4.0 * eps * root[first] * root[second]
        return (sweep < _SWEEPS) & jnp.any(meet)

    def rotate(step: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        matrix, axes = state
        p = first[step]
        q = second[step]
        here = matrix[p, p]
        there = matrix[q, q]
        across = matrix[p, q]
        meet = jnp.abs(across) > eps * jnp.sqrt(here) * jnp.sqrt(there)
        slope = 0.5 * (there - here) / jnp.where(meet, across, 1.0)
        near = jnp.minimum(jnp.abs(slope), 1e8)
        tangent = jnp.where(slope < 0, -1.0, 1.0) / (near + jnp.sqrt(1.0 + near**2))
        tangent = jnp.where(jnp.abs(slope) > 1e8, 0.5 / jnp.where(slope == 0, 1.0, slope), tangent)
        tangent = jnp.where(meet, tangent, 0.0)
        cosine = jax.lax.rsqrt(1.0 + tangent**2)
        sine = cosine * tangent

        def turned(rows: Array) -> Array:
            upper = rows[p]
            lower = rows[q]
            return rows.at[p].set(cosine * upper - sine * lower).at[q].set(sine * upper + cosine * lower)

        matrix = turned(turned(matrix).T)
        # What the rotation makes 0 is 0, and both squares follow without cancellation.
        left = jnp.where(meet, 0.0, across)
        matrix = matrix.at[p, q].set(left).at[q, p].set(left)
        matrix = matrix.at[p, p].set(here - tangent * across).at[q, q].set(there + tangent * across)
        return matrix, turned(axes)

    def sweep(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        matrix, axes = jax.lax.fori_loop(0, first.shape[0], rotate, state[:2])
        return matrix, axes, state[2] + 1

    begin = (gram, identity(size, gram.dtype), jnp.zeros((), jnp.int32))
    matrix, axes, _ = jax.lax.while_loop(unfinished, sweep, begin)
    falling: Array = axes[jnp.argsort(-jnp.diagonal(matrix))]
    return falling
