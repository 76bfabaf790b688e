"""Nodes and weights of a composite Gauss-Legendre rule whose cells lie where the integrand changes.

The density and the distribution function of an arm change within a few scales about its own location, so a
rule must know where every one does. Each cell has a few nodes; where tails are heavy, they lie evenly on the
scale on which the nearest arm is smooth.

An unknown noise variance that all arms share has nodes of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist
from typing import TypeVar

import jax
import jax.numpy as jnp
import jax.scipy.special as jss
import numpy as np

from credo.beliefs import InverseGamma
from credo.core.types import Array, DTypeLike

__all__ = [
    "LEAST_SHAPE",
    "MANY",
    "cell_nodes",
    "graded_nodes",
    "merge_cells",
    "noise_nodes",
    "sum_in_chunks",
    "wide_noise_nodes",
]

T = TypeVar("T")
"""The parameters of an integrand."""

MANY = 200
"""The number of cells from which `merge_cells` is worth its cost."""

_SORTED = 256
"""The number of values from which `sort` is faster than counting."""

_CHUNK = 1600
"""The number of exponentials that are taken at once."""

_UNROLLED = 6
"""The number of chunks from which a loop is worth its cost."""

_MERGED = 72
"""The number of cells that are left when cells are merged."""


def ascending(values: Array) -> Array:
    """The values (N,) in ascending order; up to some hundreds by counting, which is faster than `sort`."""
    values = jax.lax.stop_gradient(values)
    count = values.shape[0]
    if count > _SORTED:
        return jnp.sort(values, stable=False)
    number = np.arange(count)
    earlier = jnp.asarray(number[:, None] < number[None, :])
    before = (values[:, None] < values[None, :]) | ((values[:, None] == values[None, :]) & earlier)
    # products with ones, because XLA takes sums of more than 32 numbers in a slow way
    kind = values.dtype
    rank = _product(jnp.ones(count, kind), before.astype(kind))
    return _product(values, (rank[None, :] == jnp.asarray(number, kind)[:, None]).astype(kind).T)


def _product(values: Array, matrix: Array) -> Array:
    return jnp.matmul(values, matrix, precision=jax.lax.Precision.HIGHEST)


def cell_nodes(edges: Array, order: int) -> tuple[Array, Array]:
    """The C n nodes and weights of a rule on the cells between edges (C + 1,), which may have any order.

    The n nodes of a cell integrate polynomials of degree 2 n - 1 exactly; cells between equal edges have the
    weight 0. Nodes are constants for derivatives: an integral does not depend on where it is looked at.
    """
    edges = ascending(edges)
    points, weights = _rule(order, edges.dtype)
    start = edges[:-1, None]
    width = (edges[1:] - edges[:-1])[:, None]
    return (start + width * points[None]).reshape(-1), (width * weights[None]).reshape(-1)


def _rule(order: int, dtype: DTypeLike) -> tuple[Array, Array]:
    """The nodes and weights of Gauss and Legendre on [0, 1]."""
    points, weights = np.polynomial.legendre.leggauss(order)
    return jnp.asarray(0.5 + 0.5 * points, dtype), jnp.asarray(0.5 * weights, dtype)


def graded_nodes(edges: Array, order: int, centre: Array, width: Array) -> tuple[Array, Array]:
    """Like `cell_nodes`, for heavy tails: the (C + K - 1) n nodes are even in t, x = m + s sinh(t).

    m and s are the centre and width of the arm that varies fastest in the cell: the one with the least
    s + (distance from m to the cell). A Student-t is not smooth at m +- i s, with s its scale times sqrt(df).
    So a tail that falls like a power of x falls like exp(-t). Edges also lie half-way between neighbouring
    centres, so that no cell is in the tails of two arms that face each other.
    """
    edges, centre, width = jax.lax.stop_gradient((edges, centre, width))
    middles = ascending(centre)
    between = jnp.maximum(0.5 * (middles[1:] + middles[:-1]), jnp.min(edges))
    edges = ascending(jnp.concatenate([edges, between]))
    low = edges[:-1]
    high = edges[1:]
    gap = jnp.maximum(low[None, :] - centre[:, None], centre[:, None] - high[None, :])
    speed = jnp.maximum(gap, 0.0) + width[:, None]
    fastest = speed <= 1.000001 * jnp.min(speed, axis=0)[None]
    m = jnp.max(jnp.where(fastest, centre[:, None], -jnp.inf), axis=0)
    s = jnp.max(jnp.where(fastest, width[:, None], -jnp.inf), axis=0)
    far = (jnp.stack([low, high]) - m[None]) / s[None]
    size = jnp.abs(far)
    start, stop = jnp.sign(far) * jnp.log(size + jnp.sqrt(size * size + 1.0))  # the inverse of sinh
    points, weights = _rule(order, edges.dtype)
    t = start[:, None] + (stop - start)[:, None] * points[None]
    out, back = jnp.exp(jnp.stack([t, -t]))
    nodes = m[:, None] + (0.5 * s)[:, None] * (out - back)
    steps = (0.5 * s * (stop - start))[:, None] * (out + back) * weights[None]
    return nodes.reshape(-1), steps.reshape(-1)


def sum_in_chunks(
    integrate: Callable[[Array, Array, T], Array], nodes: Array, weights: Array, terms: T, cost: int
) -> Array:
    """The sum (K,) of `integrate(nodes, weights, terms)` over chunks of the nodes (N,); 0 if not finite.

    XLA spreads a loop of some thousand exponentials, or more than eight loops that can run side by side, over
    the processors, and waking them takes ten times as long as the loops themselves. So a chunk stays below
    that size (a node takes `cost` exponentials), and is a branch of its own, after that of the chunk before.
    What a branch reads exists in memory; otherwise XLA would compute nodes and terms again for every arm and
    node.
    """
    count = -(-nodes.shape[0] * cost // _CHUNK)
    size = -(-nodes.shape[0] // (8 * count)) * 8
    total = jnp.zeros_like(jax.eval_shape(integrate, nodes, weights, terms))

    def leave(total: Array, *_: object) -> Array:
        return total

    def add(total: Array, nodes: Array, weights: Array, terms: T) -> Array:
        return total + integrate(nodes, weights, terms)

    def step(total: Array, chunk: tuple[Array, Array]) -> tuple[Array, None]:
        later: Array = jax.lax.cond(jnp.isfinite(chunk[0][0]), add, leave, total, *chunk, terms)
        return later, None

    if count <= _UNROLLED:
        for start in range(0, nodes.shape[0], size):
            part = slice(start, start + size)
            total, _ = step(total, (nodes[part], weights[part]))
        return total
    rest = count * size - nodes.shape[0]
    chunks = (jnp.pad(nodes, (0, rest), mode="edge"), jnp.pad(weights, (0, rest)))
    first, second = (values.reshape(count, size) for values in chunks)
    return jax.lax.scan(step, total, (first, second))[0]


def merge_cells(edges: Array) -> Array:
    """Fewer edges, in one row, for many similar arms (K, Q): as fine everywhere as the finest arm needs it.

    The quantiles of one arm cut its range into pieces, each of which asks for one cell. The density of cells
    is the largest that any arm asks for. For K arms whose scales differ by a factor r, and whose ranges have
    been cut off below the largest lower end, this asks for at most about 10 (1 + log r) cells, however many
    arms there are, where the edges of all arms would make 3 K cells.
    """
    edges = jax.lax.stop_gradient(edges)
    low = edges[:, :-1].reshape(-1)
    high = edges[:, 1:].reshape(-1)
    tiny = jnp.finfo(edges.dtype).tiny
    density = jnp.where(high > low, 1.0 / jnp.maximum(high - low, tiny), 0.0)
    points = jnp.sort(edges.reshape(-1), stable=False)
    middle = 0.5 * (points[1:] + points[:-1])
    width = jnp.diff(points)
    inside = (low[None, :] <= middle[:, None]) & (middle[:, None] <= high[None, :])
    needs = width * jnp.max(jnp.where(inside, density[None, :], 0.0), axis=1)
    cells = jnp.concatenate([jnp.zeros(1, edges.dtype), jnp.cumsum(needs)])
    return jnp.interp(jnp.linspace(0.0, 1.0, _MERGED + 1, dtype=edges.dtype) * cells[-1], cells, points)


LEAST_SHAPE = 2.5
"""The shape below which `noise_nodes` miss 1e-4."""

_COUNT = 7
_WIDE = 20
_OUTSIDE = 2e-5
"""The probability beyond the last of the wide nodes."""


def noise_nodes(noise: InverseGamma, dtype: DTypeLike) -> tuple[Array, Array]:
    """Standard deviations s and weights w (7,) with E[f(sqrt(v))] = sum_i w_i f(s_i) for v ~ noise, f smooth.

    The cube root of a gamma variable is nearly normal (Wilson & Hilferty 1931, PNAS 17), so the nodes are
    those of a Gauss-Hermite rule for the cube root of scale / v, each with the ratio of the true density to
    the normal one. For probabilities of being best, errors were at most 6e-5 for a shape of 2.5, 2e-5 for 3
    and below 1e-6 from 6 on.
    """
    points, weights = np.polynomial.hermite_e.hermegauss(_COUNT)
    shape = jnp.asarray(noise.shape, dtype)
    z = jnp.asarray(points, dtype)
    cube_root = 1.0 - 1.0 / (9.0 * shape) + z / (3.0 * jnp.sqrt(shape))
    inside = cube_root > 0.02
    cube_root = jnp.where(inside, cube_root, 0.02)
    gamma = shape * cube_root**3
    log_ratio = shape * jnp.log(gamma) - gamma - jnp.log(cube_root) + 0.5 * z * z
    log_weights = jnp.where(inside, jnp.asarray(np.log(weights), dtype) + log_ratio, -jnp.inf)
    return _noise_rule(noise, jnp.log(gamma), log_weights)


def wide_noise_nodes(noise: InverseGamma, dtype: DTypeLike) -> tuple[Array, Array]:
    """Like `noise_nodes`, for shapes below `LEAST_SHAPE`: 20 nodes of a Gauss-Legendre rule for log v.

    It lies between two quantiles. Errors were at most 2e-5 for shapes from 0.75 on, and 1e-4 for 0.5.
    """
    points, weights = np.polynomial.legendre.leggauss(_WIDE)
    shape = jnp.asarray(noise.shape, dtype)
    end = NormalDist().inv_cdf(1.0 - _OUTSIDE)
    cube_root = 1.0 - 1.0 / (9.0 * shape) + end / (3.0 * jnp.sqrt(shape))
    high = jnp.log(shape) + 3.0 * jnp.log(cube_root)
    # P(gamma <= g) is at most g^shape / Gamma(shape + 1)
    low = (np.log(_OUTSIDE) + jss.gammaln(shape + 1.0)) / shape
    log_gamma = low + (high - low) * jnp.asarray(0.5 + 0.5 * points, dtype)
    log_weights = jnp.asarray(np.log(weights), dtype) + shape * log_gamma - jnp.exp(log_gamma)
    return _noise_rule(noise, log_gamma, log_weights)


def _noise_rule(noise: InverseGamma, log_gamma: Array, log_weights: Array) -> tuple[Array, Array]:
    sds = jnp.sqrt(jnp.asarray(noise.scale, log_gamma.dtype)) * jnp.exp(-0.5 * log_gamma)
    return sds, jnp.exp(log_weights - jss.logsumexp(log_weights))
