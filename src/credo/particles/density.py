"""Densities of a weighted set of particles: a kernel density estimate, and the normal with its moments.

With weights w_i that sum to one, n = 1 / sum w_i^2 is the effective number of particles. Equal weights give
n = N, and then every formula is the textbook's.

A set is a smooth density, too: normal kernels that keep the set's mean and covariance.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from credo.core.records import record
from credo.core.types import Array, ArrayLike
from credo.linalg.matrices import cholesky, column_sums, precision, solve_lower, symmetric

__all__ = [
    "SmoothDensity",
    "bandwidth_factor",
    "bandwidths",
    "grain",
    "log_gaussian",
    "log_kde",
    "moments",
    "normal_log_density",
    "smooth",
    "sound_root",
]

LOG_TWO_PI = math.log(2.0 * math.pi)


def moments(values: Array, log_weights: Array | None = None) -> tuple[Array, Array]:
    """The mean (P,) and the unbiased covariance (P, P) of a weighted set, by default of equal weights.

    The covariance is sum w_i (x_i - m)(x_i - m)' / (1 - sum w_i^2), which for equal weights divides by N - 1,
    and is 0 if one particle has all the weight.
    """
    mean, deviations, share, rest = _deviations(values, log_weights)
    return mean, symmetric((deviations * share[:, None]).T @ deviations) / rest


def bandwidths(values: Array, log_weights: Array | None = None) -> Array:
    """Silverman's bandwidth of each coordinate.

        h_j = (4 / (P + 2))^(1 / (P + 4)) n^(-1 / (P + 4)) sd_j

    with n the effective number of particles and sd_j the unbiased standard deviation (Silverman 1986, 4.14).
    A coordinate in which all particles are equal takes the rounding error of its numbers, so that a density
    with these bandwidths is finite.

    Arguments:
        values: the particles (N, P).
        log_weights: their log weights (N,), which sum to one; None if they are equal.

    Returns:
        The bandwidths (P,), which are above 0.

    Example:
        >>> bandwidths(jnp.array([[0.0], [1.0], [2.0], [3.0]])).round(3)
        Array([1.036], dtype=float32)
    """
    weights = _log_weights(values, log_weights)
    _, deviations, share, rest = _deviations(values, weights)
    sd = jnp.sqrt(share @ deviations**2 / rest)
    return jnp.maximum(bandwidth_factor(weights, values.shape[1]) * sd, grain(values))


def bandwidth_factor(log_weights: Array, size: int) -> Array:
    """Silverman's bandwidth in standard deviations: (4 / (P + 2))^(1 / (P + 4)) n^(-1 / (P + 4))."""
    share = jnp.exp(log_weights)
    factor: Array = (4.0 / (size + 2.0)) ** (1.0 / (size + 4.0)) * (share @ share) ** (1.0 / (size + 4.0))
    return factor


def log_kde(points: Array, values: Array, log_weights: Array | None, bandwidth: Array) -> Array:
    """The logarithm of a kernel density estimate: log sum_i w_i N(x | x_i, diag(h^2)).

    Arguments:
        points: where to evaluate it (M, P).
        values: the particles (N, P), at which the kernels stand.
        log_weights: their log weights (N,), which sum to one; None if they are equal.
        bandwidth: the standard deviation h of the kernels, a number or one a coordinate (P,).

    Returns:
        The log densities (M,). Cost M N P, as one matrix product.

    Example:
        >>> one = log_kde(jnp.zeros((1, 1)), jnp.zeros((3, 1)), None, jnp.ones(1))
        >>> round(float(one[0]), 4)
        -0.9189
    """
    size = values.shape[1]
    width = jnp.broadcast_to(bandwidth, (size,)).astype(values.dtype)
    weights = _log_weights(values, log_weights)
    # distances from the middle of the set, so that squares of large coordinates do not cancel
    centre = jax.lax.stop_gradient(jnp.exp(weights) @ values)[None, :]
    here = (points - centre) / width[None, :]
    there = (values - centre) / width[None, :]
    if size == 1:
        squares = (here - there.T) ** 2
    else:
        inner = here @ there.T
        ones = jnp.ones(size, values.dtype)
        squares = (here**2 @ ones)[:, None] - 2.0 * inner + (there**2 @ ones)[None, :]
        squares = jnp.maximum(squares, 0.0)
    constant = 0.5 * size * LOG_TWO_PI + jnp.sum(jnp.log(width))
    return jax.nn.logsumexp(weights[None, :] - 0.5 * squares, axis=1) - constant


def log_gaussian(points: Array, values: Array, log_weights: Array | None = None) -> Array:
    """The log density of the normal distribution with the mean and covariance of a weighted set.

    If the particles do not span the space (N <= P, or all are equal), the distribution is degenerate; the log
    density is then that of the closest distribution that is not, and finite.

    Arguments:
        points: where to evaluate it (M, P).
        values: the particles (N, P).
        log_weights: their log weights (N,), which sum to one; None if they are equal.

    Returns:
        The log densities (M,). Cost (M + N) P^2 + P^3.

    Example:
        >>> values = jnp.array([[-1.0], [0.0], [1.0]])
        >>> round(float(log_gaussian(jnp.zeros((1, 1)), values)[0]), 4)
        -0.9189
    """
    mean, cov = moments(values, log_weights)
    return normal_log_density(points - mean[None, :], sound_root(cov, grain(values)))


