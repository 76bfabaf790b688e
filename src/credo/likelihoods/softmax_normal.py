"""E[softmax(eta)] for normal logits, by an integral over one number.

Let g be independent Gumbel draws. The largest of eta_j + g_j belongs to class y with probability
softmax(eta)_y. With F_j(u) = E exp(-exp(eta_j - u)), the distribution function of eta_j + g_j, independent
logits have

    P(y) = int f_y(u) prod_{j != y} F_j(u) du,    f_y = F_y'.                                            (1)

Logits matter up to a common shift, so that a covariance S stands for all S + 1 c' + c 1'. The c that leaves
the least between the classes is taken out, which leaves S = diag(d) + E, where E has the diagonal 0. With 2
and 3 classes E vanishes, and for the posterior of a linear model it is small. By Price's theorem (1958),
dP / dS_jk = E d^2 softmax(eta)_y / d eta_j d eta_k, which to first order in E puts the factor

    1 + sum_{j < k} E_jk a_j(u) a_k(u)                                                                   (2)

under the integral, where a_j is the derivative of log F_j (of log f_y for j = y) by the mean of eta_j.
"""

from __future__ import annotations

import functools
import math
import statistics

import jax
import jax.numpy as jnp
import jax.scipy.special as jss
import numpy as np

from credo.core.errors import CredoError
from credo.core.records import record
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, PyTree
from credo.likelihoods.predictive import Predictive
from credo.likelihoods.uncertain import erfcx, log_logistic_normal
from credo.linalg.matrices import precision, safe_sqrt

__all__ = ["ClassPredictive"]

_LEVELS = {3: 16, 12: 24}
_MOST_LEVELS = 32
"""The values u of the integral, by the most classes: the largest of many logits is the sharper law."""

_KERNEL = np.arange(-4.0, 12.0)
_CENTRE = 3.5
"""Where what is left of the Gumbel law beside its step and its tail is not small, and the middle of that."""

_HERMITE = 5
_STEP, _STEP_SD = 0.4, 1.0
_TAIL, _TAIL_SD = 0.0, 0.8
"""The normal step near the Gumbel law, and that from which its tail is e^-t."""

_FLOOR = 0.1
"""The least variance of a class, as a share of the mean one."""

_STEEP = 5.0
"""The largest log hazard: beyond it the integrand is nothing."""


