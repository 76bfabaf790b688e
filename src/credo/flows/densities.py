"""Densities of a set of particles before an observation, at any point."""

from __future__ import annotations

from abc import ABC, abstractmethod

import jax
import jax.numpy as jnp

from credo.beliefs import Anchor
from credo.core.records import record, static_field
from credo.core.trees import Unravel
from credo.core.types import Array, ArrayLike
from credo.dynamics import Dynamics
from credo.linalg.matrices import solve_lower
from credo.particles.density import (
    bandwidths,
    grain,
    log_kde,
    moments,
    normal_log_density,
    sound_root,
)

__all__ = ["KernelDensity", "NormalDensity", "SetDensity", "TransitionDensity"]


class SetDensity(ABC):
    """The density of the prior of an update."""

    @abstractmethod
    def log_prob(self, points: Array) -> Array:
        """The log densities of points (K, d): (K,)."""


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
        """Points (K, d) in the coordinates in which this law is N(0, I)."""
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
