"""The world of `pfbr-gaussian`: the mean of a normal law, whose posterior has a closed form.

x ~ N(0, I), y_t ~ N(x, 3^2 I), 100 observations. After t of them the posterior is N(s_t / (9 + t),
9 / (9 + t) I) with the sum s_t of the observations.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

import credo
from credo.core.types import Array
from credo.experiments.engine.purposes import SCORED
from credo.experiments.pfbr.pfbr_problem import Problem

__all__ = ["LENGTH", "NOISE_VAR", "NormalTruth", "gaussian_problem", "mean_posteriors", "simulate_means"]

LENGTH, NOISE_VAR = 100, 9.0


class NormalTruth(NamedTuple):
    """Normal posteriors: mean (n, T, d) and cov (n, T, d, d)."""

    mean: Array
    cov: Array


def _state(z: Array, x: object) -> Array:
    return z


def gaussian_problem(dim: int) -> Problem:
    """Return the problem of any dimension."""
    return Problem(credo.Model(_state, credo.Normal(NOISE_VAR)), dim)


def simulate_means(
    dim: int, seed: int, count: int, length: int = LENGTH, purpose: int = SCORED
) -> np.ndarray:
    """Return observations (count, length, dim) of as many unknown means.

    Arguments:
        dim: the dimension.
        seed: of the random numbers.
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
