"""The world of `pfbr-gaussian`: the mean of a normal distribution, whose posterior has a closed form.

x ~ N(0, I), y_t ~ N(x, 3^2 I), 100 observations. After t of them the posterior is N(s_t / (9 + t),
9 / (9 + t) I) with the sum s_t of the observations.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.core.records import record, replace, static_field
from credo.core.types import Array
from credo.flows import LinearGaussianTasks
from credo.flows.tasks import Filtered
from credo_papers.engine.purposes import SCORED
from credo_papers.pfbr.pfbr_problem import Problem

__all__ = [
    "LENGTH",
    "NOISE_VAR",
    "LaterTasks",
    "NormalTruth",
    "gaussian_problem",
    "later_tasks",
    "mean_posteriors",
    "simulate_means",
]

LENGTH = 100
NOISE_VAR = 9.0
SEGMENT = 10


class NormalTruth(NamedTuple):
    """Normal posteriors: mean (n, T, d) and cov (n, T, d, d)."""

    mean: Array
    cov: Array


def _state(z: Array, x: object) -> Array:
    return z


def gaussian_problem(dim: int) -> Problem:
    """Return the problem of any dimension."""
    return Problem(credo.Model(_state, credo.Normal(NOISE_VAR)), dim)


@record
class LaterTasks(LinearGaussianTasks):
    """Tasks of a few observations, whose prior is the posterior after some others, as published.

    Arguments:
        earlier: the largest number of those others.
    """

    earlier: int = static_field(default=LENGTH - SEGMENT)

    def begin(self, key: Array) -> Filtered:
        first, second = jax.random.split(key)
        count = jax.random.randint(first, (), 0, self.earlier + 1).astype(jnp.float32)
        return LinearGaussianTasks.begin(replace(self, initial_cov=NOISE_VAR / (NOISE_VAR + count)), second)


def later_tasks(dim: int, particles: int) -> LaterTasks:
    """Return the tasks to train on: 10 observations after 0 to 90 others.

    Arguments:
        dim: the dimension.
        particles: the number of particles.
    """
    eye = jnp.eye(dim, dtype=jnp.float32)
    return LaterTasks(eye, 0.0, eye, NOISE_VAR, length=SEGMENT, particles=particles)


def simulate_means(
    dim: int, seed: int, count: int, length: int = LENGTH, purpose: int = SCORED
) -> np.ndarray:
    """Return observations (count, length, dim) of as many unknown means.

    Arguments:
        dim: the dimension.
        seed: the seed of the random numbers.
        count: how many sequences.
        length: T.
        purpose: `SCORED` or `TUNING`.
    """
    rng = np.random.default_rng([seed, purpose, dim])
    means = rng.normal(size=(count, 1, dim))
    noisy: np.ndarray = means + NOISE_VAR**0.5 * rng.normal(size=(count, length, dim))
    return noisy.astype(np.float32)


def mean_posteriors(observations: np.ndarray) -> NormalTruth:
    """Return the posterior after every observation.

    Arguments:
        observations: (n, T, d).
    """
    count, length, dim = observations.shape
    total = NOISE_VAR + np.arange(1, length + 1)
    mean = np.cumsum(observations, axis=1, dtype=np.float64) / total[:, None]
    cov = (NOISE_VAR / total)[:, None, None] * np.eye(dim)
    wide = np.tile(cov, (count, 1, 1, 1))
    return NormalTruth(jnp.asarray(mean, jnp.float32), jnp.asarray(wide, jnp.float32))
