"""Predictives of a count whose mean is log-normal, and whose dispersion is uncertain."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.special as jss
import numpy as np

from credo.core.records import record
from credo.core.types import Array, PyTree
from credo.likelihoods.mixture import MixturePredictive
from credo.likelihoods.quantiles import log_gamma_ratio
from credo.likelihoods.uncertain import DROP, trapezoid
from credo.linalg.matrices import safe_sqrt

__all__ = ["DispersedPredictive", "count_chance", "log_negative_binomial"]


def log_negative_binomial(y: Array, log_mean: Array, log_dispersion: Array) -> Array:
    """log p(y) of a negative binomial with mean m and variance m + a m^2, by log m and log a."""
    shape, log_product = jnp.exp(-log_dispersion), log_mean + log_dispersion
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


_NEWTON, _HALVINGS = 10, 16
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
    shape, sd = jnp.exp(-log_dispersion), safe_sqrt(jnp.maximum(spread, 0.0))
    up, centre = y + 1.0, loc + log_dispersion
    mode, total = jnp.log(up) + log_dispersion, up + shape
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
    """How far below and above its mode a log-concave density has fallen by 30 in its logarithm (2,), at most
    `most`: that of slope times (t - at) - total log(1 + exp(t)) - precision (t - at)^2 / 2, by halving.
    """
    base, slope = jax.nn.softplus(at), jax.nn.sigmoid(at)
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
    total, bend = y + shape, -log_dispersion
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
