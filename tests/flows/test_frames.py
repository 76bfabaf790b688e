"""The coordinates in which a flow operator sees an observation, and what it is told there."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import pytest

from credo.core.types import Array
from credo.flows.frames import axis_features, embedding_inputs, posterior_frame, strength

RNG = np.random.default_rng(2)
VALUES = jnp.asarray(RNG.normal(size=(50, 3)) @ RNG.normal(size=(3, 3)) + 1.0)
WEIGHTS = RNG.dirichlet(np.full(50, 3.0))
LOGS = jnp.log(jnp.asarray(WEIGHTS))
LOOK, NOISE, Y = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, -1.0]]), np.diag([0.3, 0.7]), np.array([2.0, -1.0])


def normal(value: Array) -> Array:
    """The log-likelihood of a linear observation with normal noise."""
    gap = jnp.asarray(Y) - jnp.asarray(LOOK) @ value
    log_prob: Array = -0.5 * gap @ jnp.linalg.inv(jnp.asarray(NOISE)) @ gap
    return log_prob


def bent(value: Array) -> Array:
    return -2.0 * jnp.sum(jnp.log1p((value - 1.0) ** 2))


@pytest.mark.parametrize("iterations", [1, 3])
def test_the_posterior_of_a_linear_normal_observation_is_that_of_the_moments_of_the_set(
    iterations: int,
) -> None:
    frame = posterior_frame(VALUES, LOGS, normal, iterations)
    mean, cov = WEIGHTS @ np.asarray(VALUES), np.cov(VALUES.T, aweights=WEIGHTS)
    gain = cov @ LOOK.T @ np.linalg.inv(LOOK @ cov @ LOOK.T + NOISE)
    root, scales = np.asarray(frame.root), np.asarray(frame.scales)
    np.testing.assert_allclose(frame.mean, mean, atol=1e-10)
    np.testing.assert_allclose(root @ root.T, cov, atol=1e-10)
    np.testing.assert_allclose((root * scales**2) @ root.T, cov - gain @ LOOK @ cov, atol=1e-10)
    np.testing.assert_allclose(
        frame.outside(frame.target[None, :])[0], mean + gain @ (Y - LOOK @ mean), atol=1e-10
    )
    np.testing.assert_allclose(frame.units, frame.inside(VALUES), atol=1e-10)
    np.testing.assert_allclose(frame.outside(frame.units), VALUES, atol=1e-10)
    np.testing.assert_allclose(frame.bend, 0.0, atol=1e-9)  # of the gradient, which is straight
    assert np.all(np.diff(frame.precisions) <= 1e-12)  # the axis of which most is seen comes first


@pytest.mark.parametrize("log_likelihood", [normal, bent])
def test_features_are_the_moments_that_they_are_said_to_be(
    log_likelihood: Callable[[Array], Array],
) -> None:
    frame = posterior_frame(VALUES, LOGS, log_likelihood)
    logs = np.array([float(log_likelihood(value)) for value in VALUES])
    level, units = logs - WEIGHTS @ logs, np.asarray(frame.units)
    assert np.ptp(level) > 1.0
    found = np.split(np.asarray(axis_features(frame)), [3, 6, 9, 12, 15])
    seen = 1.0 + np.asarray(frame.precisions)
    expected = [
        np.log(seen),
        np.arcsinh(np.asarray(frame.shift) / np.sqrt(seen)),
        np.arcsinh(WEIGHTS @ units**3),
        np.arcsinh(WEIGHTS @ units**4 - 3.0),
        np.arcsinh(WEIGHTS @ (level[:, None] * (units**2 - 1.0))),
        [np.log1p(np.sqrt(WEIGHTS @ level**2))],
    ]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)
    inputs = np.asarray(embedding_inputs(frame))
    np.testing.assert_allclose(inputs[:, :3], units, atol=1e-12)
    np.testing.assert_allclose(np.sinh(inputs[:, 6]), level, atol=1e-10)
    amount = WEIGHTS @ level**2 + np.sum(seen - 1.0)
    np.testing.assert_allclose(strength(frame), amount / (1.0 + amount), rtol=1e-12)
