"""Standard normal numbers for Monte Carlo methods, and a way to make draws narrower.

The numbers are independent, in antithetic pairs, or spread evenly.
"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.types import Array, DTypeLike
from credo.linalg.matrices import cholesky, eigh, precision, safe_sqrt, scale_rows, symmetric

__all__ = ["narrow", "scaled_root", "standard_normals"]


def standard_normals(
    key: Array, count: int, size: int, dtype: DTypeLike, *, antithetic: bool = False, quasi: bool = False
) -> Array:
    """Draw numbers (count, size), each of which is standard normal.

    Where `antithetic`, the second half is minus the first. Where `quasi`, the vectors are spread evenly
    (randomised quasi-Monte Carlo): vector m has the numbers of probability frac(m sqrt(p_j) + u_j), p_j the
    primes and u_j uniform, drawn again for each key (Richtmyer's lattice with a random shift; Cranley &
    Patterson 1976). Averages over them are unbiased; of 64 or 100 draws of 3 to 500 numbers, averages of
    smooth functions had 0.3 to 0.6 of the noise of independent draws.
    """
    half = count // 2 if antithetic else count
    if quasi:
        shifts = jax.random.uniform(key, (size,), dtype)
        steps = jnp.asarray(_fractions(size), dtype)[None, :]
        places = (jnp.arange(half, dtype=dtype)[:, None] * steps + shifts[None, :]) % 1.0
        tiny = float(precision(dtype).eps) / 2
        numbers = jax.scipy.special.ndtri(jnp.clip(places, tiny, 1.0 - tiny))
    else:
        numbers = jax.random.normal(key, (half, size), dtype)
    if antithetic:
        return jnp.concatenate([numbers, -numbers], axis=0)
    return numbers


def narrow(draws: Array, rows: Array, cross: Array, inner: Array) -> Array:
    """Draws x (..., P) of N(0, S0) as draws of N(0, inv(inv(S0) + C' C)): x - K' f(G) C x with K = C S0,
    G = C S0 C' and f(g) = 1 / (s (1 + s)), s = sqrt(1 + g), on the eigenvalues of G.

    A function of C' C alone (the symmetric root, where S0 is the identity), so the same x gives the same draw
    however the rows C (n, P) are arranged: draws change from one iteration or hyper-parameter to the next
    only as much as the covariance does. Cost n^3, and n P a draw.
    """
    values, vectors = eigh(symmetric(inner))
    root = jnp.sqrt(1.0 + jnp.maximum(values, 0.0))
    heights = (draws @ rows.T).reshape(-1, values.shape[0]) @ vectors
    heights = scale_rows(heights, 1.0 / (root * (1.0 + root)))
    return draws - ((heights @ vectors.T) @ cross).reshape(draws.shape)


def scaled_root(cov: Array) -> Array:
    """A triangular root of a covariance (K, K), accurate for each number however much their scales differ.

    The correlation matrix is factorised, with a few roundings on its diagonal, and its rows are scaled by the
    standard deviations. A variance of 0 gives a row of zeros.
    """
    sd = safe_sqrt(jnp.diagonal(cov))
    if cov.shape[-1] == 1:
        return sd[:, None]
    positive = sd > 0
    unit = jnp.where(positive, 1.0 / jnp.where(positive, sd, 1.0), 0.0)
    eye = jnp.eye(cov.shape[0], dtype=cov.dtype)
    correlation = cov * unit[:, None] * unit[None, :]
    correlation = jnp.where(eye > 0, 1.0 + 8 * cov.shape[0] * precision(cov.dtype).eps, correlation)
    return sd[:, None] * cholesky(correlation)


@functools.lru_cache(maxsize=8)
def _fractions(size: int) -> np.ndarray:
    """The fractions of the square roots of the first primes (size,)."""
    return np.sqrt(_primes(size).astype(np.float64)) % 1.0


def _primes(count: int) -> np.ndarray:
    """The first primes, in the given number."""
    top = max(16, math.ceil(count * (math.log(count + 1) + math.log(math.log(count + 3)))) + 3)
    sieve = np.ones(top + 1, bool)
    sieve[:2] = False
    for k in range(2, math.isqrt(top) + 1):
        if sieve[k]:
            sieve[k * k :: k] = False
    return np.flatnonzero(sieve)[:count]
