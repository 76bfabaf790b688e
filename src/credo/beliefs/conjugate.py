"""Conjugate beliefs over one unknown: a probability, a rate, a vector of probabilities."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.core.records import record

__all__ = ["Beta", "Dirichlet", "Gamma"]


@record
class Beta:
    """p ~ Beta(a, b); `t` counts predictions."""

    a: jax.Array
    b: jax.Array
    t: jax.Array

    @property
    def mean(self) -> jax.Array:
        """E[p] = a / (a + b)."""
        return self.a / (self.a + self.b)

    @property
    def var(self) -> jax.Array:
        """Var[p]."""
        total = self.a + self.b
        return self.a * self.b / (total**2 * (total + 1))

    @property
    def params(self) -> jax.Array:
        """E[p]."""
        return self.mean

    def sample(self, key: jax.Array, shape: tuple[int, ...] = ()) -> jax.Array:
        """Draws of p."""
        return jax.random.beta(key, self.a, self.b, shape, jnp.result_type(self.a))


@record
class Gamma:
    """rate ~ Gamma(shape, per): density proportional to rate^(shape-1) exp(-per rate); `t` counts
    predictions.
    """

    shape: jax.Array
    per: jax.Array
    t: jax.Array

    @property
    def mean(self) -> jax.Array:
        """E[rate] = shape / per."""
        return self.shape / self.per

    @property
    def var(self) -> jax.Array:
        """Var[rate] = shape / per^2."""
        return self.shape / self.per**2

    @property
    def params(self) -> jax.Array:
        """E[rate]."""
        return self.mean

    def sample(self, key: jax.Array, shape: tuple[int, ...] = ()) -> jax.Array:
        """Draws of the rate."""
        return jax.random.gamma(key, self.shape, shape, jnp.result_type(self.shape)) / self.per


@record
class Dirichlet:
    """p ~ Dirichlet(counts), counts (C,); `t` counts predictions."""

    counts: jax.Array
    t: jax.Array

    @property
    def mean(self) -> jax.Array:
        """E[p]."""
        return self.counts / jnp.sum(self.counts)

    @property
    def var(self) -> jax.Array:
        """Var[p] of each class."""
        return self.mean * (1 - self.mean) / (jnp.sum(self.counts) + 1)

    @property
    def params(self) -> jax.Array:
        """E[p]."""
        return self.mean

    def sample(self, key: jax.Array, shape: tuple[int, ...] = ()) -> jax.Array:
        """Draws of p, (*shape, C)."""
        return jax.random.dirichlet(key, self.counts, shape, jnp.result_type(self.counts))
