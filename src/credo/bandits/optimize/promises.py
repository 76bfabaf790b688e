"""The promise of a point under a belief, by each acquisition, as a function of its row that can be climbed.

Expected improvement and the knowledge gradient are logarithms, so that they can be climbed where the promise
itself is 0 in floating point (Ament et al. 2023, "Unexpected improvements to expected improvement for
Bayesian optimization").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
import jax.scipy.special as jss

from credo.core.groups import each, in_order
from credo.core.types import Array, ArrayLike
from credo.learners import GaussianProcess, Learner
from credo.learners.gaussian_process import ProcessBelief
from credo.likelihoods import Expectation, WeightedExpectation
from credo.linalg.matrices import precision

__all__ = [
    "AcquisitionName",
    "Promise",
    "drawn",
    "feasible_log_prob",
    "improvement",
    "knowledge",
    "log_expected_improvement",
    "log_knowledge_gradient",
    "log_mean_excess",
    "upper_bound",
]


HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
TERMS = 8
"""Terms of the series in the tail."""


@jax.custom_jvp
def log_mean_excess(z: Array) -> Array:
    """log h(z) with h(z) = E[max(z + Z, 0)] = phi(z) + z Phi(z), for a standard normal Z.

    With the Mills ratio m = Phi(z) / phi(z), h = phi (1 + z m) for z < -1. Far below 0 it is the asymptotic
    series phi(z) / z^2 (1 - 3 / z^2 + 15 / z^4 - ...), since 1 + z m then has no digits. The derivative is
    Phi(z) / h(z).
    """
    edge = -20.0 if precision(z.dtype).eps < 1e-10 else -7.0
    near = jnp.maximum(z, -1.0)
    top = jnp.log(jnp.exp(-0.5 * near**2 - HALF_LOG_TWO_PI) + near * jss.ndtr(near))
    middle = jnp.clip(z, edge, -1.0)
    log_mills = jss.log_ndtr(middle) + 0.5 * middle**2 + HALF_LOG_TWO_PI
    slope = jnp.log1p(-jnp.exp(log_mills + jnp.log(-middle)))
    far = 1.0 / jnp.minimum(z, edge) ** 2
    term = jnp.ones_like(far)
    series = jnp.zeros_like(far)
    for k in range(TERMS):
        series = series + term
        term = -term * (2 * k + 3) * far
    tail = jnp.log(far) + jnp.log(series)
    return jnp.where(z > -1.0, top, -0.5 * z**2 - HALF_LOG_TWO_PI + jnp.where(z > edge, slope, tail))


@log_mean_excess.defjvp
def _log_mean_excess_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    value = log_mean_excess(primals[0])
    return value, jnp.exp(jss.log_ndtr(primals[0]) - value) * tangents[0]


def log_expected_improvement(mean: Array, sd: Array, best: ArrayLike) -> Array:
    """The logarithm of the expected improvement of a normal value over the best one.

    EI = E[max(f - best, 0)] = sd h((mean - best) / sd),   f ~ N(mean, sd^2),

    with h(z) = phi(z) + z Phi(z). Source: Jones, Schonlau & Welch 1998; the logarithm: Ament et al. 2023.

    Arguments:
        mean, sd: the mean and the standard deviation of the value, above 0, of any shape.
        best: the value to improve on.

    Returns:
        log EI, with relative errors of EI near rounding for all finite arguments.

    Example:
        >>> round(float(jnp.exp(log_expected_improvement(jnp.asarray(0.0), jnp.asarray(1.0), 0.0))), 4)
        0.3989
    """
    return jnp.log(sd) + log_mean_excess((mean - jnp.asarray(best, mean.dtype)) / sd)


def log_knowledge_gradient(means: Array, slopes: Array) -> Array:
    """The logarithm of what one observation adds to the largest of some means.

    KG = E[max_i (a_i + b_i Z)] - max_i a_i,   Z ~ N(0, 1),

    of the means a and of the slopes b_i = cov(f_i, y) / sd(y) by which the observation y moves them. The
    largest line as Z grows is that of a growing slope; where it passes from slope b_j to b_i at c_i,

    KG = sum_i (b_i - b_j) h(-|c_i|),   h(z) = phi(z) + z Phi(z),

    which is exact. Source: Frazier, Powell & Dayanik 2009, equation 14. Here the passages are found by
    comparing all pairs of lines, since shapes are then fixed.

    Arguments:
        means: a (M,).
        slopes: b (M,).

    Returns:
        log KG, -inf if no line passes another. Cost: M^2.

    Example:
        >>> lines = jnp.asarray([0.0, 0.0]), jnp.asarray([0.0, 1.0])
        >>> round(float(jnp.exp(log_knowledge_gradient(*lines))), 4)  # E[max(Z, 0)]
        0.3989
    """
    rise = slopes[:, None] - slopes[None, :]
    fall = means[None, :] - means[:, None]
    places = jnp.arange(means.shape[0])
    # of lines with one slope, the highest counts, and of equal ones the first
    under = (rise == 0) & ((fall > 0) | ((fall == 0) & (places[None, :] < places[:, None])))
    crossing = fall / jnp.where(rise == 0, 1.0, rise)
    after = jnp.where(rise > 0, crossing, -jnp.inf)
    enters = jnp.max(after, axis=1)
    leaves = jnp.min(jnp.where(rise < 0, crossing, jnp.inf), axis=1)
    passes = (enters < leaves) & ~jnp.any(under, axis=1) & jnp.isfinite(enters)
    # where several lines cross at one place, the line before it is the one with the smallest slope
    before = jnp.argmax(jnp.where(after >= enters[:, None], rise, -1.0), axis=1)
    step = jnp.where(passes, jnp.take_along_axis(rise, before[:, None], axis=1)[:, 0], 1.0)
    place = jnp.where(passes, enters, 0.0)
    terms = jnp.log(step) + log_mean_excess(-jnp.abs(place))
    return _log_sum(jnp.where(passes, terms, -jnp.inf))


def _log_sum(terms: Array) -> Array:
    """log sum exp of terms (M,), -inf and without a slope where all are -inf."""
    top = jax.lax.stop_gradient(jnp.max(terms))
    there = jnp.isfinite(top)
    total = jnp.sum(jnp.exp(terms - jnp.where(there, top, 0.0)))
    return jnp.where(there, top + jnp.log(jnp.where(there, total, 1.0)), -jnp.inf)


AcquisitionName: TypeAlias = Literal["ei", "kg", "thompson", "ucb"]
"""The rule by which the next point is chosen."""

Promise: TypeAlias = Callable[[Array], Array]
"""From a row (D,) to a number, which is large where a trial promises much."""


def _log_improvement(distribution: Expectation, best: Array, sign: float) -> Array:
    """log EI of the one number of an expectation; of a mixture, that of its parts, averaged."""
    if isinstance(distribution, WeightedExpectation):
        logs: Array = in_order(each(lambda part: _log_improvement(part, best, sign), distribution.parts))
        return jss.logsumexp(distribution.log_weights + logs)
    mean = sign * distribution.mean[..., 0]
    sd = distribution.sd[..., 0]
    return log_expected_improvement(mean, jnp.maximum(sd, precision(sd.dtype).tiny), best)


def improvement(learner: Learner[Any], belief: Any, best: Array, sign: float) -> Promise:
    """The logarithm of the expected improvement over the best expected value of a trial."""

    def promise(row: Array) -> Array:
        return _log_improvement(learner.expect(belief, learner.inputs_of(row)), best, sign)

    return promise


def knowledge(learner: GaussianProcess, belief: ProcessBelief, rows: Array, sign: float) -> Promise:
    """The logarithm of what a trial adds to the best expected value of some rows (A, D) and its own."""

    def promise(row: Array) -> Array:
        means, cov = learner.joint(belief, jnp.concatenate([row[None, :], rows]))
        var = jnp.maximum(cov[0, 0], precision(cov.dtype).eps * belief.signal_var)
        slopes = cov[0].at[0].set(var) / jnp.sqrt(var + belief.noise_var)
        return log_knowledge_gradient(sign * means, sign * slopes)

    return promise


def upper_bound(learner: Learner[Any], belief: Any, width: ArrayLike, sign: float) -> Promise:
    """The expected value, and `width` standard deviations."""

    def promise(row: Array) -> Array:
        distribution = learner.expect(belief, learner.inputs_of(row))
        return sign * distribution.mean[0] + width * distribution.sd[0]

    return promise


def drawn(learner: Learner[Any], belief: Any, key: Array, sign: float) -> Promise:
    """One function that is drawn from the belief."""
    function = learner.sample_function(belief, key)

    def promise(row: Array) -> Array:
        return sign * jnp.reshape(function(learner.inputs_of(row)), ())

    return promise


def feasible_log_prob(learner: GaussianProcess, belief: ProcessBelief, row: Array) -> Array:
    """log P(a trial at a row does not fail), of a process that was told 1 for success and -1 for failure.

    log Phi(mean / sqrt(var + noise)): the sign of a normal number ("label regression": Rasmussen & Williams
    2006, section 6.5).
    """
    distribution = learner.forecast(belief, row)
    return jax.scipy.special.log_ndtr(jnp.reshape(distribution.mean / jnp.sqrt(distribution.var), ()))
