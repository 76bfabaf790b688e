"""Distances between particles, and how far a temperature rises."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.particles import MirrorDescent, effective_size
from credo.particles.kernel_bayes import squared_distances
from credo.particles.tempering import Stage, next_temperature, temper


def test_squared_distances_are_exact() -> None:
    assert squared_distances(jnp.zeros((1, 2)), jnp.array([[3.0, 4.0]])).tolist() == [[25.0]]


def test_the_temperature_rises_to_the_end_where_all_particles_are_as_likely() -> None:
    equal = jnp.full(4, -jnp.log(4.0))
    assert float(next_temperature(equal, jnp.zeros(4), jnp.asarray(0.5), jnp.asarray(2.0))) == 0.5


@pytest.mark.slow
def test_after_the_largest_number_of_temperatures_the_rest_of_the_likelihood_is_taken_in_at_once() -> None:
    values = jnp.linspace(-3.0, 3.0, 200)[:, None]
    logs = jnp.full(200, -math.log(200.0))

    def steep(places: jax.Array) -> jax.Array:
        return -50.0 * (places[:, 0] - 2.0) ** 2

    def still(key: jax.Array, places: jax.Array, target: Any) -> jax.Array:
        return places

    first, wanted = Stage.first(values, logs, steep(values)), jnp.asarray(150.0)
    stages = {}
    for most in (1, 2, 4, 30):
        program = jax.jit(lambda key, most=most: temper(key, first, steep, still, wanted, "systematic", most))
        stages[most] = program(jax.random.key(0))
    for most in (1, 2, 4):
        assert int(stages[most].number) == most and float(stages[most].temperature) == 1.0
    assert 4 < int(stages[30].number) < 30
    np.testing.assert_allclose(stages[1].log_evidence, jax.nn.logsumexp(logs + steep(values)), rtol=1e-12)


def test_a_step_of_mirror_descent_is_shortened_to_the_effective_size_that_is_wanted() -> None:
    model = credo.Model(lambda z, x: z, credo.Normal(1.0))
    gap, first = 40.0 * jax.random.normal(jax.random.key(0), (50,)), jnp.int32(0)
    for threshold, rate in ((0.2, 0.5), (0.5, 0.5), (0.2, 1e-4)):
        learner = MirrorDescent(model, 50, total=10, rate=rate, threshold=threshold)
        size = learner._size(first, first, gap)
        if rate == 0.5:
            assert size < rate
            np.testing.assert_allclose(effective_size(size * gap), threshold * 50, rtol=1e-3)
        else:
            assert size == rate and effective_size(size * gap) > threshold * 50
    whole = MirrorDescent(model, 50, iterations=4)
    sizes = [float(whole._size(jnp.int32(step), first, gap)) for step in range(4)]
    np.testing.assert_allclose(sizes, [1 / 4, 1 / 3, 1 / 2, 1.0])
