"""Standard normal numbers for Monte Carlo: independent, in antithetic pairs, or spread evenly."""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["standard_normals"]


def standard_normals(
    key: jax.Array, count: int, size: int, dtype: Any, *, antithetic: bool = False, quasi: bool = False
) -> jax.Array:
    """Numbers (count, size), each standard normal by itself.

    Arguments:
        key: draws them.
        count: how many vectors; even, where antithetic.
        size: the length of a vector.
        dtype: a floating-point type.
        antithetic: the second half is minus the first.
        quasi: the vectors are spread evenly (randomised quasi-Monte Carlo): vector m has the numbers of
            probability frac(m sqrt(p_j) + u_j), p_j the primes and u_j uniform, drawn anew for each key
            (Richtmyer's lattice with a random shift; Cranley & Patterson 1976). Averages over them are
            unbiased; of 64 or 100 draws of 3 to 500 numbers, averages of smooth functions had .3 to .6 of
            the noise of independent draws.
    """
    half = count // 2 if antithetic else count
    if quasi:
        shifts = jax.random.uniform(key, (size,), dtype)
        steps = jnp.asarray(_fractions(size), dtype)[None, :]
        places = (jnp.arange(half, dtype=dtype)[:, None] * steps + shifts[None, :]) % 1.0
        tiny = float(jnp.finfo(dtype).eps) / 2
        made = jax.scipy.special.ndtri(jnp.clip(places, tiny, 1.0 - tiny))
    else:
        made = jax.random.normal(key, (half, size), dtype)
    return jnp.concatenate([made, -made], axis=0) if antithetic else made


@functools.lru_cache(maxsize=8)
def _fractions(size: int) -> np.ndarray:
    """The fractions of the square roots of the first primes (size,)."""
    return np.sqrt(_primes(size).astype(np.float64)) % 1.0


def _primes(count: int) -> np.ndarray:
    """The first so many primes."""
    top = max(16, math.ceil(count * (math.log(count + 1) + math.log(math.log(count + 3)))) + 3)
    sieve = np.ones(top + 1, bool)
    sieve[:2] = False
    for k in range(2, math.isqrt(top) + 1):
        if sieve[k]:
            sieve[k * k :: k] = False
    return np.flatnonzero(sieve)[:count]
