"""The learner of `kf-tracking`: the Kalman filter, along one track."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

import credo
from credo.beliefs import Gaussian
from credo.core.types import Array
from credo.learners import RecursiveLearner
from credo_papers.kalman.kf_tracking_world import MOVE_VAR, NOISE_VAR, OBSERVATION, TRANSITION

__all__ = ["make_learner", "track"]


def make_learner() -> RecursiveLearner:
    """Return the Kalman filter of the world."""
    learner: RecursiveLearner = credo.kalman(TRANSITION, OBSERVATION, MOVE_VAR, NOISE_VAR)
    return learner


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, None, 0))
def track(learner: RecursiveLearner, prior: Gaussian, observations: Array) -> tuple[Array, Array]:
    """Return filtered means (15, 4) and covariances (15, 4, 4).

    There is no move before the first observation.

    Arguments:
        learner: the filter.
        prior: the belief before the first observation.
        observations: of one track (15, 2).
    """
    first, _ = learner.update(prior, None, observations[0])

    def body(belief: Gaussian, y: Array) -> tuple[Gaussian, tuple[Array, Array]]:
        belief, _ = learner.step(belief, None, y)
        return belief, (belief.mean, belief.cov.dense())

    _, (means, covs) = jax.lax.scan(body, first, observations[1:])
    return jnp.concatenate([first.mean[None], means]), jnp.concatenate([first.cov.dense()[None], covs])
