"""Ratios of gamma functions that do not cancel."""

from __future__ import annotations

import jax.numpy as jnp

from credo.core.types import Array

__all__ = ["log_gamma_ratio"]


def log_gamma_ratio(a: Array, step: Array) -> Array:
    """log Gamma(a + step) - log Gamma(a), for a > 0 and step >= 0, to the last digits where a is large.

    Two values of log Gamma(a) near a = 1e5 are of the order of 1e6 each, so that in single precision their
    difference would be wrong by tenths. Stirling's series is subtracted term by term instead.
    """
    large = 16 if a.dtype == jnp.float64 else 4  # where the series has the digits of the dtype
    big = jnp.where(a >= large, a, a + large)
    end = big + step

    def tail(x: Array) -> Array:
        inverse = 1.0 / x
        square = inverse * inverse
        return inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0)))

    series = (big - 0.5) * jnp.log1p(step / big) + step * (jnp.log(end) - 1.0) + (tail(end) - tail(big))
    # Gamma(a + n) = a (a + 1) ... (a + n - 1) Gamma(a) leads from a small a to a large one.
    small, ratio = jnp.minimum(a, large), jnp.ones_like(end)
    for index in range(large):
        ratio = ratio * ((small + index) / (small + index + step))
    return jnp.where(a >= large, series, series + jnp.log(ratio))
