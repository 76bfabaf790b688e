"""What to compare with: a Laplace approximation that is fitted again, and a classifier that never learns."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.types import Array
from credo.experiments.pfbr.pfbr_logistic_world import FEATURES, Tasks

__all__ = ["refits", "static_right", "static_weights"]

NEWTON = 8
"""Newton steps of a fit, which starts where the fit before ended. A step that leads up is shortened."""


@functools.partial(jax.jit, static_argnames="steps")
def _fit(weights: Array, x: Array, y: Array, steps: int = NEWTON) -> tuple[Array, Array]:
    """The mode of the posterior from rows (M, 50) and its precision; labels that are NaN are left out."""
    there = ~jnp.isnan(y)
    label = jnp.where(there, y, 0.0)
    eye = jnp.eye(FEATURES, dtype=x.dtype)

    def precision(weights: Array) -> Array:
        chance = jax.nn.sigmoid(x @ weights)
        return eye + x.T @ (x * jnp.where(there, chance * (1.0 - chance), 0.0)[:, None])

    def height(weights: Array) -> Array:
        logits = x @ weights
        losses = jnp.where(there, jax.nn.softplus(logits) - label * logits, 0.0)
        return jnp.sum(losses) + 0.5 * weights @ weights

    def step(weights: Array, _: None) -> tuple[Array, None]:
        slope = weights + x.T @ jnp.where(there, jax.nn.sigmoid(x @ weights) - label, 0.0)
        move = jnp.linalg.solve(precision(weights), slope)
        tries = weights[None, :] - jnp.array([1.0, 0.5, 0.25, 0.1, 0.0])[:, None] * move[None, :]
        return tries[jnp.argmin(jax.vmap(height)(tries))], None

    mode, _ = jax.lax.scan(step, weights, None, length=steps)
    return mode, precision(mode)


@jax.jit
def _path(x: Array, y: Array) -> Array:
    """The modes before each batch of a task (T, 50)."""
    length = x.shape[0]
    rows = x.reshape(-1, FEATURES)

    def body(weights: Array, number: Array) -> tuple[Array, Array]:
        seen = jnp.arange(length)[:, None] < number
        mode, _ = _fit(weights, rows, jnp.where(seen, y, jnp.nan).reshape(-1))
        return mode, mode

    return jax.lax.scan(body, jnp.zeros(FEATURES, x.dtype), jnp.arange(length))[1]


def refits(tasks: Tasks) -> np.ndarray:
    """Return the share of right predictions (n, T) of a fit of all labels before each batch.

    The prediction at the mode is that of the Laplace approximation, whose forecast is above one half exactly
    where that at the mode is.

    Arguments:
        tasks: the streams.
    """
    modes = jax.lax.map(lambda task: _path(*task), tuple(jnp.asarray(part, float) for part in tasks))
    return _right(np.asarray(modes), tasks)


def static_weights(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the mode of the posterior from all rows at once.

    Arguments:
        x: (M, 50).
        y: (M,).
    """
    mode, _ = _fit(jnp.zeros(FEATURES), jnp.asarray(x, float), jnp.asarray(y, float))
    return np.asarray(mode)


def static_right(weights: np.ndarray, tasks: Tasks) -> np.ndarray:
    """Return the share of right predictions (n, T) of weights that do not learn."""
    return _right(np.broadcast_to(weights, (*tasks.y.shape[:2], FEATURES)), tasks)


def _right(weights: np.ndarray, tasks: Tasks) -> np.ndarray:
    logits = np.einsum("ntbd,ntd->ntb", tasks.x, weights)
    right = (logits > 0) == (tasks.y > 0.5)
    there = ~np.isnan(tasks.y)
    count = there.sum(axis=2)
    return np.where(count > 0, (right & there).sum(axis=2) / np.maximum(count, 1), np.nan)
