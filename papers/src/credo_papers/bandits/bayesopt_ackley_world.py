"""The function of `bayesopt-ackley`: a row of peaks along a line, to be found with few evaluations."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np

from credo.core.types import Array, ArrayLike

__all__ = ["HIGH", "LOW", "NEAR", "TOP", "ackley", "within"]

LOW = -4.0
HIGH = 4.0


def ackley(x: ArrayLike) -> Array:
    """Ackley's function of two variables (1987) along the line where the second is 0.

        20 + e - 20 exp(-0.2 sqrt(x^2 / 2)) - exp((cos 2 pi x + 1) / 2)

    Between -4 and 4 it is 0 at 0, with ten peaks on the way out. The two highest, 9.600 at plus and minus
    3.585, are those of the published figure (9.6 near 3.6).

    Example:
        >>> round(float(ackley(3.5847)), 3), round(float(ackley(0.0)), 3)
        (9.6, 0.0)
    """
    place = jnp.asarray(x)
    bowl = 20.0 * jnp.exp(-0.2 * math.sqrt(0.5) * jnp.abs(place))
    return 20.0 + math.e - bowl - jnp.exp(0.5 * (jnp.cos(2.0 * math.pi * place) + 1.0))


TOP = 9.600127
"""The largest value; the smallest is 0, so this is the range as well."""

NEAR = 0.02
"""The distance that counts as found: within 2% of the range."""


def within(values: np.ndarray) -> np.ndarray:
    """Whether the best of the values so far is near the top, along the last axis."""
    found: np.ndarray = np.maximum.accumulate(values, axis=-1) >= TOP * (1.0 - NEAR)
    return found
