"""Eigenvectors of Gram matrices whose rows may be of very different length."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.core.types import Array
from credo.linalg.matrices import eigh, identity, mixing, precision, symmetric

__all__ = ["leading_axes"]

_SWEEPS = 8
_DIGITS = 1e-3


@jax.custom_jvp
def leading_axes(gram: Array) -> Array:
    """The eigenvectors of a Gram matrix (n, n) as rows, by falling eigenvalue; differentiable as `eigh` is.

    A library's eigenvectors are right to eps times the largest eigenvalue. Of a row whose square is smaller
    than that they know nothing, and the rounding of a long row then stands where the short one was. Where
    that costs more than three digits, Jacobi's rotations take over, which are right relative to each row
    (Demmel & Veselic 1992). The loop that holds them is not entered elsewhere.

    Cost: n^3, and 8 n^3 rotations one after another where the rows are so different.
    """
    if gram.shape[0] == 1:
        return jnp.ones_like(gram)
    values = jnp.diagonal(gram)
    _, usual = eigh(gram)
    least = jnp.min(jnp.where(values > 0, values, jnp.inf))
    apart = jnp.max(values) * precision(gram.dtype).eps > _DIGITS * least

    def rotate(state: tuple[Array, Array]) -> tuple[Array, Array]:
        return _jacobi(gram), jnp.asarray(False)

    axes, _ = jax.lax.while_loop(lambda state: state[1], rotate, (usual[:, ::-1].T, apart))
    return axes


@leading_axes.defjvp
def _leading_axes_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (gram,), (tangent,) = primals, tangents
    axes = leading_axes(gram)
    values, inner = jnp.diagonal(axes @ gram @ axes.T), axes @ symmetric(tangent) @ axes.T
    return axes, mixing(values, inner).T @ axes


def _jacobi(gram: Array) -> Array:
    """The eigenvectors as rows, by cyclic rotations."""
    size = gram.shape[0]
    first, second = jnp.triu_indices(size, 1)

    def rotate(step: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        matrix, axes = state
        p, q = first[step % first.shape[0]], second[step % first.shape[0]]
        here, there, across = matrix[p, p], matrix[q, q], matrix[p, q]
        meet = jnp.abs(across) > precision(gram.dtype).eps * jnp.sqrt(here) * jnp.sqrt(there)
        slope = 0.5 * (there - here) / jnp.where(meet, across, 1.0)
        near = jnp.minimum(jnp.abs(slope), 1e8)
        tangent = jnp.where(
            jnp.abs(slope) > 1e8, 0.5 / slope, jnp.sign(slope) / (near + jnp.sqrt(1 + near**2))
        )
        tangent = jnp.where(slope == 0, 1.0, tangent)
        cosine = jax.lax.rsqrt(1.0 + tangent**2)
        turn = identity(size, gram.dtype)
        turn = turn.at[p, p].set(cosine).at[q, q].set(cosine)
        turn = turn.at[p, q].set(-cosine * tangent).at[q, p].set(cosine * tangent)
        turn = jnp.where(meet, turn, identity(size, gram.dtype))
        turned = turn @ matrix @ turn.T
        # What the rotation makes 0 is 0, and both squares are as they follow without cancellation.
        turned = turned.at[p, q].set(jnp.where(meet, 0.0, across)).at[q, p].set(jnp.where(meet, 0.0, across))
        moved = jnp.where(meet, tangent * across, 0.0)
        turned = turned.at[p, p].set(here - moved).at[q, q].set(there + moved)
        return turned, turn @ axes

    rounds = _SWEEPS * first.shape[0]
    matrix, axes = jax.lax.fori_loop(0, rounds, rotate, (gram, identity(size, gram.dtype)))
    falling: Array = axes[jnp.argsort(-jnp.diagonal(matrix))]
    return falling
