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

import math

import jax
import jax.numpy as jnp
import jax.scipy.special as jss
import numpy as np

from credo.core.errors import CredoError
from credo.core.records import record
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, PyTree
from credo.core.verbs import traced_once
from credo.likelihoods.predictive import Predictive
from credo.likelihoods.uncertain import erfcx, log_logistic_normal
from credo.linalg.matrices import diagonal, identity, precision, safe_sqrt

__all__ = ["ClassPredictive"]

_LEVELS = {3: 14, 12: 20}
_MOST_LEVELS = 32
"""Values u of the integral, by the most classes: the largest of many logits has the sharper distribution."""

_NORMALS = np.array(
    [
        [-1.49496492, 0.16168397, -0.00080912, -0.01171009],
        [-1.22816635, 0.18580642, -0.00321339, 0.02294042],
        [-0.58689469, 0.28738221, 0.02941831, 0.19992716],
        [0.36422116, 0.49823975, -0.40628051, -0.18062724],
        [1.28001198, 0.74106974, -0.24729783, -0.02856693],
        [2.52565202, 1.16638202, -0.08625397, -0.00160346],
        [4.18639780, 2.25396796, -0.01873932, -0.00001630],
    ]
)
_STEP = (-0.15624438, 0.40260326)
_TAIL = (0.18871204, 0.37673801)
"""The distribution of a Gumbel draw: its distribution function is that of the normal `_STEP` (mean,
variance), and its density e^-t times that of the normal `_TAIL`, and both have multiples (third and fourth
column) of the densities of seven normals (mean, variance) besides. Fitted by least squares of both logarithms
for a Gumbel draw plus N(0, v), v from 0 to 100. A normal draw in addition only widens every part."""

_FLOOR = 0.1
"""The least variance of a class, as a share of the mean one."""

_TIE = 1e-5
"""Ends of classes that differ by less, relative to their size, count as one."""

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
    classes, log P is within 1e-3 up to a variance of 100 (3e-3 where the variances of 50 classes differ by
    factors of 50). A correlated covariance is taken to first order: `docs/explanation/correctness.md` has
    its errors.

    Cost: 14 to 32 C times 13 exponentials or logarithms, and as often C^2.

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
        return cls(loc, *_apart(cov, known), known)

    @property
    def discrete(self) -> bool:
        return True

    @property
    def log_probs(self) -> Array:
        """log P of each class (C,), of probabilities that sum to one."""
        if self.loc.shape[0] == 2:
            pair = log_logistic_normal(self.loc[1] - self.loc[0], jnp.sum(self.alone))
            return jnp.where(self.known[1], jnp.stack(pair), jnp.asarray([0.0, -jnp.inf], self.loc.dtype))
        integral: Array = _log_integral(self.loc, self.alone, self.rest, self.known)
        logs = jnp.where(self.known, integral, -jnp.inf)
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

    def has_log_prob(self, y: PyTree) -> Array:
        """Whether class y is known, and logits are so far within the range of numbers that log P(y) is, too.

        If nobody asks for the evidence of an update, but whether there is one, the integral is not run.
        """
        largest = 10.0 ** (0.4 * math.log10(precision(self.loc.dtype).max))
        within = (jnp.abs(self.loc) < largest) & (self.alone < largest)
        moderate = jnp.all(within | ~self.known) & jnp.all(jnp.abs(self.rest) < largest)
        return moderate & self.known[jnp.asarray(y).reshape(()).astype(jnp.int32)]

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


@traced_once
def _apart(cov: Array, known: Array) -> tuple[Array, Array]:
    """The variances d (C,) and the rest E (C, C) of a covariance of logits."""
    count = jnp.sum(known.astype(cov.dtype))
    pairs = (known[:, None] & known[None, :]) & (identity(cov.shape[0], cov.dtype) == 0)
    between = jnp.where(pairs, 0.5 * (cov + cov.T), 0.0)
    rows = jnp.sum(between, axis=1)
    fitted = (rows - jnp.sum(rows) / (2.0 * jnp.maximum(count - 1.0, 1.0))) / jnp.maximum(count - 2.0, 1.0)
    shift = jnp.where(count > 2, fitted, 0.5 * rows)
    own = diagonal(cov)
    alone = jnp.where(known, own - 2.0 * shift, jnp.zeros_like(own))
    level = jnp.sum(alone) / jnp.maximum(count, 1.0)
    # Of two classes, only the sum of both variances counts.
    alone = jnp.where(count > 2, jnp.maximum(alone, _FLOOR * level), level)
    rest = jnp.where(pairs & (count > 2), between - shift[:, None] - shift[None, :], 0.0)
    return jnp.where(known, jnp.maximum(alone, 0.0), 0.0), rest


