"""The Student-t law in elementary functions: fast enough for a thousand values in a step.

`jax.scipy.special.betainc` loops over a continued fraction. Here a relation between df and df + 2 degrees of
freedom, and Hill's expansion of the latter, give 1e-5 for df = 1, 1e-6 for df = 2 and better above.
"""

from __future__ import annotations

import jax.numpy as jnp
import jax.scipy.special as jss

from credo.core.types import Array

__all__ = ["student_height", "student_law", "student_quantile"]

_NORMAL = 1e6
"""Degrees of freedom from which the law is taken as normal."""


def student_law(z: Array, df: Array, height: Array) -> tuple[Array, Array]:
    """The distribution function and the density of a standard t.

    F_df(z) = F_{df+2}(z sqrt((df + 2) / df)) - z f_df(z) / df, the recurrence of the incomplete beta function
    in its first argument (DLMF 8.17.20). F_{df+2} is the normal distribution function of Hill's expansion
    (G. W. Hill 1970, "Algorithm 395", CACM 13).

    Arguments:
        z: where, of any shape.
        df: the degrees of freedom, above 0, which broadcast with z.
        height: `student_height(df)`.

    Returns:
        P(T <= z) and the density at z.
    """
    df = jnp.clip(df, 0.1, _NORMAL)
    log_x = -jnp.log1p(z * z / df)
    density = height * jnp.exp(0.5 * (df + 1) * log_x)
    above = df + 1.5  # Hill's a = df - 1/2, for two degrees of freedom more
    unit = 48.0 * above * above
    square = -above * log_x
    root = jnp.sign(z) * jnp.sqrt(jnp.maximum(square, 1e-30))
    first = root * (square + 3.0) / unit
    second = root * (((4.0 * square + 33.0) * square + 240.0) * square + 855.0)
    normal = root + first - second / (10.0 * unit * (unit + 0.8 * square * square + 100.0))
    upper = 0.5 + 0.5 * jss.erf(normal * 0.7071067811865476)
    return jnp.clip(upper - z * density / df, 0.0, 1.0), density


def student_height(df: Array) -> Array:
    """The density of a standard t at 0, Gamma((df + 1) / 2) / (Gamma(df / 2) sqrt(pi df)), to 1e-7.

    A difference of two log gammas would lose the figures of single precision where df is large. Here an
    asymptotic series of the ratio (DLMF 5.11.13) is taken at df / 2 + 8, and led back.

    Arguments:
        df: the degrees of freedom, above 0.

    Returns:
        The height, of the shape of `df`.
    """
    df = jnp.clip(df, 0.1, _NORMAL)
    a = 0.5 * df
    down = jnp.ones_like(a)
    for k in range(8):
        down = down * ((a + k) / (a + (k + 0.5)))
    far = 1.0 / (a + 8.0)
    series = 1.0 - far / 8.0 + far**2 / 128.0 + 5.0 * far**3 / 1024.0 - 21.0 * far**4 / 32768.0
    return down * jnp.sqrt((a + 8.0) / (df * jnp.pi)) * series


def student_quantile(z: Array, df: Array) -> Array:
    """About the quantile of a standard t at the probability Phi(z): where cells should end, not exact.

    sqrt(df (exp(z^2 / (df k^2)) - 1)), k = (8 df + 1) / (8 df + 3) (D. L. Wallace 1959, Ann. Math. Stat. 30).

    Arguments:
        z: normal quantiles.
        df: the degrees of freedom, above 0, which broadcast with z.

    Returns:
        The quantiles.
    """
    df = jnp.clip(df, 0.1, _NORMAL)
    ratio = (8.0 * df + 3.0) / (8.0 * df + 1.0)
    size = jnp.sqrt(df * jnp.expm1(jnp.minimum(z * z * ratio * ratio / df, 60.0)))
    return jnp.sign(z) * size
