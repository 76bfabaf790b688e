"""Which of two maps an update takes: that with the tighter bound of the evidence."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from credo.core.types import Array
from credo.flows.operator import FlowMap
from credo.particles.moves import Target

__all__ = ["Chosen", "Moved", "moved"]


class Moved(NamedTuple):
    """Particles x (N, d) after a map T, with what is known of each, and the bound of the evidence.

    `log_det` is log |det T'(x)|, `log_ratio` log p(T x) + log p(y | T x) + `log_det` - log p(x), and `bound`
    the weighted mean of `log_ratio`, or -inf if it is not finite.
    """

    values: Array
    log_det: Array
    log_ratio: Array
    bound: Array


def moved(bayes: FlowMap, values: Array, log_weights: Array, log_density: Array, target: Target) -> Moved:
    """The particles (N, d) of log weights (N,) and log density (N,) after a map.

    The expectation of the bound is at most log p(y), the constant of the target p(x) p(y | x), and is equal
    to it where the map takes the prior to the posterior.
    """
    places, log_det = bayes.forward_density(values)
    log_ratio = target(places) + log_det - log_density
    counts = log_weights > -jnp.inf
    total = jnp.sum(jnp.where(counts, jnp.exp(log_weights) * log_ratio, 0.0))
    usable = jnp.isfinite(total) & jnp.all(jnp.isfinite(places))
    return Moved(places, log_det, log_ratio, jnp.where(usable, total, -jnp.inf))


class Chosen(NamedTuple):
    """The first of some maps whose bound is the largest, or the identity where none has a bound."""

    maps: list[FlowMap]
    which: Array

    @classmethod
    def of(cls, maps: list[FlowMap], bounds: list[Array]) -> Chosen:
        """That by these bounds, each -inf if there is none."""
        table = jnp.stack(bounds)
        return cls(maps, jnp.where(jnp.max(table) > -jnp.inf, jnp.argmax(table), len(maps)))

    def forward_density(self, points: Array) -> tuple[Array, Array]:
        """The images of points (K, d), and log |det| of the Jacobian at each (K,)."""
        return self._switch(lambda bayes: bayes.forward_density(points), points)

    def backward(self, points: Array) -> tuple[Array, Array]:
        """The preimages of points (K, d), and log |det| of the forward Jacobian there (K,)."""
        return self._switch(lambda bayes: bayes.backward(points), points)

    def _switch(self, go: Callable[[FlowMap], tuple[Array, Array]], points: Array) -> tuple[Array, Array]:
        ways = [functools.partial(go, bayes) for bayes in self.maps]
        stay = [lambda: (points, jnp.zeros_like(points[:, 0]))]
        result: tuple[Array, Array] = jax.lax.switch(self.which, ways + stay)
        return result
