"""Methods to compare with: a refitted Laplace approximation, and a classifier that never learns."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.types import Array
from credo_papers.pfbr.pfbr_logistic_world import FEATURES, Tasks

__all__ = ["STANDARD", "Classified", "Prior", "fit", "judge_static", "refits", "static_weights"]

NEWTON = 8
"""Newton steps of a fit, which starts where the fit before ended. A step that leads up is shortened."""


class Prior(NamedTuple):
    """The prior of the weights, N(mean, diag(var)).

    Attributes:
        mean, var: (50,).
    """

    mean: np.ndarray
    var: np.ndarray


STANDARD = Prior(np.zeros(FEATURES), np.ones(FEATURES))
"""The prior of the publication."""


class Classified(NamedTuple):
    """The classification of batches before their labels were learned.

    Attributes:
        right: the share of right predictions (n, T), NaN if a batch has no labels.
        loss: the mean log loss (n, T).
    """

    right: np.ndarray
    loss: np.ndarray


@functools.partial(jax.jit, static_argnames="steps")
def fit(weights: Array, x: Array, y: Array, mean: Array, var: Array, steps: int = NEWTON) -> Array:
    """Return the mode (50,) of the posterior from rows (M, 50); labels that are NaN are left out.

    Arguments:
        weights: where the search begins.
        x, y: the rows (M, 50) and their classes (M,).
        mean, var: the mean and the variances of the prior.
        steps: of Newton's method.
    """
    there = ~jnp.isnan(y)
    label = jnp.where(there, y, 0.0)

    def precision(weights: Array) -> Array:
        chance = jax.nn.sigmoid(x @ weights)
        return jnp.diag(1.0 / var) + x.T @ (x * jnp.where(there, chance * (1.0 - chance), 0.0)[:, None])

    def height(weights: Array) -> Array:
        logits = x @ weights
        losses = jnp.where(there, jax.nn.softplus(logits) - label * logits, 0.0)
        return jnp.sum(losses) + 0.5 * jnp.sum((weights - mean) ** 2 / var)

    def step(weights: Array, _: None) -> tuple[Array, None]:
        errors = jnp.where(there, jax.nn.sigmoid(x @ weights) - label, 0.0)
        move = jnp.linalg.solve(precision(weights), (weights - mean) / var + x.T @ errors)
        tries = weights[None, :] - jnp.array([1.0, 0.5, 0.25, 0.1, 0.0])[:, None] * move[None, :]
        return tries[jnp.argmin(jax.vmap(height)(tries))], None

    mode, _ = jax.lax.scan(step, weights, None, length=steps)
    return mode


@jax.jit
def _path(x: Array, y: Array, mean: Array, var: Array) -> Array:
    """The modes before each batch of a task (T, 50)."""
    length = x.shape[0]
    rows = x.reshape(-1, FEATURES)

    def body(weights: Array, number: Array) -> tuple[Array, Array]:
        seen = jnp.arange(length)[:, None] < number
        mode = fit(weights, rows, jnp.where(seen, y, jnp.nan).reshape(-1), mean, var)
        return mode, mode

    return jax.lax.scan(body, mean, jnp.arange(length))[1]


def refits(tasks: Tasks, prior: Prior = STANDARD) -> Classified:
    """Return how well a fit of all labels before each batch classifies it.

    The prediction at the mode is that of the Laplace approximation, whose forecast is above one half exactly
    where that at the mode is. The loss is that at the mode, too.

    Arguments:
        tasks: the streams.
        prior: the prior of the weights.
    """
    mean, var = (jnp.asarray(part, float) for part in prior)
    rows = tuple(jnp.asarray(part, float) for part in tasks)
    modes = jax.lax.map(lambda task: _path(*task, mean, var), rows)
    return _classify(np.asarray(modes), tasks)


def static_weights(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the mode of the posterior from all rows at once.

    Arguments:
        x: (M, 50).
        y: (M,).
    """
    mean, var = (jnp.asarray(part, float) for part in STANDARD)
    return np.asarray(fit(mean, jnp.asarray(x, float), jnp.asarray(y, float), mean, var))


def judge_static(weights: np.ndarray, tasks: Tasks) -> Classified:
    """Return how well weights (50,) that do not learn classify."""
    return _classify(np.broadcast_to(weights, (*tasks.y.shape[:2], FEATURES)), tasks)


def _classify(weights: np.ndarray, tasks: Tasks) -> Classified:
    logits = np.einsum("ntbd,ntd->ntb", tasks.x, weights)
    there = ~np.isnan(tasks.y)
    # signed such that a positive logit is right; a logit of 0 stands for class 0
    signed = np.where(tasks.y > 0.5, logits, -logits)
    right = there & ((logits > 0) == (tasks.y > 0.5))
    loss = np.where(there, np.logaddexp(0.0, -signed), 0.0)
    with np.errstate(invalid="ignore"):
        return Classified(*(part.sum(axis=2) / there.sum(axis=2) for part in (right, loss)))
