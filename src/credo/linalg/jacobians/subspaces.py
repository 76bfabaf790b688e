"""The leading eigenvectors of a Gram matrix, for little where only a few of many are asked for."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.core.types import Array
from credo.linalg.matrices import eigh, symmetric

__all__ = ["LARGE_GRAM", "leading_frame"]

LARGE_GRAM = 128
"""The size of a Gram matrix from which the leading directions are found by iteration."""

ROUNDS = 3


def leading_frame(gram: Array, rank: int) -> Array:
    """Orthonormal rows (R, n) along the leading eigenvectors of a positive semi-definite G (n, n).

    Small matrices are decomposed, at n^3. Of large ones, a space of 2 R directions is multiplied by G a few
    times, at n^2 R (subspace iteration; Halko, Martinsson & Tropp 2011), from the R first axes and fixed
    random directions: in a stream the first axes are the directions kept so far, and the answer is near
    them. Directions whose eigenvalues differ little are not told apart; any of them is then as good.
    """
    size = gram.shape[0]
    if size <= LARGE_GRAM or size < 4 * rank:
        return eigh(gram)[1][:, ::-1].T[:rank]
    random = jax.random.normal(jax.random.key(0), (size, rank), gram.dtype)
    block = jnp.concatenate([jnp.eye(size, rank, dtype=gram.dtype), random], axis=1)
    for _ in range(ROUNDS):
        block = jnp.linalg.qr(gram @ block)[0]
    image = gram @ block
    vectors = eigh(symmetric(block.T @ image))[1]
    return (block @ vectors[:, ::-1][:, :rank]).T
