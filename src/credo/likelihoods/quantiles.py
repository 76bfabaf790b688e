"""Quantiles by bisection on a distribution function."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.scipy.special as jss

from credo.core.errors import CredoError
from credo.core.types import Array, ArrayLike

__all__ = ["bisect", "search_quantile", "student_cdf"]


def bisect(function: Callable[[Array], Array], target: Array, low: float, high: float) -> Array:
    """The point at which an increasing function reaches `target`, elementwise, to the last bits."""
    target = jnp.asarray(target)
    start = (jnp.full_like(target, low), jnp.full_like(target, high))

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = 0.5 * (low + high)
        above = function(middle) >= target
        return jnp.where(above, low, middle), jnp.where(above, middle, high)

    ends: tuple[Array, Array] = jax.lax.fori_loop(0, 60 if target.dtype == jnp.float64 else 40, halve, start)
    return ends[1]


def student_cdf(z: Array, df: Array) -> Array:
    """P(T <= z) of a standard t with df degrees of freedom."""
    df, half = jnp.broadcast_to(df, z.shape), jnp.full_like(z, 0.5)
    tail = 0.5 * jss.betainc(0.5 * df, half, df / (df + z**2))
    middle = 0.5 * jss.betainc(
        half, 0.5 * df, z**2 / (df + z**2)
    )  # near the median, where the tail would cancel
    return jnp.where(z**2 < df, 0.5 + jnp.sign(z) * middle, jnp.where(z > 0, 1.0 - tail, tail))


def search_quantile(
    cdf: Callable[[Array], Array], p: ArrayLike, centre: Array, spread: Array, scale: Array, discrete: bool
) -> Array:
    """The smallest y with cdf(y) >= p for one output, among whole numbers where y is discrete.

    Arguments:
        cdf: the distribution function.
        p: probabilities, of any shape.
        centre, spread: where to search: a mean and a standard deviation, which may be infinite.
        scale: a typical size of y, used in place of an infinite spread.
        discrete: whether y is a whole number.

    Raises:
        CredoError: y has several outputs.
    """
    if jnp.ndim(centre) != 0:
        raise CredoError(
            "quantile of several outputs is defined for Normal likelihoods only; use probs or sample."
        )
    probability = jnp.asarray(p, centre.dtype)
    one = jnp.where(jnp.isfinite(spread), jnp.maximum(spread, 1e-6), 1.0 + scale)

    def find(q: Array) -> Array:
        def value(u: Array) -> Array:
            """The value at u, on a scale where a bisection reaches far tails."""
            return centre + one * jnp.sinh(u)

        root = value(bisect(lambda u: cdf(value(u)), q, -24.0, 24.0))
        if not discrete:
            return root
        whole = jnp.round(root)
        return jnp.where(cdf(whole - 1) >= q, whole - 1, jnp.where(cdf(whole) >= q, whole, whole + 1))

    return jax.vmap(find)(probability.reshape(-1)).reshape(probability.shape)
