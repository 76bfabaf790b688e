"""Counts with more spread than a Poisson: the negative binomial, whose dispersion may be learned."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.special as jss
import numpy as np

from credo.beliefs.conjugate import InverseGamma
from credo.core.errors import CredoError, require_positive
from credo.core.records import record
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, PyTree
from credo.likelihoods.base import LikelihoodBase
from credo.likelihoods.mixture import MixturePredictive, hermite_nodes, integration_nodes
from credo.likelihoods.predictive import Predictive
from credo.likelihoods.quantiles import digamma_gap, log_gamma_ratio
from credo.likelihoods.scalar import secant_root
from credo.likelihoods.uncertain import DROP, trapezoid
from credo.linalg.matrices import safe_sqrt

__all__ = ["NegativeBinomial"]


def log_negative_binomial(y: Array, log_mean: Array, log_dispersion: Array) -> Array:
    """log p(y) of a negative binomial with mean m and variance m + a m^2, by log m and log a."""
    shape = jnp.exp(-log_dispersion)
    log_product = log_mean + log_dispersion
    ratio = log_gamma_ratio(shape, y) - jss.gammaln(y + 1.0)
    return ratio + y * log_product - (y + shape) * jax.nn.softplus(log_product)


@record
class DispersedPredictive(MixturePredictive):
    """A count that is negative binomial, with a normal log mean for each of some log dispersions.

    Mean and variance are exact for these dispersions. `log_prob` takes 64 equally spaced nodes of the log
    mean for each of them, from where p(y | eta) N(eta) has fallen by 30 in its logarithm to where it has
    again, and `cdf` 40 of another integral. `sample` draws from the fixed nodes of `MixturePredictive`.

    Attributes:
        locs: the means of the log mean (K,).
        logs: the log dispersions (K,).
        log_shares: their log weights (K,).
        spread: the variance of the log mean given the dispersion, a scalar.

    Example:
        >>> import credo
        >>> wide = credo.NegativeBinomial(0.5).linearized(jnp.zeros(1), jnp.eye(1))
        >>> round(float(wide.mean), 4)
        1.6487
    """

    locs: Array
    logs: Array
    log_shares: Array
    spread: Array

    @property
    def mean(self) -> Array:
        """exp(loc + spread / 2), averaged."""
        return jnp.exp(self.log_shares) @ jnp.exp(self.locs + 0.5 * self.spread)

    @property
    def var(self) -> Array:
        """E[m] + E[(1 + a) m^2] - E[m]^2."""
        means = jnp.exp(self.locs + 0.5 * self.spread)
        # E[m^2] - E[m]^2 by expm1 and the deviations of the means, which do not cancel
        within = means + means**2 * (jnp.expm1(self.spread) + jnp.exp(self.logs + self.spread))
        shares = jnp.exp(self.log_shares)
        return shares @ (within + (means - shares @ means) ** 2)

    def log_prob(self, y: PyTree) -> Array:
        """log p(y)."""
        count = jnp.asarray(y).astype(self.locs.dtype).reshape(())
        each = jax.vmap(lambda loc, log: _log_integral(count, loc, self.spread, log))(self.locs, self.logs)
        return jss.logsumexp(each + self.log_shares)

    def cdf(self, y: PyTree) -> Array:
        """P(Y <= y)."""
        floor = jnp.floor(jnp.asarray(y).astype(self.locs.dtype))
        count = jnp.maximum(floor, 0.0)
        each = jax.vmap(lambda loc, log: count_chance(count, loc, self.spread, log))(self.locs, self.logs)
        return jnp.where(floor < 0, 0.0, jnp.exp(self.log_shares) @ each)


_NEWTON = 10
_HALVINGS = 16
_PLACES, _WEIGHTS = np.polynomial.legendre.leggauss(40)
_LONG = 30.0
_SIDES = 6.0
"""Beyond so many standard deviations of the log mean its distribution function is 0 or 1."""


def _log_integral(y: Array, loc: Array, spread: Array, log_dispersion: Array) -> Array:
    """log of the integral of p(y | eta, a) N(eta | loc, spread) over eta, for scalars."""
    floor = 1e-12 * (1.0 + loc**2)
    v = jnp.maximum(spread, floor)
    shape = jnp.exp(-log_dispersion)
    mode = _mode(y, loc, v, shape, log_dispersion)
    low, high = _reach(mode + log_dispersion, y + shape, 1.0 / v, jnp.sqrt(2.0 * DROP * v))
    etas, step = trapezoid(mode - low, mode + high)
    logs = y * etas - (y + shape) * jax.nn.softplus(etas + log_dispersion)
    logs = logs - 0.5 * ((etas - loc) ** 2 / v + jnp.log(2 * jnp.pi * v))
    wide = jss.logsumexp(logs) + step
    narrow = y * loc - (y + shape) * jax.nn.softplus(loc + log_dispersion)
    constant = log_gamma_ratio(shape, y) - jss.gammaln(y + 1.0) + y * log_dispersion
    return constant + jnp.where(spread > floor, wide, narrow)


def count_chance(y: Array, loc: Array, spread: Array, log_dispersion: Array) -> Array:
    """P(Y <= y) for a log mean ~ N(loc, spread), for scalars and a whole y of at least 0.

    A Poisson count is at most y where a Gamma(y + 1) exceeds its rate. So with Gamma rates, P(Y <= y | eta) =
    P(t > eta + log a) where t is the logit of a Beta(y + 1, 1/a), and

        P(Y <= y) = integral of p(t) Phi((t - u) / sd) dt,    u = loc + log a,    sd^2 = spread.

    Above u + 6 sd the second factor is 1, so that this part is an incomplete beta function, or two panels of
    40 Gauss-Legendre nodes; the rest, down to u - 6 sd or to where p has fallen by 30 in its logarithm, takes
    one more panel.
    """
    shape = jnp.exp(-log_dispersion)
    sd = safe_sqrt(jnp.maximum(spread, 0.0))
    up = y + 1.0
    centre = loc + log_dispersion
    mode = jnp.log(up) + log_dispersion
    total = up + shape
    most = jnp.abs(centre - mode) + _SIDES * sd + 40.0  # at a slope of 1 p has fallen so far
    left, right = _reach(mode, total, jnp.zeros_like(sd), most)
    end = mode + right
    high = jnp.minimum(centre + _SIDES * sd, end)
    low = jnp.minimum(jnp.maximum(centre - _SIDES * sd, mode - left), high)
    base = jss.gammaln(up) - log_gamma_ratio(shape, up)  # log Beta(y + 1, 1/a)

    def panel(start: Array, stop: Array, below: bool) -> Array:
        """The integral of p, or of p Phi, from one place to another."""
        half = 0.5 * jnp.maximum(stop - start, 0.0)
        places = start + half * (1.0 + jnp.asarray(_PLACES, sd.dtype))
        values = jnp.exp(up * places - total * jax.nn.softplus(places) - base)
        if below:
            values = values * jss.ndtr((places - centre) / jnp.where(sd > 0, sd, 1.0))
        integral: Array = half * (values @ jnp.asarray(_WEIGHTS, sd.dtype))
        return integral

    first = jnp.maximum(high, mode - left)
    middle = jnp.maximum(first, mode)
    above = panel(first, middle, False) + panel(middle, end, False)
    # the incomplete beta function loses digits as its arguments grow, and the panels as the tail does
    few = jnp.minimum(shape, _LONG)
    above = jnp.where(shape > _LONG, above, jss.betainc(few, up, jax.nn.sigmoid(-high)))
    return jnp.clip(above + panel(low, high, True), 0.0, 1.0)


def _reach(at: Array, total: Array, precision: Array, most: Array) -> Array:
    """The distances below and above its mode at which a log-concave density has fallen by 30 in its logarithm
    (2,), at most `most`: that of slope times (t - at) - total log(1 + exp(t)) - precision (t - at)^2 / 2, by
    halving.
    """
    base = jax.nn.softplus(at)
    slope = jax.nn.sigmoid(at)
    sides = jnp.asarray([-1.0, 1.0], at.dtype)

    def fall(step: Array) -> Array:
        curved = total * (jax.nn.softplus(at + step) - base - slope * step)
        return curved + 0.5 * precision * step**2

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = 0.5 * (low + high)
        near = fall(sides * middle) < DROP
        return jnp.where(near, middle, low), jnp.where(near, high, middle)

    ends = jnp.zeros(2, at.dtype), jnp.full(2, most, at.dtype)
    reach: Array = jax.lax.fori_loop(0, _HALVINGS, halve, ends)[1]
    return reach


def _mode(y: Array, loc: Array, var: Array, shape: Array, log_dispersion: Array) -> Array:
    """The log mean m at which y m - (y + 1/a) log(1 + a exp(m)) - (m - loc)^2 / (2 var) is largest.

    The negative slope is (m - loc) / var - y + (y + 1/a) sigmoid(m + log a): convex to the left of -log a and
    concave to the right. The root lies between loc and log y. From the end of it that lies outwards on the
    side of the root, or from -log a if that is nearer, Newton's steps go to the root and never beyond it.
    """
    total = y + shape
    bend = -log_dispersion
    own = jnp.where(y > 0, jnp.log(jnp.maximum(y, 1e-30)), loc)
    left = (bend - loc) / var - y + 0.5 * total > 0
    start = jnp.where(
        left, jnp.minimum(bend, jnp.maximum(loc, own)), jnp.maximum(bend, jnp.minimum(loc, own))
    )

    def newton(_: int, m: Array) -> Array:
        chance = jax.nn.sigmoid(m - bend)
        slope = (m - loc) / var - y + total * chance
        return m - slope / (1.0 / var + total * chance * (1.0 - chance))

    root: Array = jax.lax.fori_loop(0, _NEWTON, newton, start)
    return root


_LIMITS = (-20.0, 12.0)
"""Least and largest log dispersion: beyond, the distribution is a Poisson, or next to all counts are 0."""

# How much larger than believed, in logs, the dispersion must be at which the variance is the square of an
# error, before the score of the dispersion is bounded; and the least information by which it is.
#
# Of 200 streams of 400 counts whose mean was known (m = 20, a = .25), the error of log a had a root mean
# square of 1.02 to 1.03 standard deviations with bounds from 4, 5 and 6 on, as without one. Where the mean
# was a surprise (300 at first taken for 1), it was 1.4, and 67 without one.
_TAIL = 5.0
_LEAST = 0.05

_NODES = 3
"""The Gauss-Hermite nodes of the log dispersion."""


@record
class NegativeBinomial(LikelihoodBase):
    """Observations y that are counts with mean m = exp(eta_0) and variance m + a m^2.

        p(y | m, a) = Gamma(y + 1/a) / (Gamma(1/a) y!) (1 + a m)^(-1/a) (a m / (1 + a m))^y

    It is a Poisson whose rate is Gamma with mean m and variance a m^2, and the Poisson itself as the
    dispersion a goes to 0 (Lawless 1987, "Negative binomial and mixed Poisson regression"). If the dispersion
    is not given, the model has a second output, eta_1 = log a, which may follow the inputs. The means and the
    dispersion are then learned together, and a y below 0 counts as a missing observation.

    Arguments:
        dispersion: a, above 0; None makes its logarithm the second output of the model.

    Raises:
        CredoError: `dispersion` is not above 0, or (later) the model has another number of outputs.

    The Fisher information is diagonal. Its first entry, m / (1 + a m), is exact. The second has no closed
    form, and (a m)^2 / (2 (1 + a m) (1 + a + a m)) stands for it, which is wrong by a third at most for
    a <= 3. The first entry is that of the chord instead if a count is so large that the chord is steeper: one
    count then moves eta_0 no farther than to log y. With `BONGRule` the chord bounds the step alone, and the
    precision grows by the Fisher information.

    A count far from its mean says more of the mean than of the dispersion, and the information of a chord
    would make it certain of both. So the information of the dispersion is never more than the above, and the
    second entry of the score is bounded if (y - m)^2 is about e^5 times what the dispersion explains: one
    count then moves eta_1 little farther than to the dispersion at which the variance is (y - m)^2.

    Example:
        >>> import credo
        >>> distribution = NegativeBinomial(0.5).plugin(jnp.log(jnp.asarray([4.0])))
        >>> round(float(distribution.mean), 3), round(float(distribution.var), 3)
        (4.0, 12.0)
        >>> model = credo.Model(lambda w, x: w @ x, NegativeBinomial())  # w has two rows
        >>> learner = credo.extended_kalman(model)
        >>> belief, info = learner.step(learner.init(jnp.zeros((2, 1))), jnp.ones(1), 3.0)
        >>> bool(info.ok), float(learner.forecast(belief, jnp.ones(1)).mean) > 1.5
        (True, True)
    """

    discrete = True
    dispersion: ArrayLike | None = None

    def __post_init__(self) -> None:
        if self.dispersion is not None:
            require_positive("dispersion", self.dispersion)

    def check(self, size: int) -> None:
        """Refuse a model with another number of outputs than 1, or 2 if the dispersion is learned.

        Raises:
            CredoError: the model has another number of outputs.
        """
        if self.dispersion is not None and size != 1:
            raise CredoError(f"NegativeBinomial(a) needs a model with 1 output; this one has {size}.")
        if self.dispersion is None and size != 2:
            raise CredoError(
                "NegativeBinomial() needs a model with 2 outputs, the logs of mean and dispersion; "
                f"this one has {size}."
            )

    def log_dispersion(self, eta: Array) -> Array:
        """log a, a scalar."""
        logs = eta[1] if self.dispersion is None else jnp.log(as_like(self.dispersion, eta))
        return jnp.clip(logs, *_LIMITS)

    def observed(self, y: PyTree) -> Array:
        """Whether y is a count: at least 0."""
        return jnp.all(jnp.asarray(y) >= 0)

    def log_prob(self, eta: Array, y: PyTree) -> Array:
        """log p(y | m, a)."""
        return log_negative_binomial(_count(y, eta), eta[0], self.log_dispersion(eta))

    def score(self, eta: Array, y: PyTree) -> Array:
        """(y - m) / (1 + a m), and the derivative by log a, bounded for counts that nobody could expect."""
        count = _count(y, eta)
        first = (count - jnp.exp(eta[:1])) / (1.0 + self._product(eta))
        if self.dispersion is not None:
            return first
        most = jnp.maximum(self._information(eta), _LEAST) * self._reach(eta, count)
        return jnp.append(first, jnp.minimum(self._slope(eta, count), most))

    def _slope(self, eta: Array, count: Array) -> Array:
        """The derivative of log p(y) by log a, a scalar, whose large terms cancel before they are rounded."""
        shape = jnp.exp(-self.log_dispersion(eta))
        product = self._product(eta)
        gap = (jnp.exp(eta[0]) - count) / (1.0 + product)
        return -shape * (digamma_gap(shape, count) - jnp.log1p(product)) - gap

    def _information(self, eta: Array) -> Array:
        """The stand-in for the Fisher information of log a, a scalar of at most 1/2."""
        product = self._product(eta)
        share = product / (1.0 + product)
        return 0.5 * share**2 / (1.0 + jnp.exp(self.log_dispersion(eta)) / (1.0 + product))

    def _reach(self, eta: Array, count: Array) -> Array:
        """The distance that one count may move log a, a scalar: hardly bounded if it could be expected."""
        excess = (count - jnp.exp(eta[0])) ** 2 - jnp.exp(eta[0])
        best = jnp.log(jnp.maximum(excess, 1e-30)) - 2.0 * eta[0]  # there the variance is the squared error
        way = jnp.where(excess > 0, jnp.maximum(best - self.log_dispersion(eta), 0.0), 0.0)
        return (1.0 + way) * jnp.exp(jnp.maximum(_TAIL - way, 0.0))

    def _product(self, eta: Array) -> Array:
        """a m, a scalar."""
        return jnp.exp(jnp.minimum(eta[0] + self.log_dispersion(eta), 80.0))

    def fisher_root(self, eta: Array, y: PyTree) -> Array:
        """The root of the Fisher information; for the mean, of the chord's slope where that is larger."""
        return self._root(eta, self._slant(eta) * secant_root(_count(y, eta) * jnp.exp(-eta[0])))

    def information_root(self, eta: Array, y: PyTree) -> Array | None:
        """The root of the Fisher information."""
        return self._root(eta, self._slant(eta))

    def _slant(self, eta: Array) -> Array:
        """The root of the information of the log mean, a scalar."""
        return jnp.exp(0.5 * eta[0]) / jnp.sqrt(1.0 + self._product(eta))

    def _root(self, eta: Array, first: Array) -> Array:
        """The diagonal root with this first entry."""
        if self.dispersion is not None:
            return first.reshape(1, 1)
        return jnp.diag(jnp.stack([first, jnp.sqrt(self._information(eta))]))

    def mean(self, eta: Array) -> Array:
        """m."""
        return jnp.exp(eta[:1])

    def variance(self, eta: Array) -> Array:
        """m + a m^2."""
        return jnp.exp(eta[:1]) * (1.0 + self._product(eta))

    def sample(self, eta: Array, key: Array) -> Array:
        first, second = jax.random.split(key)
        shape = jnp.exp(-self.log_dispersion(eta))
        rate = jnp.exp(eta[0] + jax.random.loggamma(first, shape, dtype=eta.dtype)) / shape
        return jax.random.poisson(second, rate).astype(eta.dtype)

    def cdf(self, eta: Array, y: Array) -> Array:
        """P(Y <= y)."""
        floor = jnp.floor(y)
        own = self.log_dispersion(eta)
        chance = count_chance(jnp.maximum(floor, 0.0), eta[0], jnp.zeros_like(own), own)
        return jnp.where(floor < 0, 0.0, chance)

    def linearized(self, eta: Array, cov: Array, noise: InverseGamma | None = None) -> Predictive:
        """The predictive for eta ~ N(eta, cov)."""
        sd = safe_sqrt(jnp.maximum(cov[0, 0], 0.0))
        steps, log_weights = integration_nodes(1, eta.dtype)
        if self.dispersion is not None:
            etas = eta[None, :] + sd * steps
            own = self.log_dispersion(eta)
            return DispersedPredictive(
                self, etas, log_weights, eta, own[None], jnp.zeros_like(eta), cov[0, 0]
            )
        # nodes along the mean, where the log dispersion has its conditional mean
        slope = cov[0, 1] / jnp.where(sd > 0, sd, 1.0)
        etas = eta[None, :] + steps * jnp.stack([sd, slope])[None, :]
        points, shares = hermite_nodes(eta.dtype, _NODES)
        other = safe_sqrt(jnp.maximum(cov[1, 1], 0.0))
        tilt = cov[0, 1] / jnp.where(other > 0, other, 1.0)
        rest = jnp.maximum(cov[0, 0] - tilt**2, 0.0)
        logs = jnp.clip(eta[1] + other * points, *_LIMITS)
        return DispersedPredictive(self, etas, log_weights, eta[0] + tilt * points, logs, shares, rest)


def _count(y: PyTree, eta: Array) -> Array:
    array = jnp.asarray(y).astype(eta.dtype)
    if array.size != 1:
        raise CredoError(f"y must be one count; got shape {array.shape}.")
    return array.reshape(())
