"""Coordinates in which an update looks alike, whatever the scale: set whitened, likelihood diagonal.

With mean m and covariance S = L L' of the set, z = L^-1 (x - m) has mean 0 and covariance I. The likelihood
is linearised over the set: with the gradients g of log p(y | x) by z, statistical linearisation gives

    log p(y | x) ~ gamma' z - z' H z / 2,        gamma = E[g],  H = -Cov(z, g),

which is exact if y is linear in x with normal noise. H = V diag(lambda) V' turns the axes: u = V' z. An
affine map of the state changes neither u nor anything that an operator sees, as long as no two of the lambda
are equal.

So an operator sees numbers of an update that no affine map of the state changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp

from credo.core.records import record
from credo.core.types import Array
from credo.linalg.matrices import solve_lower, symmetric
from credo.particles.density import grain, moments, sound_root

__all__ = [
    "Frame",
    "LogLikelihood",
    "axis_features",
    "embedding_inputs",
    "moved_inputs",
    "posterior_frame",
    "strength",
]

LogLikelihood: TypeAlias = Callable[[Array], Array]
"""log p(y | x) of one value (P,) of the state: a number."""


@record
class Frame:
    """The coordinates u of one update, x = mean + root u, and what the set and the likelihood are in them.

    Attributes:
        mean, chol: the mean of the set (d,), and the Cholesky factor of its covariance (d, d).
        axes, inverse: the orthogonal V (d, d), so that root = chol V, and the inverse of root' (d, d).
        units, weights: the set in these coordinates (N, d), and its weights (N,), which sum to 1.
        shift: gamma (d,), the whitened gradient of the log-likelihood at u = 0.
        precisions: lambda (d,), what the observation adds to the unit precision of each axis, at least 0.
        bend: the gradients beyond their linear part, g - gamma + lambda u (N, d).
        log_likelihoods: log p(y | x) of the particles (N,).
    """

    mean: Array
    chol: Array
    axes: Array
    inverse: Array
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
        return (points - self.mean[None, :]) @ self.inverse

    def outside(self, units: Array) -> Array:
        """Points of these coordinates (K, d) in those of the state."""
        return self.mean[None, :] + units @ self.root.T


def posterior_frame(
    values: Array,
    log_weights: Array,
    log_likelihood: LogLikelihood,
    iterations: int = 1,
    damping: float = 0.5,
) -> Frame:
    """The frame of predicted particles (N, d) and an observation; nothing of it is differentiated.

    The likelihood is linearised over the set, then `iterations` - 1 times over the set as the linearised
    posterior would have it (posterior linearisation; Garcia-Fernandez et al. 2015). In each of these the
    share `damping` of the quadratic before stays, as in natural-gradient steps of a normal approximation.
    """
    values, weights = jax.lax.stop_gradient((values, jnp.exp(log_weights)))
    mean, cov = moments(values, jax.lax.stop_gradient(log_weights))
    chol = sound_root(cov, grain(values))
    eye = jnp.eye(mean.shape[0], dtype=mean.dtype)
    # a product with the small inverse takes a fifth of the time of a triangular solve
    unchol = solve_lower(chol, eye)
    deviations = values - mean[None, :]
    white = deviations @ unchol.T
    share = (white * weights[:, None]).T / (1 - jnp.sum(weights**2))
    each = jax.vmap(jax.value_and_grad(log_likelihood))

    def linearise(points: Array) -> tuple[Array, Array, Array, Array]:
        """The log-likelihoods and gradients at points, the whitened mean gradient, and -Cov(white, slope)."""
        log_likelihoods, gradients = each(points)
        average = weights @ gradients
        cross = share @ (gradients - average[None, :])
        return log_likelihoods, gradients, average @ chol, -cross @ chol

    def turn(push: Array, total: Array) -> tuple[Array, Array, Array, Array]:
        """The axes of push' z - z' total z / 2, its curvatures, its precisions, and its gradient at 0."""
        curves, axes = jnp.linalg.eigh(total, symmetrize_input=False)
        curves = curves[::-1]
        axes = axes[:, ::-1]
        return axes, curves, jnp.maximum(curves, 0), axes.T @ push

    first, gradients, average, cross = linearise(values)
    curvature = symmetric(cross)
    push = average
    total = curvature
    axes, curves, precisions, turned = turn(push, total)
    for _ in range(iterations - 1):
        centre = axes @ (turned / (1 + precisions))
        root = jnp.sqrt(1 + precisions)
        scale = (axes / root[None, :]) @ axes.T
        places = centre[None, :] + white @ scale
        _, _, slope, cross = linearise(mean[None, :] + places @ chol.T)
        # Cov(place, slope) = Cov(place) E[Hessian] by Stein's identity, with Cov(place) = scale scale'
        latest = symmetric((axes * root[None, :]) @ (axes.T @ cross))
        push = push + (1 - damping) * (slope + latest @ centre - push)
        total = total + (1 - damping) * (latest - total)
        axes, curves, precisions, turned = turn(push, total)
    # an axis points where the observation draws it, or where the set leans
    leaning = turned + weights @ (white @ axes) ** 3
    signs = jnp.where(leaning < 0, -1.0, 1.0).astype(mean.dtype)
    axes = axes * signs[None, :]
    turned = turned * signs
    inverse = unchol.T @ axes
    units = deviations @ inverse
    # where the first linearisation is the last one, its curvature is diagonal
    straight = units * curves[None, :] if iterations == 1 else units @ (axes.T @ curvature @ axes)
    bend = gradients @ (chol @ axes) - (average @ axes)[None, :] + straight
    frame = Frame(mean, chol, axes, inverse, units, weights, turned, precisions, bend, first)
    fixed: Frame = jax.lax.stop_gradient(frame)
    return fixed


def axis_features(frame: Frame) -> Array:
    """The linearised likelihood and the higher moments of the set, axis by axis (5 d + 1,).

    They are log(1 + lambda), the innovation gamma / sqrt(1 + lambda), the third and fourth moments of the
    set, the covariance of each squared axis with the log-likelihood, and its standard deviation. Large values
    are compressed.
    """
    units = frame.units
    weights = frame.weights
    level = frame.log_likelihoods - weights @ frame.log_likelihoods
    parts = [
        jnp.log1p(frame.precisions),
        jnp.arcsinh(frame.shift * frame.scales),
        jnp.arcsinh(weights @ units**3),
        jnp.arcsinh(weights @ units**4 - 3),
        jnp.arcsinh((weights * level) @ (units**2 - 1)),
        jnp.log1p(jnp.sqrt(weights @ level**2))[None],
    ]
    return jnp.concatenate(parts)


def embedding_inputs(frame: Frame) -> Array:
    """The embedded inputs of particles (N, 2 d + 1): place, bend of the gradient, log-likelihood."""
    level = frame.log_likelihoods - frame.weights @ frame.log_likelihoods
    # compressed in one piece: XLA would take them apart, and be slow at it
    steep = jnp.concatenate([frame.bend * frame.scales[None, :], level[:, None]], axis=1)
    return jnp.concatenate([frame.units, jnp.arcsinh(steep)], axis=1)


def moved_inputs(
    frame: Frame, units: Array, target: Array, scales: Array, log_likelihood: LogLikelihood
) -> Array:
    """The embedded inputs of particles (N, 2 d + 1) on their way: place, rest of the score, log-likelihood.

    The rest is what is left of the posterior's score, for a set whose prior is a normal distribution, by the
    coordinates `units` (N, d) after some steps, less that of the distribution which the base, of mean
    `target` and standard deviations `scales` (d,), makes of a standard normal one. It is zero if the base is
    right.
    """
    places = target[None, :] + units * scales[None, :]
    log_likelihoods, gradients = jax.vmap(jax.value_and_grad(log_likelihood))(frame.outside(places))
    level = log_likelihoods - frame.weights @ log_likelihoods
    rest = (gradients @ frame.root - places) * scales[None, :] + units
    return jnp.concatenate([units, jnp.arcsinh(rest), jnp.arcsinh(level)[:, None]], axis=1)


def strength(frame: Frame) -> Array:
    """The strength of an observation, v / (1 + v): v is the log-likelihood's variance plus sum(lambda)."""
    level = frame.log_likelihoods - frame.weights @ frame.log_likelihoods
    amount = frame.weights @ level**2 + jnp.sum(frame.precisions)
    return amount / (1 + amount)
