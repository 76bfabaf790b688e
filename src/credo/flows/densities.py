"""Densities of a set of particles before an observation, at any point, and draws with exact moments.

A set of N draws has a mean and a covariance of its own. Their errors, of order sqrt(d / N), would be carried
from update to update. Deviates with mean 0 and covariance I, that are uncorrelated with the particles that
they move, leave none: the moments of the set are then those of the dynamics.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import jax
import jax.numpy as jnp

from credo.beliefs import Anchor, NormalSource, Particles
from credo.beliefs.particles import MOVE
from credo.core.records import record, replace, static_field
from credo.core.trees import Unravel
from credo.core.types import Array, ArrayLike, DTypeLike
from credo.covariances import Covariance
from credo.dynamics import Dynamics, Static, Transition
from credo.dynamics.transition import finite_moves
from credo.linalg.matrices import cholesky, solve_lower
from credo.particles.density import bandwidths, grain, log_kde, moments, normal_log_density, sound_root

__all__ = [
    "KernelDensity",
    "MatchedSource",
    "NormalDensity",
    "SetDensity",
    "TransitionDensity",
    "matched_move",
    "standard",
]


class SetDensity(ABC):
    """The density of the prior of an update."""

    @abstractmethod
    def log_prob(self, points: Array) -> Array:
        """The log densities of points (K, d): (K,)."""

    def part(self, rows: slice) -> SetDensity:
        """The density of these rows of the set: by default that of the whole set."""
        return self


@record
class NormalDensity(SetDensity):
    """N(mean, root root'), with a lower triangular root."""

    mean: Array
    root: Array

    @classmethod
    def of(cls, values: Array, log_weights: Array) -> NormalDensity:
        """That with the moments of a weighted set."""
        mean, cov = moments(values, log_weights)
        return cls(mean, sound_root(cov, grain(values)))

    def log_prob(self, points: Array) -> Array:
        return normal_log_density(points - self.mean[None, :], self.root)

    def inside(self, points: Array) -> Array:
        """Points (K, d) in the coordinates in which this distribution is N(0, I)."""
        return solve_lower(self.root, (points - self.mean[None, :]).T).T

    def outside(self, units: Array) -> Array:
        """Points of these coordinates (K, d) in those of the state."""
        return self.mean[None, :] + units @ self.root.T


@record
class KernelDensity(SetDensity):
    """The kernel density estimate of a set (Eq 18), with Silverman's bandwidths times a factor."""

    values: Array
    log_weights: Array
    bandwidth: Array

    @classmethod
    def of(cls, values: Array, log_weights: Array, factor: ArrayLike = 1.0) -> KernelDensity:
        """That of a weighted set."""
        return cls(values, log_weights, bandwidths(values, log_weights) * jnp.asarray(factor, values.dtype))

    def log_prob(self, points: Array) -> Array:
        return log_kde(points, self.values, self.log_weights, self.bandwidth)


@record
class TransitionDensity(SetDensity):
    """The exact density of particles that the dynamics moved: sum_j w_j p(x | parent_j).

    Attributes:
        parents, log_weights: the particles before the move (N, d), and their log weights (N,).
        dynamics: the dynamics, whose density is known.
        anchor, t, dt: as the dynamics take them.
        unravel: how a vector becomes the parameter tree.
    """

    parents: Array
    log_weights: Array
    dynamics: Dynamics
    anchor: Anchor | None
    t: Array
    dt: ArrayLike | None
    unravel: Unravel = static_field()

    def log_prob(self, points: Array) -> Array:
        def from_parent(parent: Array) -> Array:
            return jax.vmap(
                lambda point: self.dynamics.log_transition(
                    point, parent, self.anchor, self.t, self.dt, self.unravel
                )
            )(points)

        table = jax.vmap(from_parent)(self.parents)
        return jax.nn.logsumexp(table + self.log_weights[:, None], axis=0)

    def part(self, rows: slice) -> SetDensity:
        """The mixture over the parents of these particles."""
        logs = self.log_weights[rows]
        return replace(self, parents=self.parents[rows], log_weights=logs - jax.nn.logsumexp(logs))


@record
class MatchedSource(NormalSource):
    """Particles from N(mean, cov) that have this mean and covariance exactly (dividing by N - 1).

    Example:
        >>> import credo, jax.numpy as jnp
        >>> source = MatchedSource(jnp.zeros(2), credo.Diagonal().init(jnp.ones(2)))
        >>> bool(jnp.all(jnp.abs(jnp.cov(source.draw(jax.random.key(0), 50).T) - jnp.eye(2)) < 1e-5))
        True
    """

    def draw(self, key: Array, count: int) -> Array:
        size = self.cov.deviates
        if count < size + 2:
            return super().draw(key, count)
        noise = standard(key, count, size, self.mean.dtype)
        return self.mean[None, :] + jax.vmap(self.cov.color)(noise)


def standard(
    key: Array,
    count: int,
    size: int,
    dtype: DTypeLike,
    log_weights: Array | None = None,
    beside: Array | None = None,
) -> Array:
    """Draws (count, size) of a standard normal distribution, of mean 0 and covariance I exactly.

    The moments are those under `log_weights` (count,), by default equal; the draws are also uncorrelated with
    the columns `beside` (count, k). If there are too few rows, the draws stay as they are.
    """
    draws = jax.random.normal(key, (count, size), dtype)
    others = jnp.zeros((count, 0), dtype) if beside is None else beside
    if count < size + others.shape[1] + 2:
        return draws
    weights = jnp.full(count, 1 / count, dtype) if log_weights is None else jnp.exp(log_weights)
    halves = jnp.sqrt(weights)[:, None]
    fixed, _ = jnp.linalg.qr(halves * jnp.concatenate([jnp.ones((count, 1), dtype), others], axis=1))
    rows = halves * draws
    rows = rows - fixed @ (fixed.T @ rows)
    spare = 1 - jnp.sum(weights**2)
    root = cholesky(rows.T @ rows / spare)
    white = jax.scipy.linalg.solve_triangular(root, rows.T, lower=True).T
    # without weight there is nothing to match
    matched = white / jnp.where(halves > 0, halves, 1)
    return jnp.where(jnp.all(jnp.isfinite(matched)), jnp.where(halves > 0, matched, draws), draws)


def matched_move(dynamics: Dynamics, belief: Particles, dt: ArrayLike | None) -> Array:
    """The particles (N, P) after a step of the dynamics, with matched noise if it is Gaussian.

    Dynamics that move particles by a function, or all of them together, do it their own way.
    """
    key = belief.step_key(MOVE)
    rest = (belief.anchor, belief.t, dt, belief.unravel)
    additive = isinstance(dynamics, Transition) and dynamics.mean_function is not None
    own = type(dynamics).propagate is not Dynamics.propagate
    if isinstance(dynamics, Static) or (own and not additive):
        return dynamics.propagate(belief.values, belief.log_weights, key, *rest)

    def distribution(value: Array) -> tuple[Array, Covariance]:
        return dynamics.conditional(value, *rest)

    means, covs = jax.vmap(distribution)(belief.values)
    means = finite_moves(means, belief.values) if additive else means
    size = jax.eval_shape(distribution, belief.values[0])[1].deviates
    noise = standard(key, means.shape[0], size, means.dtype, belief.log_weights, means)
    moved: Array = means + jax.vmap(lambda cov, row: cov.color(row))(covs, noise)
    return moved
