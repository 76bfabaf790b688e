"""Curvature that no single observation can overshoot, for parameters on a log scale."""

from __future__ import annotations

import jax.numpy as jnp

from credo.core.types import Array

__all__ = ["secant_root"]


def secant_root(ratio: Array) -> Array:
    """The root of how much steeper the chord is than the tangent, for the slope ratio - 1 (at least -1).

    Let the score in u be c (ratio e^-u - 1), with curvature c at ratio 1; it vanishes at u = log ratio, where
    the ratio is the observation over its expectation. A Newton step of curvature c from 0 goes to ratio - 1,
    which is exponentially far for large ratios. The chord from 0 to the zero has the curvature
    c (ratio - 1) / log ratio, by which the step ends at log ratio. At ratios below 1 the tangent's step is
    the shorter one, and is taken: the root is 1.
    """
    above = ratio > 1.0
    log = jnp.log(jnp.where(above, ratio, 2.0))
    # (r - 1) / log r by expm1, which keeps its digits near 1
    chord = jnp.expm1(log) / jnp.where(log > 0, log, 1.0)
    return jnp.where(above & (log > 0), jnp.sqrt(jnp.maximum(chord, 1.0)), 1.0)
