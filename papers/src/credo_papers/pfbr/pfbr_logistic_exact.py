"""The exact posterior of a classifier's weights, by Hamiltonian Monte Carlo after every batch.

What a learner can reach at best, as far as it believes in the prior: chains begin at draws of the Laplace
approximation, in whose coordinates the posterior is about standard normal.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.types import Array
from credo.linalg.matrices import cholesky
from credo_papers.engine.plain_data import Arrays
from credo_papers.pfbr.pfbr_logistic_oracle import Classified, Prior, fit
from credo_papers.pfbr.pfbr_logistic_world import FEATURES, Tasks

__all__ = ["sample_posterior"]

# Chains for each batch, moves of each chain, and how many of the last places of a chain are draws.
CHAINS = 48
MOVES = 10
KEPT = 5

# Leapfrog steps of a move, and their size in units of the Laplace approximation.
LEAPS = 6
LEAP = 0.25


def sample_posterior(tasks: Tasks, prior: Prior, seed: int) -> Arrays:
    """Return the parts of `Classified` for draws of the posterior of all labels before each batch.

    Arguments:
        tasks: the streams.
        prior: the prior of the weights.
        seed: the seed of the chains.
    """
    mean, var = (jnp.asarray(part, float) for part in prior)
    x, y = (jnp.asarray(part, float) for part in tasks)
    keys = jax.random.split(jax.random.key(seed), x.shape[0])

    def one(row: tuple[Array, Array, Array]) -> Array:
        key, x, y = row
        return _chances(key, x, y, mean, var)

    program = jax.jit(functools.partial(jax.lax.map, one))
    chances = np.clip(np.asarray(program((keys, x, y))), 1e-6, 1.0 - 1e-6)
    there = ~np.isnan(tasks.y)
    eight = tasks.y > 0.5
    right = there & ((chances > 0.5) == eight)
    loss = np.where(there, -np.log(np.where(eight, chances, 1.0 - chances)), 0.0)
    return Classified(*(part.sum(axis=2) / there.sum(axis=2) for part in (right, loss)))._asdict()


def _chances(key: Array, x: Array, y: Array, mean: Array, var: Array) -> Array:
    """The chance of class 1 of each digit of a task (T, B), before the labels of its batch."""
    length = x.shape[0]
    rows = x.reshape(-1, FEATURES)

    def body(start: Array, number: Array) -> tuple[Array, Array]:
        seen = (jnp.arange(length)[:, None] < number) & ~jnp.isnan(y)
        labels = jnp.where(seen, y, jnp.nan).reshape(-1)
        mode = fit(start, rows, labels, mean, var)
        draws = _draws(jax.random.fold_in(key, number), rows, labels, mode, mean, var)
        return mode, jnp.mean(jax.nn.sigmoid(x[number] @ draws.T), axis=1)

    return jax.lax.scan(body, mean, jnp.arange(length))[1]


def _draws(key: Array, x: Array, y: Array, mode: Array, mean: Array, var: Array) -> Array:
    """Draws (KEPT CHAINS, 50) of the posterior from rows (M, 50); labels that are NaN are left out."""
    there = ~jnp.isnan(y)
    label = jnp.where(there, y, 0.0)
    share = jax.nn.sigmoid(x @ mode)
    precision = x.T @ (x * jnp.where(there, share * (1.0 - share), 0.0)[:, None]) + jnp.diag(1.0 / var)
    root = cholesky(precision)

    def place(units: Array) -> Array:
        return mode[None, :] + jax.scipy.linalg.solve_triangular(root.T, units.T, lower=False).T

    def heights(units: Array) -> Array:
        weights = place(units)
        logits = weights @ x.T
        losses = jnp.where(there[None, :], jax.nn.softplus(logits) - label[None, :] * logits, 0.0)
        return jnp.sum(losses, axis=1) + 0.5 * jnp.sum((weights - mean[None, :]) ** 2 / var[None, :], axis=1)

    slopes = jax.grad(lambda units: jnp.sum(heights(units)))

    def move(units: Array, key: Array) -> tuple[Array, Array]:
        first, second = jax.random.split(key)
        speed = jax.random.normal(first, units.shape, units.dtype)

        def leap(_: int, state: tuple[Array, Array]) -> tuple[Array, Array]:
            places, speeds = state
            places = places + LEAP * speeds
            return places, speeds - LEAP * slopes(places)

        begin = (units, speed - 0.5 * LEAP * slopes(units))
        places: Array
        places, speeds = jax.lax.fori_loop(0, LEAPS, leap, begin)
        speeds = speeds + 0.5 * LEAP * slopes(places)
        fall = heights(units) - heights(places) + 0.5 * jnp.sum(speed**2 - speeds**2, axis=1)
        accepted = jnp.log(jax.random.uniform(second, fall.shape, fall.dtype)) < fall
        units = jnp.where(accepted[:, None], places, units)
        return units, units

    first, second = jax.random.split(key)
    start = jax.random.normal(first, (CHAINS, FEATURES), x.dtype)
    _, path = jax.lax.scan(move, start, jax.random.split(second, MOVES))
    return place(path[-KEPT:].reshape(-1, FEATURES))