@traced_once
def _log_integral(mean: Array, var: Array, rest: Array, known: Array) -> Array:
    """log P of each class (C,), by (1) and (2); their sum is nearly one."""
    mean = jnp.where(known, mean - jnp.max(jnp.where(known, mean, -jnp.inf)), 0.0)
    sd = safe_sqrt(var)
    lows = jnp.where(known, mean - 5.3 * sd - 3.2, -jnp.inf)
    highs = jnp.where(known, mean + 4.8 * sd, -jnp.inf)
    low = jnp.max(lows)
    top = jnp.max(highs)
    high = jnp.maximum(top, jnp.log(jnp.sum(jnp.where(known, jnp.exp(mean), 0.0)))) + 6.0
    # Distances between the values grow from the scale of the classes at the left to that at the right.
    # A compiler may compute `lows` twice and round them differently, so that none would equal its largest.
    first = jnp.max(jnp.where(lows >= low - _TIE * (1.0 + jnp.abs(low)), var, 0.0))
    last = jnp.max(jnp.where(highs >= top - _TIE * (1.0 + jnp.abs(top)), var, 0.0))
    growth = 0.5 * jnp.log((1.0 + last) / (1.0 + first))
    growth = jnp.where(jnp.abs(growth) < 1e-3, 1e-3, growth)
    count = next((count for most, count in _LEVELS.items() if mean.shape[0] <= most), _MOST_LEVELS)
    grown = jnp.exp(growth * jnp.asarray((np.arange(count) + 0.5) / count, mean.dtype))
    share = (high - low) / jnp.expm1(growth)
    values = low + share * (grown - 1.0)
    widths = share * growth / count * grown
    log_cdf, log_density, slope = _log_gumbel_normal(values[None, :] - mean[:, None], var[:, None])
    log_cdf = jnp.where(known[:, None], log_cdf, 0.0)
    others = jnp.sum(log_cdf, axis=0, keepdims=True) - log_cdf
    # By its mean, log F_j falls by the hazard f_j / F_j, and log f_y by its slope.
    hazard = jnp.where(known[:, None], jnp.exp(jnp.minimum(log_density - log_cdf, _STEEP)), 0.0)
    pulled = rest @ hazard
    pairs = 0.5 * jnp.sum(pulled * hazard, axis=0, keepdims=True) - (hazard - slope) * pulled
    factor = jnp.log(jnp.maximum(1.0 + pairs, 0.1) * widths[None, :])
    return jss.logsumexp(log_density + others + factor, axis=1)


def _log_gumbel_normal(x: Array, var: Array) -> tuple[Array, Array, Array]:
    """log F, log f and d log f / dx of a Gumbel draw plus N(0, var), at x (C, n), for variances (C, 1).

    Both logarithms are within 2e-4 where F is above 1e-3, and within 3e-3 down to 1e-4. All exponentials
    stand in one array with the values last: a compiler takes eight of them at once.
    """
    tiny = precision(x.dtype).tiny
    normals = _NORMALS.shape[0]
    (centre, spread) = _TAIL
    # The tail ends in e^(v / 2 - x) N(x | centre + v, spread + v), a multiple of one more normal density.
    parts = np.append(_NORMALS[:, :2], [_STEP, (centre - spread, spread)], axis=0)
    multiple = math.exp(0.5 * spread - centre)
    gap = x[:, None, :] - jnp.asarray(parts[:, 0], x.dtype)[None, :, None]
    wide = var + jnp.asarray(parts[:, 1], x.dtype)[None, :]
    root = jax.lax.rsqrt(wide)
    bells = jnp.exp(-0.5 * gap**2 / wide[:, :, None])
    rise = 0.5 * var - x
    at_step = gap[:, -2] * root[:, -2:-1]
    at_tail = (x - centre - var) * root[:, -1:]
    step_end = 0.5 * erfcx(jnp.abs(at_step) * math.sqrt(0.5)) * bells[:, -2]
    tail_end = 0.5 * multiple * erfcx(jnp.abs(at_tail) * math.sqrt(0.5)) * bells[:, -1]
    step = jnp.where(at_step > 0, 1.0 - step_end, step_end)
    tail = jnp.where(at_tail > 0, jnp.exp(jnp.where(at_tail > 0, rise, 0.0)) - tail_end, tail_end)
    shares = jnp.asarray(_NORMALS[:, 2:] / math.sqrt(2 * math.pi), x.dtype)
    in_cdf = (shares[:, 0][None, :] * root[:, :normals])[:, :, None]
    in_density = (shares[:, 1][None, :] * root[:, :normals])[:, :, None]
    rest = bells[:, :normals]
    falls = gap[:, :normals] / wide[:, :normals, None]
    cdf = step + jnp.sum(in_cdf * rest, axis=1)
    density = tail + jnp.sum(in_density * rest, axis=1)
    density = jnp.maximum(density, tiny)
    edge = bells[:, -1] * (root[:, -1:] * multiple / math.sqrt(2 * math.pi))
    slope = edge - tail - jnp.sum(in_density * falls * rest, axis=1)
    far = x - var > 15.0
    log_density = jnp.where(far, rise, jnp.log(density))
    return jnp.log(jnp.clip(cdf, tiny, 1.0)), log_density, jnp.where(far, -1.0, slope / density)
