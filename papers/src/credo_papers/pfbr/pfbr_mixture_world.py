"""The world of `pfbr-mixture`: two unknowns, of which one is confounded, and a posterior with two modes.

x ~ N(0, I) in the plane, y ~ 1/2 N(x1, 1) + 1/2 N(x1 + x2, 1). The published latent is (-1, 2), in training
and test; 30 observations, about half of which are of each component, in random order. (1, -2) explains them
equally well. The harder test draws the latent from the prior.

The posterior is known on a grid, to about 1e-4 nats.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.beliefs import ValuesSource
from credo.core.types import Array
from credo.flows import FlowFilter, StaticTasks
from credo_papers.engine.purposes import SCORED
from credo_papers.pfbr.pfbr_problem import Problem

__all__ = [
    "LATENT",
    "LENGTH",
    "GridTruth",
    "grid_density",
    "grid_posteriors",
    "mixture_problem",
    "mixture_tasks",
    "simulate_mixtures",
]

LATENT = (-1.0, 2.0)
LENGTH = 30
EDGE = 5.0
NODES = 200

LATENTS = 10_000
"""The number of latents of the prior that are trained on."""


class GridTruth(NamedTuple):
    """Posteriors on a grid.

    Attributes:
        draws: (n, T, S, 2).
        exact: further draws, as many as there are particles (n, T, N, 2).
        surprise: the mean of -log p over `draws` (n, T): the entropy with the draws' own error.
        entropy: in nats (n, T).
        upper: P(x2 > 0) (n, T).
        normal: the cross-entropy of the normal distribution with the same moments (n, T).
    """

    draws: Array
    exact: Array
    surprise: Array
    entropy: Array
    upper: Array
    normal: Array


def log_mixture(means: Array, y: Array) -> Array:
    """log p(y | x1, x1 + x2): the likelihood, in which eta is both means."""
    logs = jax.nn.logsumexp(-0.5 * (y - means) ** 2)
    log_density: Array = logs - np.log(2.0) - 0.5 * np.log(2.0 * np.pi)
    return log_density


def draw_mixture(means: Array, key: Array) -> Array:
    """One observation of the mixture."""
    first, second = jax.random.split(key)
    mean = jnp.where(jax.random.bernoulli(first), means[1], means[0])
    return mean + jax.random.normal(second, (), means.dtype)


def _means(z: Array, x: object) -> Array:
    return jnp.stack([z[0], z[0] + z[1]])


def mixture_problem() -> Problem:
    """Return the problem."""
    model = credo.Model(_means, credo.Likelihood(log_mixture, sample=draw_mixture))
    return Problem(model, 2, shipped="two-modes")


def mixture_tasks(learner: FlowFilter) -> StaticTasks:
    """Return the tasks to train on: half of them on the published latent, half on latents of the prior.

    The prior set of an update is what the operator made of the one before.

    Arguments:
        learner: the `credo.pfbr` learner to train for.
    """
    latents = jax.random.normal(jax.random.key(0), (LATENTS, 2))
    published = jnp.broadcast_to(jnp.asarray(LATENT, latents.dtype), latents.shape)
    truth = ValuesSource(jnp.concatenate([latents, published]))
    return StaticTasks(
        learner,
        learner.init(jnp.zeros(2)),
        length=LENGTH,
        targets=256,
        truth=truth,
        bandwidth=0.35,
        follow=True,
    )


def simulate_mixtures(seed: int, count: int, unseen: bool, purpose: int = SCORED) -> np.ndarray:
    """Return observations (count, 30).

    Arguments:
        seed: the seed of the random numbers.
        count: how many sequences.
        unseen: whether each sequence has a latent of its own, drawn from the prior.
        purpose: `SCORED` or `TUNING`.
    """
    rng = np.random.default_rng([seed, purpose, int(unseen)])
    latent = rng.normal(size=(count, 2)) if unseen else np.tile(LATENT, (count, 1))
    second = rng.uniform(size=(count, LENGTH)) < 0.5
    means = latent[:, :1] + second * latent[:, 1:]
    return (means + rng.normal(size=(count, LENGTH))).astype(np.float32)


def _grid() -> tuple[np.ndarray, float]:
    """The middles of the cells (NODES^2, 2), and the width of a cell."""
    width = 2.0 * EDGE / NODES
    line = -EDGE + width * (np.arange(NODES) + 0.5)
    return np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2), width


def grid_density(observations: np.ndarray) -> np.ndarray:
    """Return the posterior probability of every cell after each observation: (T, NODES, NODES), x1 first.

    Arguments:
        observations: of one sequence (T,).
    """
    points, _ = _grid()
    first = points[:, 0]
    second = points.sum(axis=1)
    y = np.asarray(observations, np.float64)[:, None]
    logs = np.logaddexp(-0.5 * (y - first) ** 2, -0.5 * (y - second) ** 2)
    total = np.cumsum(logs, axis=0) - 0.5 * (points**2).sum(axis=1)
    density = np.exp(total - total.max(axis=1, keepdims=True))
    probability: np.ndarray = density / density.sum(axis=1, keepdims=True)
    return probability.reshape(-1, NODES, NODES)


def grid_posteriors(observations: np.ndarray, seed: int, draws: int, count: int) -> GridTruth:
    """Return the posteriors of all sequences.

    Arguments:
        observations: (n, T).
        seed: the seed of the draws.
        draws: how many of each posterior.
        count: the number N of further draws.
    """
    points, width = _grid()
    rng = np.random.default_rng([seed, 7])
    parts = [_of_one(sequence, points, width, rng, draws, count) for sequence in observations]
    stacked = (jnp.asarray(np.stack(part), jnp.float32) for part in zip(*parts, strict=True))
    return GridTruth(*stacked)


def _of_one(
    sequence: np.ndarray, points: np.ndarray, width: float, rng: np.random.Generator, draws: int, count: int
) -> tuple[np.ndarray, ...]:
    cells = grid_density(sequence).reshape(len(sequence), -1)
    entropy = -np.sum(cells * np.log(np.maximum(cells, 1e-300)), axis=1) + 2.0 * np.log(width)
    mean = cells @ points
    second = np.einsum("tg,gi,gj->tij", cells, points, points, optimize=True)
    cov = second - mean[:, :, None] * mean[:, None, :]
    normal = np.log(2.0 * np.pi * np.e) + 0.5 * np.linalg.slogdet(cov)[1]
    values = []
    surprise = []
    for probability in cells:
        which = np.searchsorted(np.cumsum(probability), rng.uniform(size=draws + count))
        which = np.minimum(which, len(points) - 1)
        values.append(points[which] + width * (rng.uniform(size=(draws + count, 2)) - 0.5))
        surprise.append(2.0 * np.log(width) - np.log(probability[which[:draws]]).mean())
    drawn = np.stack(values)
    upper = cells @ (points[:, 1] > 0)
    return drawn[:, :draws], drawn[:, draws:], np.array(surprise), entropy, upper, normal