@record
class ClassPredictive(Predictive):
    """A class whose logits are normal: P(y) = E[softmax(eta)_y], eta ~ N(loc, cov).

    Attributes:
        loc: the means of the logits (C,).
        alone: the variances d (C,) of logits that are independent up to a common shift.
        rest: what the covariance has besides, E (C, C).
        known: which classes there are, booleans (C,); the others have probability 0.

    Two classes have the relative error of `log_logistic_normal`, 5e-8. For a diagonal covariance and for 3
    classes, log P is within 1e-3 up to a variance of 100 (4e-3 where the variances of 50 classes differ by
    factors of 50). A correlated covariance is taken to first order: `docs/explanation/correctness.md` has
    its errors.

    Cost: 16 to 32 C times some twelve exponentials, and as often C^2.

    Example:
        >>> import credo
        >>> wide = credo.Categorical(2).linearized(jnp.array([1.0, 0.0]), 8.0 * jnp.eye(2))
        >>> [round(chance, 2) for chance in wide.probs.tolist()]
        [0.59, 0.41]
    """

    loc: Array
    alone: Array
    rest: Array
    known: Array

    @classmethod
    def of(cls, loc: Array, cov: Array, known: Array) -> ClassPredictive:
        """The predictive for eta ~ N(loc, cov), for loc (C,) and cov (C, C)."""
        count = jnp.sum(known.astype(cov.dtype))
        pairs = (known[:, None] & known[None, :]) & ~jnp.eye(cov.shape[0], dtype=bool)
        between = jnp.where(pairs, 0.5 * (cov + cov.T), 0.0)
        rows = jnp.sum(between, axis=1)
        fitted = (rows - jnp.sum(rows) / (2.0 * jnp.maximum(count - 1.0, 1.0))) / jnp.maximum(
            count - 2.0, 1.0
        )
        shift = jnp.where(count > 2, fitted, 0.5 * rows)
        own: Array = jnp.diagonal(cov)
        alone = jnp.where(known, own - 2.0 * shift, jnp.zeros_like(own))
        level = jnp.sum(alone) / jnp.maximum(count, 1.0)
        # Of two classes, only the sum of both variances counts.
        alone = jnp.where(count > 2, jnp.maximum(alone, _FLOOR * level), level)
        rest = jnp.where(pairs & (count > 2), between - shift[:, None] - shift[None, :], 0.0)
        return cls(loc, jnp.where(known, jnp.maximum(alone, 0.0), 0.0), rest, known)

    @property
    def discrete(self) -> bool:
        return True

    @property
    def log_probs(self) -> Array:
        """log P of each class (C,), of probabilities that sum to one."""
        if self.loc.shape[0] == 2:
            pair = log_logistic_normal(self.loc[1] - self.loc[0], jnp.sum(self.alone))
            return jnp.where(self.known[1], jnp.stack(pair), jnp.asarray([0.0, -jnp.inf], self.loc.dtype))
        logs = jnp.where(self.known, _log_integral(self.loc, self.alone, self.rest, self.known), -jnp.inf)
        return logs - jss.logsumexp(logs)

    @property
    def probs(self) -> Array:
        """The class probabilities (C,)."""
        return jnp.exp(self.log_probs)

    @property
    def mean(self) -> Array:
        """The class probabilities, the mean of the one-hot label."""
        return self.probs

    @property
    def var(self) -> Array:
        """p (1 - p) of each class."""
        probs = self.probs
        return probs * (1.0 - probs)

    def log_prob(self, y: PyTree) -> Array:
        """log P(y)."""
        return self.log_probs[jnp.asarray(y).reshape(()).astype(jnp.int32)]

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        return jax.random.categorical(key, self.log_probs, shape=shape)

    def quantile(self, p: ArrayLike) -> Array:
        """Classes have no order.

        Raises:
            CredoError: always.
        """
        raise CredoError("quantile of several outputs is defined for Normal likelihoods only; use probs.")

    def scaled(self, scale: ArrayLike) -> ClassPredictive:
        """The predictive for eta ~ N(loc, scale cov)."""
        times = as_like(scale, self.loc)
        return ClassPredictive(self.loc, times * self.alone, times * self.rest, self.known)

    def sharper(self, factor: Array) -> ClassPredictive:
        """The predictive for factor * eta."""
        times = as_like(factor, self.loc)
        squared = times**2
        return ClassPredictive(times * self.loc, squared * self.alone, squared * self.rest, self.known)


@functools.cache
def _kernels() -> tuple[list[float], list[float]]:
    """The Gumbel law less a normal step, and its density less its tail e^-t from a normal step on."""
    normal = statistics.NormalDist()
    step = [normal.cdf((t - _STEP) / _STEP_SD) for t in _KERNEL]
    tail = [normal.cdf((t - _TAIL) / _TAIL_SD) for t in _KERNEL]
    gumbel = np.exp(-np.exp(-_KERNEL))
    rest_of_density = np.exp(-_KERNEL) * (gumbel - np.array(tail))
    return (gumbel - np.array(step)).tolist(), rest_of_density.tolist()


def _log_integral(mean: Array, var: Array, rest: Array, known: Array) -> Array:
    """log P of each class (C,), by (1) and (2); their sum is nearly one."""
    mean = jnp.where(known, mean - jnp.max(jnp.where(known, mean, -jnp.inf)), 0.0)
    sd = safe_sqrt(var)
    lows = jnp.where(known, mean - 6.0 * sd - 3.2, -jnp.inf)
    highs = jnp.where(known, mean + 5.0 * sd, -jnp.inf)
    first, last = jnp.argmax(lows), jnp.argmax(highs)
    low = lows[first]
    high = jnp.maximum(highs[last], jss.logsumexp(jnp.where(known, mean, -jnp.inf))) + 10.0
    # Distances between the values grow from the scale of the classes at the left to that at the right.
    growth = 0.5 * (jnp.log1p(var[last]) - jnp.log1p(var[first]))
    growth = jnp.where(jnp.abs(growth) < 1e-3, 1e-3, growth)
    count = next((count for most, count in _LEVELS.items() if mean.shape[0] <= most), _MOST_LEVELS)
    place = jnp.asarray((np.arange(count) + 0.5) / count, mean.dtype)
    values = low + (high - low) * jnp.expm1(growth * place) / jnp.expm1(growth)
    widths = growth * place + jnp.log((high - low) * growth / jnp.expm1(growth) / count)
    # The values come last, where the compiler takes eight of them at once.
    log_cdf, log_density, slope = _log_gumbel_normal(values[None, :] - mean[:, None], var[:, None])
    log_cdf = jnp.where(known[:, None], log_cdf, 0.0)
    others = jnp.sum(log_cdf, axis=0, keepdims=True) - log_cdf
    # By its mean, log F_j falls by the hazard f_j / F_j, and log f_y by its slope.
    hazard = jnp.where(known[:, None], jnp.exp(jnp.minimum(log_density - log_cdf, _STEEP)), 0.0)
    pulled = rest @ hazard
    pairs = 0.5 * jnp.sum(pulled * hazard, axis=0, keepdims=True) - (hazard - slope) * pulled
    first_order = jnp.log1p(jnp.maximum(pairs, -0.9))
    return jss.logsumexp(log_density + others + first_order + widths[None, :], axis=1)


