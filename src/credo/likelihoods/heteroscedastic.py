"""Normal observations whose noise follows the inputs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.stats as jst

from credo.beliefs.inverse_gamma import InverseGamma
from credo.core.errors import CredoError
from credo.core.records import record
from credo.core.types import Array, PyTree
from credo.likelihoods.base import LikelihoodBase
from credo.likelihoods.mixture import MixturePredictive, integration_nodes
from credo.likelihoods.predictive import Predictive
from credo.likelihoods.secant import secant_root

__all__ = ["HeteroscedasticNormal"]


@record
class HeteroscedasticNormal(LikelihoodBase):
    """Observations y ~ N(eta_0, exp(eta_1)): one output is the mean, the other the log of the noise variance.

    The Fisher information is diag(exp(-eta_1), 1/2). Where an observation lies outside the noise, r^2 = (y -
    eta_0)^2 exp(-eta_1) > 1, the second entry is that of the chord of the score, (r^2 - 1) / (2 log r^2),
    which is larger: one outlier then cannot carry the log variance beyond the value that explains it.
    The model needs 2 outputs, and y is one number.

    Raises:
        CredoError: (later) the model has another number of outputs, or y is not one number.

    Example:
        >>> predictive = HeteroscedasticNormal().plugin(jnp.log(jnp.array([1.0, 4.0])))
        >>> float(predictive.mean), float(predictive.var)
        (0.0, 4.0)
    """

    def check(self, size: int) -> None:
        """Refuse a model that has not 2 outputs.

        Raises:
            CredoError: the model has another number of outputs.
        """
        if size != 2:
            raise CredoError(
                "HeteroscedasticNormal needs a model with 2 outputs, the mean and the log of the noise "
                f"variance; this one has {size}."
            )

    def log_prob(self, eta: Array, y: PyTree) -> Array:
        """log N(y | eta_0, exp(eta_1))."""
        gap = _number(y, eta) - eta[0]
        return -0.5 * (gap**2 * jnp.exp(-eta[1]) + eta[1] + jnp.log(2 * jnp.pi).astype(eta.dtype))

    def score(self, eta: Array, y: PyTree) -> Array:
        """((y - eta_0) exp(-eta_1), (r^2 - 1) / 2)."""
        gap = _number(y, eta) - eta[0]
        precision = jnp.exp(-eta[1])
        return jnp.stack([gap * precision, 0.5 * (gap**2 * precision - 1.0)])

    def fisher_root(self, eta: Array, y: PyTree) -> Array:
        """The root of the Fisher information, with the chord for outliers."""
        square = (_number(y, eta) - eta[0]) ** 2 * jnp.exp(-eta[1])
        return jnp.diag(jnp.stack([jnp.exp(-0.5 * eta[1]), jnp.sqrt(0.5) * secant_root(square)]))

    def mean(self, eta: Array) -> Array:
        """eta_0."""
        return eta[:1]

    def variance(self, eta: Array) -> Array:
        """exp(eta_1)."""
        return jnp.exp(eta[1:])

    def sample(self, eta: Array, key: Array) -> Array:
        return eta[0] + jnp.exp(0.5 * eta[1]) * jax.random.normal(key, (), eta.dtype)

    def cdf(self, eta: Array, y: Array) -> Array:
        """The normal distribution function."""
        return jst.norm.cdf(y, eta[0], jnp.exp(0.5 * eta[1]))

    def linearized(self, eta: Array, cov: Array, noise: InverseGamma | None = None) -> Predictive:
        """The predictive for eta ~ N(eta, cov): a mixture of normals over 32 Gauss-Hermite nodes of eta_1.

        Given eta_1, eta_0 is normal, and is integrated exactly.
        """
        nodes, log_weights = integration_nodes(1, eta.dtype)
        sd = jnp.sqrt(jnp.maximum(cov[1, 1], 0.0))
        slope = cov[0, 1] / jnp.where(sd > 0, sd, 1.0)
        rest = jnp.maximum(cov[0, 0] - slope**2, 0.0)
        means = eta[0] + slope * nodes[:, 0]
        variances = jnp.exp(eta[1] + sd * nodes[:, 0]) + rest
        return MixturePredictive(self, jnp.stack([means, jnp.log(variances)], axis=1), log_weights)


def _number(y: PyTree, eta: Array) -> Array:
    array = jnp.asarray(y).astype(eta.dtype)
    if array.size != 1:
        raise CredoError(f"y must be one number, whose mean and variance are modelled; got {array.shape}.")
    return array.reshape(())
