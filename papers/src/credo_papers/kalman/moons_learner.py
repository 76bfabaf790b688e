"""The learner of `moons`: the extended Kalman filter of a small network, along many streams at once."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

import credo
from credo.beliefs import Gaussian
from credo.core.types import Array, PyTree
from credo_papers.kalman.moons_plan import EVERY
from credo_papers.kalman.moons_world import NET, Streams

__all__ = ["LEARNER", "Scores", "score", "surface", "tune"]

LEARNER = credo.extended_kalman(credo.Model(NET, credo.Bernoulli()))


class Scores(NamedTuple):
    """The measurements at every fifth label, with leading axes of settings, streams and times.

    Attributes:
        log_evidence: the log evidence of each of the five labels before (5,).
        accuracy, nll: on the test points, the latter in nats.
        belief: the belief.
    """

    log_evidence: Array
    accuracy: Array
    nll: Array
    belief: Gaussian


def _prior(setting: Array, params: PyTree) -> Gaussian:
    """The belief before any label; a setting is a prior variance and a factor on the initial weights."""
    belief: Gaussian = LEARNER.init(jax.tree.map(lambda leaf: setting[1] * leaf, params), var=setting[0])
    return belief


@jax.jit
def tune(grid: Array, streams: Streams) -> Array:
    """Return the mean log evidence of a label for each setting and stream (settings, streams).

    Arguments:
        grid: the settings (settings, 2).
        streams: several streams.
    """

    def one(setting: Array, stream: Streams) -> Array:
        belief = _prior(setting, stream.params)
        return jnp.mean(credo.run(LEARNER, belief, stream.x, stream.y)[1].log_evidence)

    return jax.vmap(lambda setting: jax.vmap(functools.partial(one, setting))(streams))(grid)


@jax.jit
def score(settings: Array, streams: Streams, test: tuple[Array, Array]) -> Scores:
    """Return the scores of all settings on all streams.

    Arguments:
        settings: (settings, 2).
        streams: several streams.
        test: points (N, 2) and labels (N,).
    """
    test_x, test_y = test

    def chunk(belief: Gaussian, rows: tuple[Array, Array]) -> tuple[Gaussian, Scores]:
        belief, trace = credo.run(LEARNER, belief, *rows)
        log_prob = LEARNER.forecast_rows(belief, test_x).log_prob(test_y)
        hits = jnp.mean(log_prob > math.log(0.5))
        nll = -jnp.mean(log_prob)
        return belief, Scores(trace.log_evidence, hits, nll, belief)

    def one(setting: Array, stream: Streams) -> Scores:
        chunks = (jnp.reshape(stream.x, (-1, EVERY, 2)), jnp.reshape(stream.y, (-1, EVERY)))
        scores: Scores = jax.lax.scan(chunk, _prior(setting, stream.params), chunks)[1]
        return scores

    return jax.vmap(lambda setting: jax.vmap(functools.partial(one, setting))(streams))(settings)


@jax.jit
def surface(beliefs: Gaussian, points: Array) -> tuple[Array, Array]:
    """Return the predictive probability of label 1 at each point, and the sd of its logit, each (B, N).

    Arguments:
        beliefs: beliefs with a leading axis B.
        points: (N, 2).
    """

    def one(belief: Gaussian) -> tuple[Array, Array]:
        def spread(point: Array) -> Array:
            _, rows = LEARNER.model.jacobian(belief.mean, belief.unravel, point)
            return jnp.sqrt(belief.cov.push(rows)[0, 0])

        return LEARNER.forecast_rows(belief, points).probs[:, 1], jax.lax.map(spread, points, batch_size=16)

    surfaces: tuple[Array, Array] = jax.lax.map(one, beliefs)
    return surfaces
