"""Scores of a weighted set of particles that stands for a distribution: densities, moments and integrals.

The metrics here and in `credo_papers.engine.discrepancies` are JAX functions of one set, to be used with
`jax.vmap` and `jax.jit`. A set has values (N, P) and log weights (N,), which sum to one; None if all
weigh the same. The distribution is known by draws from it, or by its mean and covariance.

They are those of Chen, Dai & Song (2019, "Particle flow Bayes' rule") and some that are harder to please. A
kernel density estimate smooths: a set can score better under it than exact draws do while its moments get
worse. So no cross-entropy is to be read alone.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp

from credo.core.types import Array, ArrayLike
from credo.particles.density import bandwidths, grain, log_kde, moments, sound_root

__all__ = [
    "IntegralErrors",
    "covariance_error",
    "gaussian_cross_entropy",
    "gaussian_entropy",
    "integral_errors",
    "kde_cross_entropy",
    "mean_error",
]


def kde_cross_entropy(
    draws: Array, values: Array, log_weights: Array | None = None, width: ArrayLike = 1.0
) -> Array:
    """The cross-entropy of draws under the kernel density estimate of a set, in nats.

        -1/S sum_s log sum_i w_i N(y_s | x_i, width^2 diag(h^2))

    with Silverman's bandwidths h, one for each coordinate (`credo.particles.bandwidths`).

    Arguments:
        draws: draws y_s from the distribution (S, P).
        values: the particles x_i (N, P).
        log_weights: their log weights (N,), or None.
        width: by what the bandwidths are multiplied.

    Returns:
        A number. Its Monte Carlo error falls like 1 / sqrt(S). Cost S N P.

    Example:
        >>> import jax
        >>> first, second = jax.random.normal(jax.random.key(0), (2, 4000, 1))
        >>> abs(float(kde_cross_entropy(first, second)) - 0.5 * math.log(2 * math.pi * math.e)) < 0.05
        True
    """
    bandwidth = bandwidths(values, log_weights) * width
    return -jnp.mean(log_kde(draws, values, log_weights, bandwidth))


def gaussian_cross_entropy(mean: Array, cov: Array, values: Array, log_weights: Array | None = None) -> Array:
    """The cross-entropy of a distribution under the normal distribution that a set's moments fit, in nats.

        1/2 [log |2 pi S| + tr(inv(S) (C + (c - m)(c - m)'))]

    with the set's mean m and unbiased covariance S. Only the distribution's mean c and covariance C matter.

    Arguments:
        mean: the distribution's mean c (P,).
        cov: its covariance C (P, P).
        values: the particles (N, P).
        log_weights: their log weights (N,), or None.

    Returns:
        A number, which is exact. Cost N P^2 + P^3.

    Example:
        >>> values = jnp.array([[-1.0], [0.0], [1.0]])
        >>> round(float(gaussian_cross_entropy(jnp.zeros(1), jnp.eye(1), values)), 4)
        1.4189
    """
    centre, spread = moments(values, log_weights)
    # collapsed sets do not span the space, and the rounding of their moments must not make them indefinite
    slack = 64 * centre.shape[0] * jnp.finfo(values.dtype).eps
    raised = spread + jnp.diag(slack * jnp.diagonal(spread))
    return normal_cross_entropy(mean, cov, centre, sound_root(raised, grain(values)))


def normal_cross_entropy(mean: Array, cov: Array, centre: Array, root: Array) -> Array:
    """The cross-entropy of a distribution with `mean` and `cov` under N(centre, root root')."""
    size = mean.shape[0]
    gap = mean - centre
    second = cov + gap[:, None] * gap[None, :]
    inverse = jnp.linalg.inv(root)
    constant = 0.5 * size * math.log(2.0 * math.pi) + jnp.sum(jnp.log(jnp.diagonal(root)))
    return constant + 0.5 * jnp.sum((inverse @ second) * inverse)


def gaussian_entropy(cov: Array) -> Array:
    """The entropy of a normal distribution with a covariance (P, P), in nats: 1/2 log |2 pi e C|.

    Arguments:
        cov: the covariance C (P, P), positive definite.

    Example:
        >>> round(float(gaussian_entropy(jnp.eye(1))), 4)
        1.4189
    """
    logdet: Array = jnp.linalg.slogdet(cov)[1]
    return 0.5 * (cov.shape[0] * math.log(2.0 * math.pi * math.e) + logdet)


def mean_error(mean: Array, values: Array, log_weights: Array | None = None) -> Array:
    """The distance of a set's mean from the distribution's, ||m - c||.

    Arguments:
        mean: the distribution's mean c (P,).
        values: the particles (N, P).
        log_weights: their log weights (N,), or None.

    Example:
        >>> float(mean_error(jnp.zeros(1), jnp.array([[1.0], [3.0]])))
        2.0
    """
    distance: Array = jnp.linalg.norm(moments(values, log_weights)[0] - mean)
    return distance


def covariance_error(cov: Array, values: Array, log_weights: Array | None = None) -> Array:
    """The Frobenius norm of a set's covariance minus the distribution's, over the norm of the latter.

    Arguments:
        cov: the distribution's covariance (P, P).
        values: the particles (N, P).
        log_weights: their log weights (N,), or None.

    Example:
        >>> float(covariance_error(jnp.eye(1), jnp.array([[1.0], [3.0]])))
        1.0
    """
    share: Array = jnp.linalg.norm(moments(values, log_weights)[1] - cov) / jnp.linalg.norm(cov)
    return share


class IntegralErrors(NamedTuple):
    """Errors of three integrals; see `integral_errors`.

    Attributes:
        mean: the distance of the means.
        quadratic: of x'AAx.
        product: of (A x + a)'(B x + b).
    """

    mean: Array
    quadratic: Array
    product: Array


def integral_errors(
    mean: Array,
    cov: Array,
    values: Array,
    log_weights: Array | None = None,
    *,
    first: tuple[Array, Array],
    second: tuple[Array, Array],
) -> IntegralErrors:
    """Absolute errors of the integrals x, x'AAx and (A x + a)'(B x + b) under a set.

    Under a distribution with mean c and covariance C they are c, tr(AAC) + c'AAc and
    tr(A'BC) + (A c + a)'(B c + b).

    Arguments:
        mean: the distribution's mean c (P,).
        cov: its covariance C (P, P).
        values: the particles (N, P).
        log_weights: their log weights (N,), or None.
        first: A (P, P) and a (P,).
        second: B (P, P) and b (P,).

    Returns:
        The distance of the means, and the absolute errors of the two other integrals.

    Example:
        >>> eye, zero, values = jnp.eye(1), jnp.zeros(1), jnp.array([[-1.0], [1.0]])
        >>> one = integral_errors(zero, eye, values, first=(eye, zero), second=(eye, zero))
        >>> float(one.quadratic), float(one.product)
        (0.0, 0.0)
    """
    (left, offset) = first
    (right, shift) = second
    count = values.shape[0]
    share = jnp.full(count, 1.0 / count, values.dtype) if log_weights is None else jnp.exp(log_weights)
    square = left @ left
    quadratic = share @ jnp.sum((values @ square.T) * values, axis=1)
    exact_quadratic = jnp.sum(square.T * cov) + mean @ square @ mean
    product = share @ jnp.sum(
        (values @ left.T + offset[None, :]) * (values @ right.T + shift[None, :]), axis=1
    )
    exact_product = jnp.sum((left.T @ right) * cov) + (left @ mean + offset) @ (right @ mean + shift)
    return IntegralErrors(
        jnp.linalg.norm(share @ values - mean),
        jnp.abs(quadratic - exact_quadratic),
        jnp.abs(product - exact_product),
    )
