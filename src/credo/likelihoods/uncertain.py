"""Predictives of one output whose eta is normal: logits, log-rates, and the location of a Student-t.

Fixed nodes of a wide normal stand farther apart than the likelihood is wide, and then miss it. Here the
logit is integrated by a series whose relative error has one bound for all means and variances, and the others
by nodes that lie where the observation puts them.
"""

from __future__ import annotations

from typing import Protocol

import jax
import jax.numpy as jnp
import jax.scipy.special as jss
import jax.scipy.stats as jst
import numpy as np

from credo.core.records import record, replace
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, PyTree
from credo.core.verbs import traced_once, verb
from credo.likelihoods.mixture import MixturePredictive
from credo.likelihoods.predictive import Predictive
from credo.likelihoods.quantiles import search_quantile
from credo.linalg.matrices import safe_sqrt

__all__ = ["DROP", "LogitPredictive", "RatePredictive", "ShiftedStudentT", "log_logistic_normal", "trapezoid"]

_SERIES = (
    0.9999999557904298,
    -0.9999911138764371,
    0.9996993307152757,
    -0.9959645062553565,
    0.9716881472747911,
    -0.8810564070978929,
    0.6750751794449384,
    -0.38534334276460347,
    0.1390712815963641,
    -0.02317854693229374,
)
"""Chebyshev's approximation of 1 / (1 + x) on [0, 1] by powers of x, with an error of at most 4.5e-8."""

_ERFCX = (
    1.2530080582534242,
    -0.13562106940027413,
    -0.04756229269565451,
    0.12964411434409245,
    -0.11927369132066147,
    0.06831656777107463,
    -0.023770334675597915,
    0.002499116869764319,
    0.001888112864883629,
    -0.0007264536791959959,
    -0.000104130714572602,
    7.731024230125103e-05,
    3.8618492504343515e-06,
)


@traced_once
def erfcx(x: Array) -> Array:
    """exp(x^2) erfc(x) for x >= 0, with a relative error of 3e-9 (after Shepherd & Laframboise 1981)."""
    t = (x - 3.0) / (x + 3.0)
    value = jnp.full_like(x, _ERFCX[-1])
    for coefficient in _ERFCX[-2::-1]:
        value = value * t + coefficient
    return value / (1.0 + 2.0 * x)


@traced_once
def log_logistic_normal(mean: Array, var: Array) -> tuple[Array, Array]:
    """log P(0) and log P(1) of E[sigmoid(eta)], eta ~ N(mean, var), for scalars.

    For u < 0 sigmoid(u) is the series of powers of e^u, sum_k c_k e^(k u), and for u > 0 it is one minus that
    of e^-u. Each power has a closed integral over half of the line,

        J_k(m) = int_0^inf e^(-k t) N(t | m, v) dt = e^(k^2 v / 2 - k m) Phi((m - k v) / sqrt v),

    and with m = |mean| the less likely of both classes has the probability
    Phi(-m / sqrt v) + sum_k c_k (J_k(m) - J_k(-m)), in which all terms are scaled by the largest.

    The relative error of both probabilities is at most 5e-8 in exact arithmetic, whatever mean and var are.
    Cost: 21 evaluations of `erfcx`.
    """
    size = jnp.abs(mean)
    v = jnp.maximum(var, 1e-12 * (1.0 + size**2))
    rest = jnp.maximum(size - v, 0.0)
    peak = jnp.where(size > v, 0.5 * v - size, -0.5 * size**2 / v)
    share = jnp.exp(-0.5 * rest**2 / v)
    root = jnp.sqrt(2.0 * v)
    order = jnp.asarray(np.arange(1.0, len(_SERIES) + 1), v.dtype)
    near = (order * v - size) / root
    half = 0.5 * share * erfcx(jnp.abs(near))
    whole = jnp.exp(jnp.minimum(0.5 * (order**2 - 1.0) * v - (order - 1.0) * size, 0.0))
    inside = jnp.where(near > 0, half, whole - half)
    outside = 0.5 * share * erfcx((order * v + size) / root)
    total = 0.5 * share * erfcx(size / root) + jnp.asarray(_SERIES, v.dtype) @ (inside - outside)
    less = peak + jnp.log(total)
    more = jnp.log1p(-jnp.exp(less))
    return jnp.where(mean > 0, less, more), jnp.where(mean > 0, more, less)


