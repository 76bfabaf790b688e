"""A set of particles as a smooth density: normal kernels that keep the set's mean and covariance."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.core.records import record
from credo.core.types import Array, ArrayLike
from credo.linalg.matrices import solve_lower
from credo.particles.density import bandwidth_factor, grain, log_kde, moments, sound_root

__all__ = ["SmoothDensity", "smooth"]


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
