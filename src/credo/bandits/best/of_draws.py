"""The probability that an arm is best, from joint draws or from draws of each arm by itself."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.types import Array
from credo.linalg.normals import standard_normals

__all__ = ["best_of_draws", "best_of_separate_draws", "joint_normals"]

_TIE_ORDER = 8
"""Nodes that share ties of up to 16 arms exactly."""


def best_of_draws(values: Array, log_weights: Array | None = None, allowed: Array | None = None) -> Array:
    """The weighted share (K,) of joint draws (M, K) in which each arm is the largest; ties share equally.

    Log weights (M,) sum to one; None means equal weights. Exact for the distribution on these M points;
    derivatives are 0.
    """
    usable = values if allowed is None else jnp.where(allowed[None], values, -jnp.inf)
    best = usable == jnp.max(usable, axis=1, keepdims=True)
    if allowed is not None:
        best = best & allowed[None]
    tied = jnp.maximum(jnp.sum(best, axis=1, keepdims=True), 1)
    shares = best.astype(values.dtype) / tied.astype(values.dtype)
    if log_weights is None:
        return jnp.mean(shares, axis=0)
    return jnp.exp(log_weights) @ shares


def best_of_separate_draws(values: Array, log_weights: Array, allowed: Array | None = None) -> Array:
    """The probability (K,) that each arm is the largest, where arm a is one of the points `values[a]` (K, M).

    Each row of the log weights (K, M) sums to one. A uniform s of its own breaks the ties of a point, so that

        P(a is best) = sum_m w_am integral_0^1 prod_{b != a} (P(b < x_am) + s P(b = x_am)) ds,

    which is exact for ties of up to 16 arms. The cost is K^2 M log M.
    """
    arms, points = values.shape[0], values.reshape(-1)
    order = jnp.argsort(values, axis=1)
    ranked = jnp.take_along_axis(values, order, axis=1)
    weights = jnp.exp(log_weights)
    sums = jnp.cumsum(jnp.take_along_axis(weights, order, axis=1), axis=1)
    sums = jnp.pad(sums / sums[:, -1:], ((0, 0), (1, 0)))

    def below(row: Array, running: Array, side: str) -> Array:
        return running[jnp.searchsorted(row, points, side=side)]

    less = jax.vmap(lambda row, running: below(row, running, "left"))(ranked, sums)
    upto = jax.vmap(lambda row, running: below(row, running, "right"))(ranked, sums)
    nodes, shares = np.polynomial.legendre.leggauss(_TIE_ORDER)
    place = jnp.asarray(0.5 + 0.5 * nodes, values.dtype)[:, None, None]
    chance = less[None] + place * (upto - less)[None]  # (nodes, K, K M)
    others = jnp.ones(arms, bool) if allowed is None else allowed
    own = (jnp.arange(points.shape[0]) // values.shape[1])[None] == jnp.arange(arms)[:, None]
    won = jnp.prod(jnp.where((own | ~others[:, None])[None], 1.0, chance), axis=1)
    wins = jnp.asarray(0.5 * shares, values.dtype) @ won
    result = jnp.where(others, jnp.sum((wins * weights.reshape(-1)).reshape(values.shape), axis=1), 0.0)
    total = jnp.sum(result)
    return result / jnp.where(total > 0, total, 1.0)


def joint_normals(location: Array, root: Array, key: Array, draws: int) -> Array:
    """Draws (M, K) of N(location, root root') that are spread evenly over the distribution.

    A randomised lattice (Richtmyer's, with a random shift; Cranley & Patterson 1976) makes shares of draws
    vary less than independent draws do.
    """
    normals = standard_normals(key, draws, location.shape[0], location.dtype, quasi=True)
    return location[None] + normals @ root.T
