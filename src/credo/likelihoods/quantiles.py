"""Quantiles by bisection on a distribution function, and ratios of gamma functions that do not cancel."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.scipy.special as jss

from credo.core.errors import CredoError
from credo.core.types import Array, ArrayLike
from credo.core.verbs import traced_once
from credo.linalg.matrices import precision

__all__ = ["bisect", "digamma_gap", "log_gamma_ratio", "search_quantile", "student_cdf"]


@traced_once
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
    small = jnp.minimum(a, large)
    ratio = jnp.ones_like(end)
    for index in range(large):
        ratio = ratio * ((small + index) / (small + index + step))
    return jnp.where(a >= large, series, series + jnp.log(ratio))


def digamma_gap(a: Array, step: Array) -> Array:
    """digamma(a + step) - digamma(a), for a > 0 and step >= 0, to the last digits where a is large.

    It is d `log_gamma_ratio` / d a, by the same series.
    """
    large = 16 if a.dtype == jnp.float64 else 4
    big = jnp.where(a >= large, a, a + large)
    end = big + step

    def tail(x: Array) -> Array:
        inverse = 1.0 / x
        square = inverse * inverse
        return inverse * (0.5 + inverse * (1.0 / 12.0 - square * (1.0 / 120.0 - square / 252.0)))

    series = jnp.log1p(step / big) + (tail(big) - tail(end))
    small = jnp.minimum(a, large)
    gap = jnp.zeros_like(end)
    for index in range(large):
        gap = gap + step / ((small + index) * (small + index + step))
    return jnp.where(a >= large, series, series + gap)


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


@traced_once
def student_cdf(z: Array, df: Array) -> Array:
    """P(T <= z) of a standard t with df degrees of freedom.

    With z = sqrt(df) tan(u), the tail is that of a t with df + 2 n degrees of freedom at the same angle u,
    plus n terms of a series in cos(u)^2, which are positive (Abramowitz & Stegun 26.7.3 and 26.7.4, for any
    df). With so many degrees of freedom it is normal to a high order (Hill 1970, Algorithm 395). Both tails
    are sums of positive numbers, so that far tails keep their digits: their relative error is below 1e-11 in
    double precision, and below 1e-5 in single precision. The cost is that of an erfc, an exp and three logs.
    """
    df = jnp.broadcast_to(df, z.shape)
    terms = 12 if z.dtype == jnp.float64 else 4
    size = jnp.clip(jnp.abs(z), precision(z.dtype).tiny, 1e15)
    ratio = size * size / df
    log_secant = jnp.log1p(ratio)
    cosine = 1.0 / (1.0 + ratio)
    series = jnp.ones_like(size)
    for term in reversed(range(1, terms)):
        series = 1.0 + cosine * ((df + (2 * term - 1)) / (df + 2 * term)) * series
    sine = size / jnp.sqrt(df + size * size)
    height = jnp.exp(log_gamma_ratio(0.5 * df, jnp.full_like(df, 0.5)) - 0.5 * df * log_secant)
    near = height / (df * math.sqrt(math.pi)) * sine * series
    a = df + (2 * terms - 0.5)
    b = 48.0 * a * a
    y = a * log_secant
    bend = (((-0.4 * y - 3.3) * y - 24.0) * y - 85.5) / (0.8 * y * y + 100.0 + b) + y + 3.0
    far = 0.5 * jss.erfc(math.sqrt(0.5) * (bend / b + 1.0) * jnp.sqrt(y))
    tail = jnp.where(jnp.isinf(z), 0.0, near + far)
    return jnp.where(z > 0, 1.0 - tail, tail)


def search_quantile(
    cdf: Callable[[Array], Array], p: ArrayLike, centre: Array, spread: Array, scale: Array, discrete: bool
) -> Array:
    """The smallest y with cdf(y) >= p for one output, among whole numbers where y is discrete.

    The search starts from a mean and a standard deviation; `scale` replaces one that is infinite.
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
