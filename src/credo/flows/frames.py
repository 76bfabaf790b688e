"""Coordinates in which an update looks alike, whatever the scale: set whitened, likelihood diagonal.

With mean m and covariance S = L L' of the set, z = L^-1 (x - m) has mean 0 and covariance I. The likelihood
is linearised over the set: with the gradients g of log p(y | x) by z, statistical linearisation gives

    log p(y | x) ~ gamma' z - z' H z / 2,        gamma = E[g],  H = -Cov(z, g),

which is exact where y is linear in x with normal noise. H = V diag(lambda) V' turns the axes: u = V' z. An
affine map of the state changes neither u nor anything that an operator sees, as long as no two of the lambda
are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp

from credo.core.records import record
from credo.core.types import Array
from credo.linalg.matrices import symmetric
from credo.particles.density import grain, moments, sound_root

__all__ = ["Frame", "LogLikelihood", "posterior_frame"]

LogLikelihood: TypeAlias = Callable[[Array], Array]
"""log p(y | x) of one value (P,) of the state: a number."""


@record
class Frame:
    """The coordinates u of one update, x = mean + root u, and what the set and the likelihood are in them.

    Attributes:
        mean: the mean of the set (d,).
        chol: the Cholesky factor of its covariance (d, d).
        axes: the orthogonal V (d, d), so that root = chol V.
        units: the set in these coordinates (N, d).
        weights: the weights of the particles (N,), which sum to 1.
        shift: gamma (d,), the whitened gradient of the log-likelihood at u = 0.
        precisions: lambda (d,), what the observation adds to the unit precision of each axis, at least 0.
        bend: the gradients beyond their linear part, g - gamma + lambda u (N, d).
        log_likelihoods: log p(y | x) of the particles (N,).
    """

    mean: Array
    chol: Array
    axes: Array
    units: Array
    weights: Array
    shift: Array
    precisions: Array
    bend: Array
    log_likelihoods: Array

    @property
    def root(self) -> Array:
        """d x / d u (d, d)."""
        return self.chol @ self.axes

    @property
    def target(self) -> Array:
        """The mean of the linearised posterior (d,), in these coordinates."""
        return self.shift / (1 + self.precisions)

    @property
    def scales(self) -> Array:
        """The standard deviations of the linearised posterior (d,)."""
        return 1 / jnp.sqrt(1 + self.precisions)

    def inside(self, points: Array) -> Array:
        """Points (K, d) of the state in these coordinates."""
        deviations = (points - self.mean[None, :]).T
        return jax.scipy.linalg.solve_triangular(self.chol, deviations, lower=True).T @ self.axes

    def outside(self, units: Array) -> Array:
        """Points of these coordinates (K, d) in those of the state."""
        return self.mean[None, :] + units @ self.root.T


def posterior_frame(
    values: Array,
    log_weights: Array,
    log_likelihood: LogLikelihood,
    iterations: int = 1,
    damping: float = 0.0,
) -> Frame:
    """The frame of a set and an observation.

    Arguments:
        values: the predicted particles (N, d).
        log_weights: their log weights (N,), which sum to one.
        log_likelihood: log p(y | x) of one value.
        iterations: how often the likelihood is linearised: once over the set, then over the set as the
            linearised posterior would have it (posterior linearisation).
        damping: how much of the linearisation before, in [0, 1], stays in each further one.

    Returns:
        The frame. Nothing of it is differentiated.
    """
    values, weights = jax.lax.stop_gradient((values, jnp.exp(log_weights)))
    mean, cov = moments(values, jax.lax.stop_gradient(log_weights))
    chol = sound_root(cov, grain(values))
    white = jax.scipy.linalg.solve_triangular(chol, (values - mean[None, :]).T, lower=True).T
    spare = 1 - jnp.sum(weights**2)
    each = jax.vmap(jax.value_and_grad(log_likelihood))

    def linearise(points: Array, scale: Array) -> tuple[Array, Array, Array, Array]:
        """The log-likelihoods, whitened gradients, their mean and -E[Hessian] over points of this scale."""
        log_likelihoods, gradients = each(points)
        slopes = gradients @ chol
        average = weights @ slopes
        # Cov(place, slope) = Cov(place) E[Hessian] by Stein's identity, with Cov(place) = scale scale'
        cross = (white * weights[:, None]).T @ (slopes - average[None, :]) / spare
        return log_likelihoods, slopes, average, symmetric(-jnp.linalg.solve(scale.T, cross))

    def turn(average: Array, curvature: Array, centre: Array) -> tuple[Array, Array, Array]:
        """The axes of a linearisation about a centre, its precisions, and its gradient at 0 along them."""
        precisions, axes = jnp.linalg.eigh(curvature)
        precisions, axes = jnp.maximum(precisions[::-1], 0), axes[:, ::-1]
        return axes, precisions, axes.T @ (average + curvature @ centre)

    centre = jnp.zeros_like(mean)
    first, slopes, average, curvature = linearise(values, jnp.eye(mean.shape[0], dtype=mean.dtype))
    beyond = slopes - average[None, :] + white @ curvature
    axes, precisions, turned = turn(average, curvature, centre)
    pull, precision = average, curvature
    for _ in range(iterations - 1):
        centre = axes @ (turned / (1 + precisions))
        scale = (axes / jnp.sqrt(1 + precisions)[None, :]) @ axes.T
        places = centre[None, :] + white @ scale.T
        _, _, average, curvature = linearise(mean[None, :] + places @ chol.T, scale)
        pull = damping * pull + (1 - damping) * (average + curvature @ centre)
        precision = damping * precision + (1 - damping) * curvature
        axes, precisions, turned = turn(pull, precision, jnp.zeros_like(centre))
    # an axis points where the observation draws it, or where the set leans
    leaning = turned + weights @ (white @ axes) ** 3
    signs = jnp.where(leaning < 0, -1.0, 1.0).astype(mean.dtype)
    axes, turned = axes * signs[None, :], turned * signs
    frame = Frame(mean, chol, axes, white @ axes, weights, turned, precisions, beyond @ axes, first)
    fixed: Frame = jax.lax.stop_gradient(frame)
    return fixed
