"""Products with one dense layer's part of a Jacobian, where row (g, c) is inputs[g] x deltas[g, c].

The derivatives of the outputs by a layer's m results are an array of deltas (G, K, m). In the last layer each
result is an output, and output c depends on result c alone: its deltas may then be given as (G, K), which
stands for the diagonal matrices diag(deltas[g]) with m = K. Nothing of size K^2 is then multiplied.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.core.types import Array
from credo.linalg.matrices import column_sums

__all__ = ["alike", "arms", "heights", "meet", "meet_both", "spread_deltas", "width"]


def width(deltas: Array) -> int:
    """The number m of a layer's results."""
    return deltas.shape[-1]


def spread_deltas(deltas: Array) -> Array:
    """Deltas as an array (G, K, m), whichever way they are kept."""
    return jax.vmap(jnp.diag)(deltas) if deltas.ndim == 2 else deltas


def arms(weights: Array, deltas: Array) -> Array:
    """What weights (q, G, K) of the rows weigh the inputs with: (q, G, m)."""
    return weights * deltas[None] if deltas.ndim == 2 else jnp.einsum("qgc,gcm->qgm", weights, deltas)


def meet(reached: Array, deltas: Array) -> Array:
    """What is reached through the inputs (q, G, m), met by the deltas: (q, G, K)."""
    return reached * deltas[None] if deltas.ndim == 2 else jnp.einsum("qgm,gcm->qgc", reached, deltas)


def alike(deltas: Array, others: Array) -> Array:
    """The products (G, K, H, D) of deltas with the deltas (H, D, m) of other rows."""
    if deltas.ndim == others.ndim == 2:
        return _on_diagonal(deltas[:, None, :] * others[None, :, :])
    first, second = spread_deltas(deltas), spread_deltas(others)
    flat = first.reshape(-1, first.shape[2]) @ second.reshape(-1, second.shape[2]).T
    return flat.reshape(*first.shape[:2], *second.shape[:2])


def meet_both(deltas: Array, both: Array, others: Array) -> Array:
    """The products (G, K, H, D) of deltas with other deltas (H, D, m), weighted by `both` (G, H, m)."""
    if deltas.ndim == others.ndim == 2:
        return _on_diagonal(deltas[:, None, :] * both * others[None, :, :])
    first, second = spread_deltas(deltas), spread_deltas(others)
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