@record
class LogitPredictive(Predictive):
    """A label in {0, 1} whose logit is normal: P(1) = E[sigmoid(eta)], eta ~ N(loc, spread).

    Attributes:
        loc: the mean of the logit, a scalar.
        spread: its variance, a scalar.

    Example:
        >>> wide = LogitPredictive(jnp.asarray(0.0), jnp.asarray(9.0))
        >>> [round(chance, 3) for chance in wide.probs.tolist()]
        [0.5, 0.5]
    """

    loc: Array
    spread: Array

    @property
    def discrete(self) -> bool:
        return True

    @property
    def log_probs(self) -> Array:
        """log P(0) and log P(1), (2,)."""
        return jnp.stack(log_logistic_normal(self.loc, self.spread))

    @property
    def probs(self) -> Array:
        """P(0) and P(1), (2,)."""
        return jnp.exp(self.log_probs)

    @property
    def mean(self) -> Array:
        """P(1)."""
        return self.probs[1]

    @property
    def var(self) -> Array:
        """P(0) P(1)."""
        return jnp.prod(self.probs)

    def log_prob(self, y: PyTree) -> Array:
        """log P(y); for a label between 0 and 1, log P(0) and log P(1) in its proportion."""
        label = jnp.asarray(y).astype(self.loc.dtype).reshape(())
        no, yes = log_logistic_normal(self.loc, self.spread)
        return jnp.where(label > 0, label * yes, 0.0) + jnp.where(label < 1, (1 - label) * no, 0.0)

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        return jax.random.bernoulli(key, self.mean, shape).astype(self.loc.dtype)

    def cdf(self, y: PyTree) -> Array:
        """P(Y <= y)."""
        value = jnp.asarray(y)
        return jnp.where(value < 0, 0.0, jnp.where(value < 1, self.probs[0], 1.0))

    def quantile(self, p: ArrayLike) -> Array:
        """0 up to the probability of 0, and 1 above."""
        return (jnp.asarray(p, self.loc.dtype) > self.probs[0]).astype(self.loc.dtype)

    def sharper(self, factor: Array) -> LogitPredictive:
        """The forecast for factor * eta."""
        times = as_like(factor, self.loc)
        return LogitPredictive(times * self.loc, times**2 * self.spread)


class _Rate(Protocol):
    """The part of a likelihood of counts that is needed."""

    def log_prob(self, eta: Array, y: PyTree) -> Array: ...


_NODES = 64
DROP = 30.0
"""The log density, relative to its largest, at which an integral over nodes ends."""


def trapezoid(low: Array, high: Array) -> tuple[Array, Array]:
    """Equally spaced nodes and the log of their distance."""
    steps = jnp.asarray(np.linspace(0.0, 1.0, _NODES), low.dtype)
    return low + (high - low) * steps, jnp.log((high - low) / (_NODES - 1))


@record
class RatePredictive(MixturePredictive):
    """A count whose log-rate is normal: y ~ Poisson(exp(eta)), eta ~ N(loc, spread).

    Mean and variance are exact. `log_prob` takes 64 equally spaced nodes that reach from the mode of
    p(y | eta) N(eta) to where it has fallen by 30 in its logarithm. `cdf` and `quantile` average over the
    fixed nodes of `MixturePredictive`.

    Attributes:
        loc, spread: mean and variance of the log-rate, scalars.

    Example:
        >>> import credo
        >>> wide = credo.Poisson().linearized(jnp.zeros(1), jnp.eye(1))
        >>> round(float(wide.mean), 4)
        1.6487
    """

    loc: Array
    spread: Array

    @property
    def mean(self) -> Array:
        """exp(loc + spread / 2)."""
        return jnp.exp(self.loc + 0.5 * self.spread)

    @property
    def var(self) -> Array:
        """The mean, and its square times exp(spread) - 1."""
        return self.mean + self.mean**2 * jnp.expm1(self.spread)

    def scaled(self, scale: ArrayLike) -> RatePredictive:
        """The forecast for `scale` times the variance of the log-rate."""
        nodes = super().scaled(scale)
        return replace(self, etas=nodes.etas, spread=as_like(scale, self.loc) * self.spread)

    def log_prob(self, y: PyTree) -> Array:
        """log p(y)."""
        count = jnp.asarray(y).astype(self.loc.dtype).reshape(())
        floor = 1e-12 * (1.0 + self.loc**2)
        v = jnp.maximum(self.spread, floor)
        mode = _log_rate_mode(count, self.loc, v)
        rate = jnp.exp(mode)
        # The log density falls by (exp(d) - 1 - d) rate + d^2 / (2 v) at the distance d of its mode.
        flat = jnp.sqrt(2.0 * DROP * v)
        steep = jnp.sqrt(2.0 * DROP / rate)
        low = mode - jnp.minimum(flat, 1.1 * steep + DROP / rate)
        high = mode + jnp.minimum(flat, jnp.where(rate > 0.5 * DROP, steep, jnp.log1p(2.0 * DROP / rate)))
        etas, step = trapezoid(low, high)
        logs = jax.vmap(lambda eta: self.likelihood.log_prob(eta[None], count))(etas)
        logs = logs - 0.5 * ((etas - self.loc) ** 2 / v + jnp.log(2 * jnp.pi * v))
        wide = jss.logsumexp(logs) + step
        return jnp.where(self.spread > floor, wide, self.likelihood.log_prob(self.loc[None], count))


