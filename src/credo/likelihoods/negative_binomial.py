"""Counts with more spread than a Poisson: the negative binomial, whose dispersion may be learned."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.beliefs.conjugate import InverseGamma
from credo.core.errors import CredoError, require_positive
from credo.core.records import record
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, PyTree
from credo.likelihoods.base import LikelihoodBase
from credo.likelihoods.dispersed import DispersedPredictive, count_chance, log_negative_binomial
from credo.likelihoods.mixture import hermite_nodes, integration_nodes
from credo.likelihoods.predictive import Predictive
from credo.likelihoods.quantiles import digamma_gap
from credo.likelihoods.scalar import secant_root
from credo.linalg.matrices import safe_sqrt

__all__ = ["NegativeBinomial"]

_LIMITS = (-20.0, 12.0)
"""The least and the largest log dispersion: beyond, the law is a Poisson, or next to all counts are 0."""

_TAIL, _LEAST = 5.0, 0.05
"""How much larger than believed, in logs, the dispersion must be at which the variance is the square of an
error, before the score of the dispersion is bounded; and the least information by which it is.

Of 200 streams of 400 counts whose mean was known (m = 20, a = .25), the error of log a had a root mean square
of 1.02 to 1.03 standard deviations with bounds from 4, 5 and 6 on, as without one. Where the mean was a
surprise (300 at first taken for 1), it was 1.4, and 67 without one.
"""

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
        >>> law = NegativeBinomial(0.5).plugin(jnp.log(jnp.asarray([4.0])))
        >>> round(float(law.mean), 3), round(float(law.var), 3)
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
        shape, product = jnp.exp(-self.log_dispersion(eta)), self._product(eta)
        gap = (jnp.exp(eta[0]) - count) / (1.0 + product)
        return -shape * (digamma_gap(shape, count) - jnp.log1p(product)) - gap

    def _information(self, eta: Array) -> Array:
        """What stands for the Fisher information of log a, a scalar of at most 1/2."""
        product = self._product(eta)
        share = product / (1.0 + product)
        return 0.5 * share**2 / (1.0 + jnp.exp(self.log_dispersion(eta)) / (1.0 + product))

    def _reach(self, eta: Array, count: Array) -> Array:
        """How far one count may move log a, a scalar: hardly bounded if it could be expected."""
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
        floor, own = jnp.floor(y), self.log_dispersion(eta)
        chance = count_chance(jnp.maximum(floor, 0.0), eta[0], jnp.zeros_like(own), own)
        return jnp.where(floor < 0, 0.0, chance)

    def linearized(self, eta: Array, cov: Array, noise: InverseGamma | None = None) -> Predictive:
        """The predictive for eta ~ N(eta, cov)."""
        sd = safe_sqrt(jnp.maximum(cov[0, 0], 0.0))
        steps, log_weights = integration_nodes(1, eta.dtype)
        if self.dispersion is not None:
            etas, own = eta[None, :] + sd * steps, self.log_dispersion(eta)
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