def normal_log_density(gaps: Array, root: Array) -> Array:
    """log N(gap | 0, L L') of rows (M, P), for a lower triangular root L (P, P)."""
    white = solve_lower(root, gaps.T)
    constant = 0.5 * gaps.shape[1] * LOG_TWO_PI + jnp.sum(jnp.log(jnp.diagonal(root)))
    return -0.5 * column_sums(white**2) - constant


def sound_root(cov: Array, grain: Array) -> Array:
    """A triangular root L (P, P) of a covariance, which is finite and invertible whatever its rank.

    The correlations are factorised, with a few roundings added to their diagonal, and more where those do not
    suffice. No standard deviation is below its `grain` (P,).
    """
    sd = jnp.maximum(jnp.sqrt(jnp.maximum(jnp.diagonal(cov), 0.0)), grain)
    size = cov.shape[0]
    if size == 1:
        return sd[:, None]
    eye = jnp.eye(size, dtype=cov.dtype)
    nudge = 8 * size * float(precision(cov.dtype).eps)
    correlation = jnp.where(eye > 0, 1.0 + nudge, cov / (sd[:, None] * sd[None, :]))
    chol = cholesky(correlation)
    chol = jnp.where(jnp.all(jnp.isfinite(chol)), chol, cholesky(correlation + 1e3 * nudge * eye))
    return sd[:, None] * chol


def grain(values: Array) -> Array:
    """The rounding error of each coordinate of a set (N, P): the least distance that has a meaning, (P,)."""
    machine = precision(values.dtype)
    return float(machine.eps) * jnp.max(jnp.abs(values), axis=0) + math.sqrt(machine.tiny)


def _deviations(values: Array, log_weights: Array | None) -> tuple[Array, Array, Array, Array]:
    """The mean (P,), deviations from it (N, P), weights w (N,), and 1 - sum w^2, or 1 if that is 0."""
    share = jnp.exp(_log_weights(values, log_weights))
    mean = share @ values
    rest = 1.0 - share @ share
    return (
        mean,
        values - mean[None, :],
        share,
        jnp.where(rest > float(precision(values.dtype).eps), rest, 1.0),
    )


def _log_weights(values: Array, log_weights: Array | None) -> Array:
    count = values.shape[0]
    if log_weights is None:
        return jnp.full(count, -math.log(count), values.dtype)
    return log_weights


@record
class SmoothDensity:
    """The density sum_i w_i N(z | m + a (x_i - m), (1 - a^2) S) of a set with mean m and covariance S.

    A plain kernel estimate is wider than its particles. With kernels of the set's own covariance, drawn
    towards the mean by a, the density has exactly the mean and covariance of the set (West 1993). It is kept
    in coordinates u of z = m + L u with L L' = S, in which the kernels are round.

    Attributes:
        mean: m (P,).
        root: L (P, P), lower triangular.
        centres: a inv(L) (x_i - m), (N, P).
        log_weights: log w (N,), which sum to one.
        bandwidth: sqrt(1 - a^2), the standard deviation of the kernels in u.
    """

    mean: Array
    root: Array
    centres: Array
    log_weights: Array
    bandwidth: Array

    def whiten(self, values: Array) -> Array:
        """The coordinates u (M, P) of particles z (M, P)."""
        return solve_lower(self.root, (values - self.mean[None, :]).T).T

    def color(self, u: Array) -> Array:
        """The particles z (M, P) with coordinates u (M, P)."""
        return self.mean[None, :] + u @ self.root.T

    def log_density(self, u: Array) -> Array:
        """The log density of coordinates u (M, P), with respect to u: (M,). Cost M N P."""
        return log_kde(u, self.centres, self.log_weights, self.bandwidth[None])

    def log_prob(self, values: Array) -> Array:
        """The log density of particles z (M, P), with respect to z: (M,)."""
        return self.log_density(self.whiten(values)) - jnp.sum(jnp.log(jnp.diagonal(self.root)))

    def jitter(self, indices: Array, key: Array) -> Array:
        """One draw z from each of the kernels with these indices (M,): (M, P)."""
        noise = jax.random.normal(key, (indices.shape[0], self.mean.shape[0]), self.mean.dtype)
        return self.color(self.centres[indices] + self.bandwidth * noise)


def smooth(values: Array, log_weights: Array, shrinkage: ArrayLike | None = None) -> SmoothDensity:
    """A set of particles as a smooth density.

    Arguments:
        values: the particles (N, P).
        log_weights: their log weights (N,), which sum to one.
        shrinkage: a, above 0 and below 1; None for the bandwidth of Silverman.

    Returns:
        The density. Cost N P^2 + P^3.
    """
    mean, cov = moments(values, log_weights)
    root = sound_root(cov, grain(values))
    if shrinkage is None:
        width = jnp.minimum(bandwidth_factor(log_weights, values.shape[1]), 0.95)
        share = jnp.sqrt(1.0 - width**2)
    else:
        share = jnp.asarray(shrinkage).astype(values.dtype)
        width = jnp.sqrt(1.0 - share**2)
    centres = share * solve_lower(root, (values - mean[None, :]).T).T
    return SmoothDensity(mean, root, centres, log_weights, width)
