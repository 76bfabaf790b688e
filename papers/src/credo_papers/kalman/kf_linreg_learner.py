"""The learner of `kf-linreg`, row by row, and what it must agree with: ridge regression on all rows."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.beliefs import Gaussian
from credo.core.types import Array
from credo.learners import RecursiveLearner
from credo_papers.kalman.kf_linreg_plan import ALPHA
from credo_papers.kalman.kf_linreg_world import BETA

__all__ = ["Learned", "batch_evidence", "learn", "make_learner", "ridge"]


def ridge(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the ridge estimates (T, 2) on the first 1, 2, ..., T rows, each from its own normal equations.

    Arguments:
        x, y: rows (T, 2) and targets (T,).
    """
    gram = np.cumsum(x[:, :, None] * x[:, None, :], axis=0) + BETA / ALPHA * np.eye(x.shape[1])
    return np.linalg.solve(gram, np.cumsum(x * y[:, None], axis=0)[..., None])[..., 0]


def batch_evidence(x: np.ndarray, y: np.ndarray) -> float:
    """Return log N(y | 0, alpha X X' + beta I), from the T x T covariance.

    Arguments:
        x, y: rows (T, 2) and targets (T,).
    """
    cov = ALPHA * x @ x.T + BETA * np.eye(y.size)
    square = y @ np.linalg.solve(cov, y)
    return float(-0.5 * (square + np.linalg.slogdet(cov)[1] + y.size * np.log(2 * np.pi)))


def _predict(weights: Array, x: Array) -> Array:
    return weights @ x


def make_learner() -> RecursiveLearner:
    """Return the Kalman filter of the regression."""
    learner: RecursiveLearner = credo.extended_kalman(credo.Model(_predict, credo.Normal(BETA)))
    return learner


class Learned(NamedTuple):
    """The trace of a pass over T rows.

    Attributes:
        mean, sd: of the weights after each row (T, 2).
        log_evidence: of each row (T,).
        forecast, var: the mean and the variance of each row's forecast, before the row is seen (T,).
    """

    mean: Array
    sd: Array
    log_evidence: Array
    forecast: Array
    var: Array


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, None, 0, 0))
def learn(learner: RecursiveLearner, prior: Gaussian, xs: Array, ys: Array) -> Learned:
    """Forecast each row, then learn it.

    Arguments:
        learner: the filter.
        prior: the belief before the first row.
        xs, ys: rows (T, 2) and targets (T,).
    """

    def body(belief: Gaussian, row: tuple[Array, Array]) -> tuple[Gaussian, Learned]:
        forecast = learner.forecast(learner.predict(belief), row[0])
        belief, info = learner.step(belief, *row)
        said = (jnp.reshape(part, ()) for part in (forecast.mean, forecast.var))
        return belief, Learned(belief.mean, belief.sd, info.log_evidence, *said)

    trace: Learned = jax.lax.scan(body, prior, (xs, ys))[1]
    return trace
