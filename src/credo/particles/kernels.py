"""The Gaussian kernel on sets of points, its scale by the median distance, and herding."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.types import Array, ArrayLike

__all__ = ["gaussian_gram", "herd", "median_distance", "squared_distances"]

PAIRS = 8192
"""About how many pairs of points the median distance looks at; to sort all would cost the most."""


def squared_distances(left: Array, right: Array) -> Array:
    """||x_i - y_j||^2 (N, M), exactly, from differences of points (N, P) and (M, P). Cost: N M P."""
    return jnp.sum((left[:, None, :] - right[None, :, :]) ** 2, axis=-1)


def median_distance(values: Array) -> Array:
    """The median distance between two points of a set, the usual scale of a kernel (Gretton et al. 2012).

    Arguments:
        values: the points (N, P), N at least 2.

    Returns:
        The median over the pairs of different points, a scalar; 0 where most points are equal. Past 90 points
        it looks at the pairs of every k-th point with all others, some 8,000 pairs.

    Example:
        >>> float(median_distance(jnp.array([[0.0], [1.0], [3.0]])))
        2.0
    """
    count = values.shape[0]
    rows = np.arange(0, count, max(1, count * count // PAIRS))
    others = np.stack([np.delete(np.arange(count), row) for row in rows])
    gaps = squared_distances(values[rows], values)
    return jnp.median(jnp.sqrt(jnp.take_along_axis(gaps, jnp.asarray(others), axis=1)))


def gaussian_gram(left: Array, right: Array, scale: ArrayLike) -> Array:
    """The Gaussian kernel k(x, y) = exp(-||x - y||^2 / (2 scale^2)) between two sets of points.

    Arguments:
        left, right: the points, (N, P) and (M, P).
        scale: the length at which the kernel falls to exp(-1/2), above 0.

    Returns:
        The Gram matrix (N, M).

    Example:
        >>> gaussian_gram(jnp.zeros((1, 1)), jnp.zeros((1, 1)), 1.0)
        Array([[1.]], dtype=float32)
    """
    width = jnp.asarray(scale).astype(left.dtype)
    return jnp.exp(-squared_distances(left, right) / (2.0 * width**2))


def herd(embedding: Array, gram: Array, count: int) -> Array:
    """Points whose equal average is close to a kernel mean: kernel herding (Chen, Welling & Smola 2010).

    Point p + 1 maximises m(x) - 1/(p + 1) sum_{i <= p} k(x, x_i) over the candidates. Of p + 1 points, the
    error of the average is then of order 1/p at best, against 1/sqrt(p) of independent draws. The published
    code of the kernel Bayes filters lacks the division by p + 1, so its points repel each other more and
    more.

    Arguments:
        embedding: the kernel mean m at the candidates (M,).
        gram: the kernel between the candidates (M, M).
        count: how many points to take.

    Returns:
        The indices (count,) of the points among the candidates, which may repeat.

    Cost: count M, after the Gram matrix.

    Example:
        >>> herd(jnp.array([0.9, 0.1]), jnp.eye(2), 10).sum()
        Array(1, dtype=int32)
    """

    def take(total: Array, step: Array) -> tuple[Array, Array]:
        best = jnp.argmax(embedding - total / step)
        return total + gram[best], best.astype(jnp.int32)

    steps = jnp.arange(1, count + 1).astype(gram.dtype)
    return jax.lax.scan(take, jnp.zeros_like(embedding), steps)[1]
