"""Nodes and weights of a composite Gauss-Legendre rule whose cells lie where the integrand changes.

The probability that an arm is best is an integral of densities and distribution functions of all arms. Each
of them changes within a few scales about its own location, so a rule must know where every one does:
quantiles of all arms are the edges of the cells, and each cell has a few Gauss-Legendre nodes.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.types import Array

__all__ = ["MANY", "cell_nodes", "merge_cells", "sum_in_chunks"]

MANY = 200
"""The number of cells from which `merge_cells` is worth its cost."""

_CHUNK = 1600
"""How many exponentials are taken at once."""

_MERGED = 72
"""How many cells are left when cells are merged."""


def cell_nodes(edges: Array, order: int) -> tuple[Array, Array]:
    """The nodes (N,) and weights (N,) of a rule on the cells between edges.

    The nodes are constants for derivatives: an integral does not depend on where it is looked at.

    Arguments:
        edges: the edges (C + 1,), in any order; cells between equal edges have the weight 0.
        order: how many nodes n a cell has; polynomials of degree 2 n - 1 are integrated exactly.

    Returns:
        Nodes and weights, N = C order.
    """
    edges = jnp.sort(jax.lax.stop_gradient(edges), stable=False)
    points, weights = np.polynomial.legendre.leggauss(order)
    start, width = edges[:-1], edges[1:] - edges[:-1]
    nodes = start[:, None] + width[:, None] * jnp.asarray(0.5 + 0.5 * points, edges.dtype)[None]
    return nodes.reshape(-1), (width[:, None] * jnp.asarray(0.5 * weights, edges.dtype)[None]).reshape(-1)


def sum_in_chunks(
    integrate: Callable[[Array, Array], Array], nodes: Array, weights: Array, cost: int
) -> Array:
    """The sum of `integrate(nodes, weights)` over chunks of the nodes.

    XLA spreads a loop of some thousand exponentials over the processors, and waking them takes ten times as
    long as the loop itself; a chunk stays below that size.

    Arguments:
        integrate: from some nodes and their weights to what they add to the integrals (K,).
        nodes, weights: the rule (N,).
        cost: how many exponentials a node takes.

    Returns:
        The integrals (K,).
    """
    count = -(-nodes.shape[0] * cost // _CHUNK)
    if count == 1:
        return integrate(nodes, weights)
    size = -(-nodes.shape[0] // count)
    rest = count * size - nodes.shape[0]
    chunks = (jnp.pad(nodes, (0, rest), mode="edge"), jnp.pad(weights, (0, rest)))

    def add(total: Array, chunk: tuple[Array, Array]) -> tuple[Array, None]:
        return total + integrate(*chunk), None

    first, second = (values.reshape(count, size) for values in chunks)
    start = jnp.zeros_like(jax.eval_shape(integrate, first[0], second[0]))
    return jax.lax.scan(add, start, (first, second))[0]


def merge_cells(edges: Array) -> Array:
    """Fewer edges for many similar arms: as fine everywhere as the finest arm needs it.

    The quantiles of one arm cut its range into pieces, each of which asks for one cell. The density of cells
    is the largest that any arm asks for. For K arms whose scales differ by a factor r, and whose ranges have
    been cut off below the largest lower end, this asks for at most about 10 (1 + log r) cells, however many
    arms there are, where the edges of all arms would make 3 K cells.

    Arguments:
        edges: the edges (K, Q), each row ascending.

    Returns:
        The new edges, in one row, which start at the smallest and end at the largest.
    """
    edges = jax.lax.stop_gradient(edges)
    low, high = edges[:, :-1].reshape(-1), edges[:, 1:].reshape(-1)
    tiny = jnp.finfo(edges.dtype).tiny
    density = jnp.where(high > low, 1.0 / jnp.maximum(high - low, tiny), 0.0)
    points = jnp.sort(edges.reshape(-1), stable=False)
    middle, width = 0.5 * (points[1:] + points[:-1]), jnp.diff(points)
    inside = (low[None, :] <= middle[:, None]) & (middle[:, None] <= high[None, :])
    needs = width * jnp.max(jnp.where(inside, density[None, :], 0.0), axis=1)
    cells = jnp.concatenate([jnp.zeros(1, edges.dtype), jnp.cumsum(needs)])
    return jnp.interp(jnp.linspace(0.0, 1.0, _MERGED + 1, dtype=edges.dtype) * cells[-1], cells, points)
