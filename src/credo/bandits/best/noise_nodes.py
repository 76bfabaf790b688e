"""Nodes for an unknown noise variance that all arms share."""

from __future__ import annotations

from statistics import NormalDist

import jax.numpy as jnp
import jax.scipy.special as jss
import numpy as np

from credo.beliefs import InverseGamma
from credo.core.types import Array, DTypeLike

__all__ = ["LEAST_SHAPE", "noise_nodes", "wide_noise_nodes"]

LEAST_SHAPE = 2.5
"""The shape below which `noise_nodes` miss 1e-4."""

_COUNT, _WIDE = 7, 20
_OUTSIDE = 2e-5
"""The probability beyond the last of the wide nodes."""


def noise_nodes(noise: InverseGamma, dtype: DTypeLike) -> tuple[Array, Array]:
    """Standard deviations s and weights w (7,) with E[f(sqrt(v))] = sum_i w_i f(s_i) for v ~ noise, f smooth.

    The cube root of a gamma variable is nearly normal (Wilson & Hilferty 1931, PNAS 17), so the nodes are
    those of a Gauss-Hermite rule for the cube root of scale / v, each with the ratio of the true density to
    the normal one. For probabilities of being best, errors were at most 6e-5 for a shape of 2.5, 2e-5 for 3
    and below 1e-6 from 6 on.
    """
    points, weights = np.polynomial.hermite_e.hermegauss(_COUNT)
    shape = jnp.asarray(noise.shape, dtype)
    z = jnp.asarray(points, dtype)
    cube_root = 1.0 - 1.0 / (9.0 * shape) + z / (3.0 * jnp.sqrt(shape))
    inside = cube_root > 0.02
    cube_root = jnp.where(inside, cube_root, 0.02)
    gamma = shape * cube_root**3
    log_ratio = shape * jnp.log(gamma) - gamma - jnp.log(cube_root) + 0.5 * z * z
    log_weights = jnp.where(inside, jnp.asarray(np.log(weights), dtype) + log_ratio, -jnp.inf)
    return _rule(noise, jnp.log(gamma), log_weights)


def wide_noise_nodes(noise: InverseGamma, dtype: DTypeLike) -> tuple[Array, Array]:
    """Like `noise_nodes`, for shapes below `LEAST_SHAPE`: 20 nodes of a Gauss-Legendre rule for log v.

    It lies between two quantiles. Errors were at most 2e-5 for shapes from 0.75 on, and 1e-4 for 0.5.
    """
    points, weights = np.polynomial.legendre.leggauss(_WIDE)
    shape = jnp.asarray(noise.shape, dtype)
    end = NormalDist().inv_cdf(1.0 - _OUTSIDE)
    cube_root = 1.0 - 1.0 / (9.0 * shape) + end / (3.0 * jnp.sqrt(shape))
    high = jnp.log(shape) + 3.0 * jnp.log(cube_root)
    # P(gamma <= g) is at most g^shape / Gamma(shape + 1)
    low = (np.log(_OUTSIDE) + jss.gammaln(shape + 1.0)) / shape
    log_gamma = low + (high - low) * jnp.asarray(0.5 + 0.5 * points, dtype)
    log_weights = jnp.asarray(np.log(weights), dtype) + shape * log_gamma - jnp.exp(log_gamma)
    return _rule(noise, log_gamma, log_weights)


def _rule(noise: InverseGamma, log_gamma: Array, log_weights: Array) -> tuple[Array, Array]:
    sds = jnp.sqrt(jnp.asarray(noise.scale, log_gamma.dtype)) * jnp.exp(-0.5 * log_gamma)
    return sds, jnp.exp(log_weights - jss.logsumexp(log_weights))
