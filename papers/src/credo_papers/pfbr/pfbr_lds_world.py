"""The world of `pfbr-lds`: a linear dynamical system whose posterior a Kalman filter knows.

x_0 ~ N(0, I)                      not observed
x_t = A x_{t-1} + N(0, I)
y_t = B x_t + N(0, I)              25 observations

A and B are the published ones, see `credo.datasets.linear_system`.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.beliefs import Gaussian
from credo.core.types import Array
from credo.datasets import linear_system
from credo.learners.methods.filters import Observation
from credo_papers.engine.purposes import SCORED
from credo_papers.pfbr.pfbr_problem import Problem

__all__ = ["LENGTH", "LinearTruth", "Sequences", "exact_posteriors", "linear_problem", "simulate_systems"]

LENGTH = 25


class Sequences(NamedTuple):
    """Sequences of a linear dynamical system.

    Attributes:
        states: (n, T, d).
        observations: (n, T, d).
    """

    states: np.ndarray
    observations: np.ndarray


class LinearTruth(NamedTuple):
    """Posteriors of every step, twice.

    Attributes:
        mean, cov: the exact ones (n, T, d) and (n, T, d, d).
        old_mean, old_cov: those of a filter that is not set back to the prior where a sequence begins, as in
            the published evaluation.
        evidence: log p(y_t | past) (n, T).
    """

    mean: Array
    cov: Array
    old_mean: Array
    old_cov: Array
    evidence: Array


def linear_problem(dim: int) -> Problem:
    """Return the problem of dimension 2 or 10."""
    transition, observation = linear_system(dim)
    model = credo.Model(Observation(jnp.asarray(observation)), credo.Normal(1.0))
    dynamics = credo.LinearGaussian(jnp.asarray(transition), 0.0, 1.0)
    return Problem(model, dim, dynamics, shipped=f"linear-{dim}")


def simulate_systems(dim: int, seed: int, count: int, purpose: int = SCORED) -> Sequences:
    """Return fresh sequences.

    Arguments:
        dim: 2 or 10.
        seed: the seed of the random numbers.
        count: how many.
        purpose: `SCORED` or `TUNING`.
    """
    transition, observation = linear_system(dim)
    rng = np.random.default_rng([seed, purpose, dim])
    state = rng.normal(size=(count, dim))
    states = []
    for _ in range(LENGTH):
        state = state @ transition.T + rng.normal(size=(count, dim))
        states.append(state)
    truth = np.stack(states, axis=1)
    noisy = truth @ observation.T + rng.normal(size=truth.shape)
    return Sequences(truth.astype(np.float32), noisy.astype(np.float32))


def exact_posteriors(dim: int, observations: np.ndarray) -> LinearTruth:
    """Return the posteriors of all sequences, in double precision.

    Arguments:
        dim: 2 or 10.
        observations: (n, T, d).
    """
    with jax.enable_x64(True):
        transition, observation = (np.asarray(matrix, np.float64) for matrix in linear_system(dim))
        learner = credo.kalman(transition, observation, 1.0, 1.0)
        prior = learner.init(jnp.zeros(dim), var=1.0)

        def step(belief: Gaussian, y: Array) -> tuple[Gaussian, tuple[Array, Array, Array]]:
            belief, info = learner.step(belief, None, y)
            return belief, (belief.mean, belief.cov.dense(), info.log_evidence)

        @jax.jit
        def filtered(ys: Array) -> tuple[Array, Array, Array]:
            return jax.lax.scan(step, prior, ys)[1]

        ys = np.asarray(observations, np.float64)
        mean, cov, evidence = jax.vmap(filtered)(ys)
        old_mean, old_cov, _ = filtered(ys.reshape(-1, dim))
        shape = ys.shape[:2]
        long = (old_mean.reshape(*shape, dim), old_cov.reshape(*shape, dim, dim))
        parts = [np.asarray(part, np.float32) for part in (mean, cov, *long, evidence)]
    return LinearTruth(*(jnp.asarray(part) for part in parts))
