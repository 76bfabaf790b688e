"""The probability that an arm is best, for independent probabilities (Beta) or rates (Gamma).

On the scale u = log(p / (1 - p)), or u = log(rate), the densities are smooth and log-concave. The
distribution functions are integrals of the same densities at the same nodes, so no incomplete function is
needed.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from credo.bandits.best.quadrature import MANY, cell_nodes, merge_cells
from credo.core.types import Array

__all__ = ["best_of_betas", "best_of_gammas"]

_ORDER = 6
_FALL = 15.0
"""By how much the log density has fallen at the ends."""

_FRACTIONS = (1.0, 0.7, 0.45, 0.25, 0.1)
"""Where cells end between the mode and an end."""

_LEAST = 1e-12


def best_of_betas(
    a: Array, b: Array, log_weights: Array | None = None, allowed: Array | None = None
) -> Array:
    """The probability (K,) that each of K independent p ~ Beta(a, b) is the largest, to 1e-5.

    a and b are (K,), or (K, J) for mixtures with `log_weights` (K, J); `allowed` is (K,). The cost is 66 K^2
    exponentials for fewer than 20 arms, and 430 K above.
    """
    a, b = _columns(a), _columns(b)
    total = a + b
    share, rest = a / total, b / total
    mode = jnp.log(a) - jnp.log(b)

    def fall(d: Array) -> Array:
        """The log density at a distance d from the mode, relative to the mode."""
        small = jnp.abs(d) < 0.03
        far = jnp.where(small, 1.0, d)
        # log(rest + share e^d), where neither e^d nor e^-d may overflow
        log_sum = jnp.logaddexp(jnp.log(rest), jnp.log(share) + far)
        product = share * rest
        series = 0.5 + d * ((rest - share) / 6.0 + d * (1.0 - 6.0 * product) / 24.0)
        return jnp.where(small, -total * product * d * d * series, a * far - total * log_sum)

    def slope(d: Array) -> Array:
        return a - total * jax.nn.sigmoid(mode + d)

    low = (total * jnp.log(rest) - _FALL) / a
    high = (_FALL - total * jnp.log(share)) / b
    return _best(mode, fall, slope, low, high, log_weights, allowed)


def best_of_gammas(
    shape: Array, per: Array, log_weights: Array | None = None, allowed: Array | None = None
) -> Array:
    """The probability (K,) that each of K independent rates ~ Gamma(shape, per) is the largest, to 1e-5.

    Class probabilities ~ Dirichlet(counts) are largest with the same probabilities as Gamma(counts, 1).
    Shapes and costs are those of `best_of_betas`.
    """
    shape, per = _columns(shape), _columns(per)
    mode = jnp.log(shape) - jnp.log(per)

    def fall(d: Array) -> Array:
        """The log density at a distance d from the mode, relative to the mode."""
        small = jnp.abs(d) < 0.03
        far = jnp.where(small, 1.0, jnp.minimum(d, 50.0))
        series = d * d * (0.5 + d * (1.0 / 6.0 + d / 24.0))
        return -shape * jnp.where(small, series, jnp.expm1(far) - far)

    def slope(d: Array) -> Array:
        return -shape * jnp.expm1(jnp.minimum(d, 50.0))

    low = -_FALL / shape - 1.0
    high = jnp.log1p(_FALL / shape + jnp.sqrt(2.0 * _FALL / shape)) + jnp.sqrt(2.0 * _FALL / shape)
    return _best(mode, fall, slope, low, jnp.minimum(high, 50.0), log_weights, allowed)


def _columns(values: Array) -> Array:
    return values if values.ndim == 2 else values[:, None]


def _ends(fall: Callable[[Array], Array], slope: Callable[[Array], Array], start: Array) -> Array:
    """Where the log density has fallen by `_FALL`: Newton's method from outside, which never overshoots."""

    def step(_: int, d: Array) -> Array:
        return d - (fall(d) + _FALL) / slope(d)

    found: Array = jax.lax.fori_loop(0, 12, step, start)
    return found


def _best(
    mode: Array,
    fall: Callable[[Array], Array],
    slope: Callable[[Array], Array],
    low: Array,
    high: Array,
    log_weights: Array | None,
    allowed: Array | None,
) -> Array:
    """The integral of f_a prod F_b, where each F is integrated along: first the cells, then within a cell."""
    allowed = jnp.ones(mode.shape[0], bool) if allowed is None else allowed
    below, above = (_ends(fall, slope, start) for start in jax.lax.stop_gradient((low, high)))
    steps = [below * f for f in _FRACTIONS] + [jnp.zeros_like(mode)] + [above * f for f in _FRACTIONS[::-1]]
    edges = mode[None] + jnp.stack(steps)
    # An arm that may not be chosen has no cells of its own.
    first = jnp.min(jnp.where(allowed[:, None], edges[0], jnp.inf))
    edges = jnp.where(allowed[None, :, None], edges, first)
    rows = edges.transpose(1, 2, 0).reshape(-1, edges.shape[0])
    row = merge_cells(rows) if rows.size > MANY else rows.reshape(-1)
    nodes, weights = cell_nodes(row, _ORDER)
    cells = (-1, _ORDER, *mode.shape)
    density = jnp.exp(jax.vmap(fall)(nodes[:, None, None] - mode[None])).reshape(cells)
    inside, whole = _running()
    width = weights.reshape(-1, _ORDER)[:, :1] / whole[0]
    masses = jnp.einsum("j,cjka->cka", jnp.asarray(whole, density.dtype), density) * width[..., None]
    before = jnp.cumsum(masses, axis=0) - masses
    within = jnp.einsum("ij,cjka->cika", jnp.asarray(inside, density.dtype), density) * width[..., None, None]
    total = jnp.sum(masses, axis=0)
    cdf, density = (before[:, None] + within) / total[None, None], density / total[None, None]
    if log_weights is None:
        cdf, density = cdf[..., 0], density[..., 0]
    else:
        parts = jnp.exp(log_weights)[None, None]
        cdf, density = jnp.sum(cdf * parts, axis=-1), jnp.sum(density * parts, axis=-1)
    cdf = jnp.where(allowed[None, None], jnp.maximum(cdf, _LEAST), 1.0)
    joint = jnp.prod(cdf, axis=-1) * weights.reshape(-1, _ORDER)
    shares = jnp.where(allowed, jnp.sum(density / cdf * joint[..., None], axis=(0, 1)), 0.0)
    everything = jnp.sum(shares)
    return shares / jnp.where(everything > 0, everything, 1.0)


def _running() -> tuple[np.ndarray, np.ndarray]:
    """The matrix that integrates a polynomial from 0 to each Gauss node of [0, 1], and the weights to 1."""
    points, weights = np.polynomial.legendre.leggauss(_ORDER)
    points = 0.5 + 0.5 * points
    powers = np.vander(points, increasing=True)
    integrals = points[:, None] * powers / np.arange(1, _ORDER + 1)
    return integrals @ np.linalg.inv(powers), 0.5 * weights
