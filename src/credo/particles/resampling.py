"""Resampling: equally weighted particles in place of weighted ones, without bias."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import jax
import jax.numpy as jnp

from credo.core.errors import require_choice
from credo.core.types import Array

__all__ = ["Resampling", "effective_size", "optimal_resample", "resample"]

Resampling: TypeAlias = Literal["systematic", "stratified", "residual", "multinomial"]
"""The way in which the numbers of offspring are drawn."""


def effective_size(log_weights: Array) -> Array:
    """The effective sample size 1 / sum w^2 of log weights (N,) with any total (Kong 1992).

    Example:
        >>> float(effective_size(jnp.log(jnp.array([0.5, 0.5, 0.0]))))
        2.0
    """
    weights = jax.nn.softmax(log_weights)
    return 1.0 / jnp.sum(weights**2)


def resample(key: Array, log_weights: Array, count: int, method: Resampling = "systematic") -> Array:
    """Draw the ancestors of `count` equally weighted particles, so that E[offspring of n] = count w_n.

    - "systematic": one uniform number u, and the points (u + i) / count. The least noise as a rule.
    - "stratified": one uniform number in each of `count` strata (Kitagawa 1996).
    - "residual": floor(count w_n) offspring for certain, and the rest by systematic points on what remains
      (Liu & Chen 1998, with systematic points).
    - "multinomial": independent draws (Gordon, Salmond & Smith 1993).

    Arguments:
        key: the key of the draws.
        log_weights: log weights (N,) with any total; -inf has no offspring.
        count: how many ancestors are drawn.
        method: one of the four.

    Returns:
        Indices (count,), in increasing order but for "residual".

    Raises:
        CredoError: there is no such method.

    Cost: N + count log N.

    Example:
        >>> resample(jax.random.key(0), jnp.log(jnp.array([0.5, 0.0, 0.5])), 4).tolist()
        [0, 0, 2, 2]
    """
    require_choice("resampling", method, get_args(Resampling))
    weights = jax.nn.softmax(log_weights)
    if method == "residual":
        sure = jnp.floor(count * weights + _rounding(weights))
        rest = count - jnp.sum(sure)
        spare = jnp.maximum(count * weights - sure, 0.0)
        # The places after the certain offspring are those of the systematic points, in the same order.
        ends = jnp.cumsum(sure)
        place = jnp.arange(count, dtype=weights.dtype)
        certain = jnp.searchsorted(ends, place, side="right")
        total = jnp.sum(spare)
        shares = jnp.where(total > 0, spare / jnp.where(total > 0, total, 1.0), weights)
        shift = jax.random.uniform(key, (), weights.dtype)
        points = (place - ends[-1] + shift) / jnp.maximum(rest, 1.0)
        drawn = _invert(shares, jnp.clip(points, 0.0, 1.0))
        return jnp.where(place < ends[-1], jnp.minimum(certain, weights.shape[0] - 1), drawn)
    if method == "multinomial":
        # Sorted uniform numbers, from the spacings of exponential ones.
        steps = jnp.cumsum(jax.random.exponential(key, (count + 1,), weights.dtype))
        points = steps[:-1] / steps[-1]
    else:
        shape = () if method == "systematic" else (count,)
        shifts = jax.random.uniform(key, shape, weights.dtype)
        points = (jnp.arange(count, dtype=weights.dtype) + shifts) / count
    return _invert(weights, points)


def optimal_resample(key: Array, log_weights: Array, count: int) -> tuple[Array, Array]:
    """Keep `count` of N particles with new weights, without bias and with the least added variance.

    With c such that sum_n min(w_n / c, 1) = count, particles with w_n >= c are kept as they are, and of the
    others, by stratified draws in their order, so many that `count` are left, each with weight c. Source:
    Fearnhead & Clifford 2003 (JRSS B 65(4), section 3.2).

    Arguments:
        key: the key of the draws.
        log_weights: log weights (N,) with any total.
        count: how many are kept, at most N.

    Returns:
        Indices (count,), each at most once, and log weights (count,) whose exponentials sum to one.

    Cost: N log N.

    Example:
        >>> indices, log_weights = optimal_resample(jax.random.key(0), jnp.log(jnp.array([0.6, 0.3, 0.1])), 2)
        >>> int(indices[0]), round(float(jnp.exp(log_weights[0])), 6)
        (0, 0.6)
    """
    weights = jax.nn.softmax(log_weights)
    size = weights.shape[0]
    if count >= size:
        return jnp.arange(size), jnp.log(weights)
    order = jnp.argsort(-weights)
    ranked = weights[order]
    # With the k heaviest kept, c = (total of the others) / (count - k), for the first k at which w_k < c.
    tails = 1.0 - jnp.cumsum(ranked) + ranked
    tails = jnp.maximum(tails, 0.0)[:count]
    levels = tails / (count - jnp.arange(count, dtype=weights.dtype))
    kept = jnp.argmax(ranked[:count] <= levels * (1 + 8 * jnp.finfo(weights.dtype).eps))
    level = levels[kept]
    sure = jnp.zeros(size, bool).at[order].set(jnp.arange(size) < kept)
    light = jnp.where(sure, 0.0, weights)
    number = (count - kept).astype(weights.dtype)
    shift = jax.random.uniform(key, (), weights.dtype)
    # A light particle is kept where a point (shift + i) c falls into its stretch of the cumulated weights.
    ends = jnp.cumsum(light) / jnp.where(level > 0, level, 1.0)
    starts = jnp.concatenate([jnp.zeros(1, ends.dtype), ends[:-1]])
    hits = jnp.ceil(jnp.minimum(ends, number) - shift) - jnp.ceil(jnp.minimum(starts, number) - shift)
    chosen = sure | ((hits > 0) & (light > 0))
    # Rounding can miss or add one; the heaviest light particles make the number right.
    rank = jnp.where(sure, 2.0, jnp.where(chosen, 1.0, 0.0)) + weights
    indices = jnp.sort(jnp.argsort(-rank)[:count])
    # c is 0 where fewer than `count` particles have any weight; the others are kept without.
    log_level = jnp.where(level > 0, jnp.log(jnp.where(level > 0, level, 1.0)), -jnp.inf)
    kept_logs = jnp.where(sure[indices], jnp.log(weights[indices]), log_level)
    return indices, jax.nn.log_softmax(kept_logs)


def _rounding(weights: Array) -> Array:
    """The amount by which a product with a weight may fall short of a whole number."""
    return jnp.asarray(weights.shape[0] * jnp.finfo(weights.dtype).eps, weights.dtype)


def _invert(weights: Array, points: Array) -> Array:
    """The particle in whose stretch of the cumulated weights each point in [0, 1] falls."""
    ends = jnp.cumsum(weights)
    indices = jnp.searchsorted(ends, points * ends[-1], side="right")
    # A point that rounding puts at the very end belongs to the last particle that has any weight.
    last = weights.shape[0] - 1 - jnp.argmax(weights[::-1] > 0)
    return jnp.minimum(indices, last.astype(indices.dtype))
