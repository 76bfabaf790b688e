"""Conjugate beliefs over one unknown: a probability, a rate, a vector of probabilities."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.core.records import record
from credo.core.types import Array

__all__ = ["Beta", "Dirichlet", "Gamma"]


@record
class Beta:
    """A probability p ~ Beta(a, b): density proportional to p^(a-1) (1 - p)^(b-1).

    Attributes:
        a, b: the pseudo-counts, above 0. The belief is worth a + b observations.
        t: how many times `predict` has been called.

    Example:
        >>> float(Beta(jnp.asarray(3.0), jnp.asarray(1.0), jnp.asarray(0)).mean)
        0.75
    """

    a: Array
    b: Array
    t: Array

    @property
    def mean(self) -> Array:
        """E[p] = a / (a + b)."""
        return self.a / (self.a + self.b)

    @property
    def var(self) -> Array:
        """Var[p]."""
        total = self.a + self.b
        return self.a * self.b / (total**2 * (total + 1))

    @property
    def params(self) -> Array:
        """E[p]."""
        return self.mean

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Draws of p."""
        return jax.random.beta(key, self.a, self.b, shape, jnp.result_type(self.a))


@record
class Gamma:
    """A rate ~ Gamma(shape, per): density proportional to rate^(shape-1) exp(-per rate).

    Attributes:
        shape: the number of events that the belief is worth, above 0.
        per: the time, or the number of observations, in which those events occurred, above 0.
        t: how many times `predict` has been called.

    Example:
        >>> float(Gamma(jnp.asarray(6.0), jnp.asarray(2.0), jnp.asarray(0)).mean)
        3.0
    """

    shape: Array
    per: Array
    t: Array

    @property
    def mean(self) -> Array:
        """E[rate] = shape / per."""
        return self.shape / self.per

    @property
    def var(self) -> Array:
        """Var[rate] = shape / per^2."""
        return self.shape / self.per**2

    @property
    def params(self) -> Array:
        """E[rate]."""
        return self.mean

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Draws of the rate."""
        return jax.random.gamma(key, self.shape, shape, jnp.result_type(self.shape)) / self.per


@record
class Dirichlet:
    """Class probabilities p ~ Dirichlet(counts): density proportional to prod p_c^(counts_c - 1).

    Attributes:
        counts: (C,), each above 0: the observations of each class that the belief is worth.
        t: how many times `predict` has been called.

    Example:
        >>> Dirichlet(jnp.array([3.0, 1.0]), jnp.asarray(0)).mean
        Array([0.75, 0.25], dtype=float32)
    """

    counts: Array
    t: Array

    @property
    def mean(self) -> Array:
        """E[p]."""
        return self.counts / jnp.sum(self.counts)

    @property
    def var(self) -> Array:
        """Var[p] of each class."""
        return self.mean * (1 - self.mean) / (jnp.sum(self.counts) + 1)

    @property
    def params(self) -> Array:
        """E[p]."""
        return self.mean

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Draws of p, (*shape, C)."""
        return jax.random.dirichlet(key, self.counts, shape, jnp.result_type(self.counts))