def _log_rate_mode(count: Array, loc: Array, var: Array) -> Array:
    """The log-rate at which y eta - exp(eta) - (eta - loc)^2 / (2 var) is largest: Newton's method.

    With w = var exp(eta) it solves w + log w = log var + loc + var y, which is concave in log w: from the
    right of its root Newton's steps go down to it.
    """
    target = jnp.log(var) + loc + var * count
    log_w = jnp.where(target > 1.0, jnp.log(jnp.maximum(target, 1.0)), target)

    def newton(_: int, log_w: Array) -> Array:
        w = jnp.exp(log_w)
        return log_w - (w + log_w - target) / (w + 1.0)

    root: Array = jax.lax.fori_loop(0, 8, newton, log_w)
    return root - jnp.log(var)


@record
class ShiftedStudentT(Predictive):
    """y = eta + scale t(df) with a normal eta ~ N(loc, spread).

    A t is a normal whose precision is Gamma(df / 2, df / 2) / scale^2. Given this precision y is normal, and
    the logarithm of it is integrated by 64 equally spaced nodes, for `log_prob` where y puts them.

    Attributes:
        loc, spread: mean and variance of eta, scalars.
        df, scale: the degrees of freedom and the scale of the noise, scalars.

    Example:
        >>> import credo
        >>> float(credo.StudentT(4.0).linearized(jnp.zeros(1), jnp.eye(1)).var)
        3.0
    """

    loc: Array
    spread: Array
    df: Array
    scale: Array

    @property
    def mean(self) -> Array:
        """The location (for df <= 1, where no mean exists, the median)."""
        return self.loc

    @property
    def var(self) -> Array:
        """spread + scale^2 df / (df - 2), infinite for df <= 2."""
        ratio = jnp.where(self.df > 2, self.df / jnp.where(self.df > 2, self.df - 2, 1.0), jnp.inf)
        return self.spread + ratio * self.scale**2

    def _nodes(self, far: Array) -> tuple[Array, Array, Array]:
        """Nodes of the log precision, their log densities and log distance, for y `far` scales away."""
        df = self.df
        low = -jnp.log1p(far**2 / (df + 1.0)) - 8.0 * jnp.sqrt(2.0 / (df + 1.0)) - 30.0 / (df + 1.0)
        high = jnp.log1p(8.0 * jnp.sqrt(2.0 / df) + 60.0 / df)
        logs, step = trapezoid(low, high)
        half = 0.5 * df
        density = half * (logs - jnp.exp(logs)) + half * jnp.log(half) - jss.gammaln(half)
        return logs, density, step

    def log_prob(self, y: PyTree) -> Array:
        """log p(y)."""
        gap = jnp.asarray(y).astype(self.loc.dtype).reshape(()) - self.loc
        logs, density, step = self._nodes(gap / self.scale)
        var = self.spread + self.scale**2 * jnp.exp(-logs)
        return jss.logsumexp(density - 0.5 * (gap**2 / var + jnp.log(2 * jnp.pi * var))) + step

    def cdf(self, y: PyTree) -> Array:
        """P(Y <= y)."""
        gap = jnp.asarray(y).astype(self.loc.dtype) - self.loc
        logs, density, step = self._nodes(jnp.abs(gap) / self.scale)
        sd = jnp.sqrt(self.spread + self.scale**2 * jnp.exp(-logs))
        return jnp.exp(density + step) @ jst.norm.cdf(gap / sd)

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        first, second = jax.random.split(key)
        eta = self.loc + safe_sqrt(self.spread) * jax.random.normal(first, shape, self.loc.dtype)
        return eta + self.scale * jax.random.t(second, self.df, shape, self.loc.dtype)

    @verb
    def quantile(self, p: ArrayLike) -> Array:
        """The quantile, by bisection on the distribution function."""
        around = jnp.sqrt(self.spread + self.scale**2)
        return search_quantile(self.cdf, p, self.loc, around, jnp.abs(self.loc), False)