def _log_gumbel_normal(x: Array, var: Array) -> tuple[Array, Array, Array]:
    """log F, log f and d log f / dx of a Gumbel draw plus N(0, var), at x (C, n), for variances (C, 1).

    From a variance of 1 on, the law is a normal step, the density a tail in closed form, and the smooth rest
    of each a sum over 16 points t of N(x | t, var), which has the powers of one exponential. Below it, five
    Gauss-Hermite nodes.
    """
    tiny = precision(x.dtype).tiny
    wide = jnp.maximum(var, 1.0)
    rest_cdf, rest_density = _kernels()
    gap = jnp.clip(x - _CENTRE, -11.0 * wide, 11.0 * wide)
    half = jnp.exp(0.5 * gap / wide)
    sums = [jnp.zeros_like(x)] * 3
    middle = _KERNEL.size // 2
    for side, root in ((1, half), (-1, 1.0 / half)):
        inner = [jnp.zeros_like(x)] * 3
        for place in range(middle - 1, -1, -1):
            which = middle + place if side > 0 else middle - 1 - place
            share = jnp.exp(-0.5 * (place + 0.5) ** 2 / wide)
            terms = (rest_cdf[which], rest_density[which], side * (place + 0.5) * rest_density[which])
            inner = [total * root**2 + term * share for total, term in zip(inner, terms, strict=True)]
        sums = [total + root * part for total, part in zip(sums, inner, strict=True)]
    power = jnp.exp(-0.5 * gap**2 / wide) / jnp.sqrt(2 * math.pi * wide)
    cdf_sum, density_sum, moment = (power * total for total in sums)
    step = _phi((x - _STEP) * jax.lax.rsqrt(wide + _STEP_SD**2), jnp.zeros_like(x))
    end = (x - wide - _TAIL) * jax.lax.rsqrt(wide + _TAIL_SD**2)
    tail = _phi(end, 0.5 * wide - x)
    edge = jnp.exp(0.5 * wide - x - 0.5 * end**2) * jax.lax.rsqrt(2 * math.pi * (wide + _TAIL_SD**2))
    wide_cdf, wide_density = step + cdf_sum, tail + density_sum
    wide_slope = edge - tail + (moment - gap * density_sum) / wide
    points, weights = np.polynomial.hermite_e.hermegauss(_HERMITE)
    base, sd = jnp.exp(jnp.clip(-x, -80.0, 80.0)), safe_sqrt(jnp.minimum(var, 1.0))
    narrow_cdf = narrow_density = narrow_slope = jnp.zeros_like(x)
    for point, weight in zip(points.tolist(), (weights / weights.sum()).tolist(), strict=True):
        rate = base * jnp.exp(point * sd)
        each = weight * jnp.exp(-rate)
        narrow_cdf, narrow_density = narrow_cdf + each, narrow_density + rate * each
        narrow_slope = narrow_slope + (rate - 1.0) * rate * each
    cdf = jnp.where(var < 1.0, narrow_cdf, wide_cdf)
    density = jnp.maximum(jnp.where(var < 1.0, narrow_density, wide_density), tiny)
    slope = jnp.where(var < 1.0, narrow_slope, wide_slope) / density
    far = x - var > 15.0
    log_density = jnp.where(far, 0.5 * var - x, jnp.log(density))
    return jnp.log(jnp.clip(cdf, tiny, 1.0)), log_density, jnp.where(far, -1.0, slope)


def _phi(z: Array, power: Array) -> Array:
    """exp(power) Phi(z), for a product that is a number."""
    half = 0.5 * erfcx(jnp.abs(z) * math.sqrt(0.5))
    below = half * jnp.exp(power - 0.5 * z**2)
    return jnp.where(z > 0, jnp.exp(jnp.where(z > 0, power, 0.0)) - below, below)
