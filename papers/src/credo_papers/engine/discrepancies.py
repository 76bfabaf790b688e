"""Distances between a weighted set of particles and a distribution: MMD with several kernels, sliced W2.

See `credo_papers.engine.particle_scores` for what a set is.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp

from credo.core.errors import require_choice
from credo.core.keys import as_key
from credo.core.types import Array, ArrayLike, Key
from credo.linalg.matrices import column_sums, solve_lower

__all__ = ["KernelName", "gaussian_squared_mmd", "kernel_matrix", "sliced_wasserstein", "squared_mmd"]

KernelName: TypeAlias = Literal["rbf", "laplacian", "polynomial", "sigmoid", "cosine"]
"""A kernel with the definition and default settings of scikit-learn."""

KERNELS = ("rbf", "laplacian", "polynomial", "sigmoid", "cosine")


def kernel_matrix(name: KernelName, points: Array, others: Array, gamma: ArrayLike | None = None) -> Array:
    """The kernel of every pair of points.

        rbf exp(-gamma ||x - y||^2), laplacian exp(-gamma ||x - y||_1), polynomial (gamma x'y + 1)^3,
        sigmoid tanh(gamma x'y + 1), cosine x'y / (||x|| ||y||)

    Arguments:
        name: the kernel.
        points: (M, P).
        others: (N, P).
        gamma: the kernel's setting; None means 1 / P.

    Returns:
        The matrix (M, N).

    Raises:
        CredoError: there is no kernel of this name.

    Example:
        >>> float(kernel_matrix("polynomial", jnp.ones((1, 2)), jnp.ones((1, 2)))[0, 0])
        8.0
    """
    require_choice("kernel", name, list(KERNELS))
    scale = _scale(points, gamma)
    if name == "laplacian":
        return jnp.exp(-scale * jnp.sum(jnp.abs(points[:, None, :] - others[None, :, :]), axis=2))
    inner = points @ others.T
    if name == "polynomial":
        return jnp.power(scale * inner + 1.0, 3)
    if name == "sigmoid":
        return jnp.tanh(scale * inner + 1.0)
    here = jnp.sum(points**2, axis=1)[:, None]
    there = jnp.sum(others**2, axis=1)[None, :]
    if name == "cosine":
        norms = jnp.sqrt(here * there)
        return jnp.where(norms > 0, inner / jnp.where(norms > 0, norms, 1.0), 0.0)
    return jnp.exp(-scale * jnp.maximum(here - 2.0 * inner + there, 0.0))


def squared_mmd(
    draws: Array,
    values: Array,
    log_weights: Array | None = None,
    kernel: KernelName = "rbf",
    gamma: ArrayLike | None = None,
) -> Array:
    """The squared maximum mean discrepancy, unbiased where particles are independent (Gretton et al. 2012).

        sum_{i != j} w_i w_j k(x_i, x_j) / (1 - sum w^2) - 2 mean_s sum_i w_i k(y_s, x_i)
            + mean_{s != r} k(y_s, y_r)

    Arguments:
        draws: draws y_s from the distribution (S, P), at least 2.
        values: the particles x_i (N, P).
        log_weights: their log weights (N,), or None.
        kernel: "rbf", "laplacian", "polynomial", "sigmoid" or "cosine".
        gamma: the kernel's setting; None means 1 / P.

    Returns:
        A number, which can be below 0. Cost (S + N)^2 P.

    Example:
        >>> first, second = jax.random.normal(jax.random.key(0), (2, 500, 2))
        >>> abs(float(squared_mmd(first, second))) < 0.01 < float(squared_mmd(first, second + 1.0))
        True
    """
    share = _shares(values, log_weights)
    even = _shares(draws, None)
    across = even @ (kernel_matrix(kernel, draws, values, gamma) @ share)
    return _apart(kernel, draws, even, gamma) - 2.0 * across + _apart(kernel, values, share, gamma)


def gaussian_squared_mmd(
    mean: Array, cov: Array, values: Array, log_weights: Array | None = None, gamma: ArrayLike | None = None
) -> Array:
    """`squared_mmd` with the rbf kernel against N(mean, cov) itself, without draws.

    E k(x, y) = |I + 2 gamma C|^-1/2 exp(-gamma (x - c)' inv(I + 2 gamma C) (x - c)) for y ~ N(c, C), and
    E k(y, y') = |I + 4 gamma C|^-1/2.

    Arguments:
        mean: c (P,).
        cov: C (P, P).
        values: the particles (N, P).
        log_weights: their log weights (N,), or None.
        gamma: the kernel's setting; None means 1 / P.

    Returns:
        A number, which can be below 0. Cost N^2 P.

    Example:
        >>> draws = jax.random.normal(jax.random.key(0), (500, 2))
        >>> abs(float(gaussian_squared_mmd(jnp.zeros(2), jnp.eye(2), draws))) < 0.01
        True
    """
    scale = _scale(values, gamma)
    eye = jnp.eye(values.shape[1], dtype=values.dtype)
    root = jnp.linalg.cholesky(eye + 2.0 * scale * cov)
    white = solve_lower(root, (values - mean[None, :]).T)
    share = _shares(values, log_weights)
    across = jnp.exp(-scale * column_sums(white**2)) @ share / jnp.prod(jnp.diagonal(root))
    own = 1.0 / jnp.prod(jnp.diagonal(jnp.linalg.cholesky(eye + 4.0 * scale * cov)))
    return own - 2.0 * across + _apart("rbf", values, share, gamma)


def sliced_wasserstein(
    draws: Array, values: Array, log_weights: Array | None = None, *, directions: int = 64, key: Key = 0
) -> Array:
    """The sliced 2-Wasserstein distance between draws and a set (Bonneel et al. 2015).

    It is the root of the mean squared W2 of the projections onto random directions. In one dimension W2 is
    the distance between quantile functions, which are steps; it is computed exactly for any weights.

    Arguments:
        draws: draws from the distribution (S, P).
        values: the particles (N, P).
        log_weights: their log weights (N,), or None.
        directions: how many unit vectors.
        key: the key of the unit vectors.

    Returns:
        A number. Cost `directions` (S + N) (P + log(S + N)).

    Example:
        >>> draws = jax.random.normal(jax.random.key(0), (100, 2))
        >>> round(float(sliced_wasserstein(draws, draws)), 6)
        0.0
    """
    units = jax.random.normal(as_key(key), (directions, values.shape[1]), values.dtype)
    units = units / jnp.linalg.norm(units, axis=1, keepdims=True)
    even = _shares(draws, None)
    share = _shares(values, log_weights)

    def one(unit: Array) -> Array:
        return _squared_distance(draws @ unit, even, values @ unit, share)

    return jnp.sqrt(jnp.mean(jax.lax.map(one, units)))


def _scale(points: Array, gamma: ArrayLike | None) -> Array:
    return jnp.asarray(1.0 / points.shape[1] if gamma is None else gamma, points.dtype)


def _squared_distance(first: Array, first_share: Array, second: Array, second_share: Array) -> Array:
    """The squared W2 of two weighted sets of numbers."""
    (here, low) = _steps(first, first_share)
    (there, high) = _steps(second, second_share)
    edges = jnp.sort(jnp.concatenate([low, high]))
    before = jnp.concatenate([jnp.zeros(1, edges.dtype), edges[:-1]])
    middle = 0.5 * (before + edges)
    gaps = here[_place(low, middle)] - there[_place(high, middle)]
    return jnp.sum((edges - before) * gaps**2)


def _steps(numbers: Array, share: Array) -> tuple[Array, Array]:
    """The numbers in order, and the probability up to and with each."""
    order = jnp.argsort(numbers)
    cumulated = jnp.cumsum(share[order])
    return numbers[order], cumulated / cumulated[-1]


def _place(edges: Array, levels: Array) -> Array:
    return jnp.clip(jnp.searchsorted(edges, levels), 0, edges.shape[0] - 1)


def _apart(kernel: KernelName, values: Array, share: Array, gamma: ArrayLike | None) -> Array:
    """The mean kernel of two different particles."""
    matrix = kernel_matrix(kernel, values, values, gamma)
    own = share**2
    rest = 1.0 - jnp.sum(own)
    pairs: Array = share @ matrix @ share - own @ jnp.diagonal(matrix)
    return jnp.where(rest > 0, pairs / jnp.where(rest > 0, rest, 1.0), matrix[0, 0])


def _shares(values: Array, log_weights: Array | None) -> Array:
    count = values.shape[0]
    if log_weights is None:
        return jnp.full(count, 1.0 / count, values.dtype)
    return jnp.exp(log_weights)
