"""Distances between particles, and how far a temperature rises."""

from __future__ import annotations

import jax.numpy as jnp

from credo.particles.kernel_bayes import squared_distances
from credo.particles.tempering import next_temperature


def test_squared_distances_are_exact() -> None:
    assert squared_distances(jnp.zeros((1, 2)), jnp.array([[3.0, 4.0]])).tolist() == [[25.0]]


def test_the_temperature_rises_to_the_end_where_all_particles_are_as_likely() -> None:
    equal = jnp.full(4, -jnp.log(4.0))
    assert float(next_temperature(equal, jnp.zeros(4), jnp.asarray(0.5), jnp.asarray(2.0))) == 0.5
