"""Forecasts of standardised observations, in the units in which they are observed."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.core.groups import each
from credo.core.records import record, replace
from credo.core.types import Array, ArrayLike, PyTree
from credo.likelihoods.expectation import Expectation, LatentExpectation
from credo.likelihoods.predictive import Predictive
from credo.likelihoods.weighted import IndependentExpectation, WeightedExpectation, value_cdf

__all__ = ["FARTHEST", "Rescaled", "RescaledExpectation", "rescaled"]

FARTHEST = 1e3
"""An observation farther from the location than this many scales is judged as one that is so far: no density
can be as small as a number on a wire may be large."""


@record
class Rescaled(Predictive):
    """The distribution of y = location + scale z, where z has a distribution of its own.

        p(y) = p_z((y - location) / scale) / scale

    An observation beyond 1,000 scales is judged by the density at 1,000 scales, so that one absurd number
    costs a bounded score under heavy tails.

    Arguments:
        predictive: the distribution of z, of one output.
        location: a number.
        scale: a number above 0.

    Example:
        >>> import credo
        >>> standard = credo.Normal(1.0).plugin(jnp.zeros(1))
        >>> distribution = Rescaled(standard, jnp.asarray(10.0), jnp.asarray(2.0))
        >>> float(distribution.mean), float(distribution.sd), float(distribution.cdf(10.0))
        (10.0, 2.0, 0.5)
    """

    predictive: Predictive
    location: Array
    scale: Array

    def _standard(self, y: PyTree) -> Array:
        return (jnp.asarray(y, self.scale.dtype) - self.location) / self.scale

    @property
    def mean(self) -> Array:
        return self.location + self.scale * self.predictive.mean

    @property
    def var(self) -> Array:
        return self.scale**2 * self.predictive.var

    @property
    def sd(self) -> Array:
        return self.scale * self.predictive.sd

    def log_prob(self, y: PyTree) -> Array:
        z = self._standard(y)
        near = jnp.where(jnp.isfinite(z), jnp.clip(z, -FARTHEST, FARTHEST), z)
        return self.predictive.log_prob(near) - jnp.log(self.scale)

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        return self.location + self.scale * self.predictive.sample(key, shape)

    def cdf(self, y: PyTree) -> Array:
        """P(Y <= y)."""
        return self.predictive.cdf(self._standard(y))

    def quantile(self, p: ArrayLike) -> Array:
        """location + scale * the quantile of z."""
        return self.location + self.scale * self.predictive.quantile(p)

    def heavier(self, df: Array) -> Rescaled:
        """The distribution whose z has heavier tails."""
        return Rescaled(self.predictive.heavier(df), self.location, self.scale)


@record
class RescaledExpectation(Expectation):
    """The belief about E[y] = location + scale E[z], where E[z] has a distribution of its own.

    Arguments:
        expectation: the distribution of E[z].
        location: what is added, a number, or one for every E[y] (K,).
        scale: the factor, a number above 0.

    Example:
        >>> import credo
        >>> arm = credo.BetaBernoulli()
        >>> expected = arm.expect(arm.init(), None)
        >>> distribution = RescaledExpectation(expected, jnp.asarray(1.0), jnp.asarray(4.0))
        >>> float(distribution.mean[0]), round(float(distribution.quantile(0.25)[0]), 3)
        (3.0, 2.0)
    """

    expectation: Expectation
    location: Array
    scale: Array

    @property
    def _linear(self) -> bool:
        """Whether quantiles of E[z] are searched on its own scale."""
        return self.expectation.latent_name == "y"

    @property
    def mean(self) -> Array:
        return self.location + self.scale * self.expectation.mean

    @property
    def var(self) -> Array:
        return self.scale**2 * self.expectation.var

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        draws = self.scale * self.expectation.sample(key, shape)
        return jnp.broadcast_to(self.location, draws.shape) + draws

    def latent_cdf(self, u: Array) -> Array:
        """P(E[y] <= u)."""
        value = (u - self.location) / self.scale
        if self._linear:
            return self.expectation.latent_cdf(value)
        return value_cdf(self.expectation, value)

    def latent_scale(self) -> tuple[Array, Array]:
        """A centre and a spread of E[y]."""
        inner = self.expectation
        centre, spread = inner.latent_scale() if self._linear else (inner.mean, inner.sd)
        return self.location + self.scale * centre, self.scale * spread


def rescaled(distribution: Expectation, location: Array, scale: Array) -> Expectation:
    """The distribution of location + scale E[z], of the same kind where that is of numbers which are normal.

    So what is exact for normal distributions, and for mixtures of them, stays so.

    Arguments:
        distribution: the distribution of E[z].
        location: what is added (K,).
        scale: by which number all are multiplied, at least 0.
    """
    if isinstance(distribution, WeightedExpectation):
        return WeightedExpectation(
            each(lambda one: rescaled(one, location, scale), distribution.parts), distribution.log_weights
        )
    if isinstance(distribution, IndependentExpectation):
        return IndependentExpectation(
            jax.vmap(lambda one, at: rescaled(one, at[None], scale))(distribution.parts, location)
        )
    if isinstance(distribution, LatentExpectation) and distribution.linear:
        factor = None if distribution.factor is None else scale * distribution.factor
        eta = location.reshape(distribution.eta.shape) + scale * distribution.eta
        return replace(distribution, eta=eta, cov=scale**2 * distribution.cov, factor=factor)
    return RescaledExpectation(distribution, location, scale)
