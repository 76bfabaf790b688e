"""Normal observations whose noise follows the inputs: two outputs, the mean and the log of the spread."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import jax.scipy.stats as jst

from credo.core.errors import CredoError
from credo.core.records import record
from credo.core.types import Array, PyTree
from credo.likelihoods.base import LikelihoodBase

__all__ = ["NormalSpread"]

_WIDEST = 20.0
"""The largest size of the log of a standard deviation, beyond which squares leave single precision."""


@record
class NormalSpread(LikelihoodBase):
    """Observations y ~ N(eta_0, exp(2 eta_1)): the model's outputs are the mean and the log of the noise sd.

    The curvature is the expected (Fisher) one, diag(exp(-2 eta_1), 2). The Hessian itself is indefinite:
    after an outlier it would make the spread almost certain, at a value that the outlier chose. eta_1 is cut
    off at +-20, which is a spread of 5e8 in the units of y.

    Example:
        Noise that grows with x, learned from the default prior:

        >>> import credo, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(-1, 1, (2000, 1))
        >>> y = 2 * x[:, 0] + np.exp(x[:, 0]) * rng.normal(size=2000)
        >>> net = credo.MLP(2, (10,))
        >>> learner = credo.bong(credo.Model(net, NormalSpread()), credo.Full())
        >>> belief, trace = credo.run(learner, learner.init(net.init(jax.random.key(0), (1,))), x, y)
        >>> narrow, wide = (float(learner.forecast(belief, jnp.array([at])).sd) for at in (-0.8, 0.8))
        >>> bool(trace.ok.all()), 0.3 < narrow < 0.7, 1.5 < wide < 3
        (True, True, True)
    """

    def check(self, size: int) -> None:
        """Refuse a model that has not two outputs.

        Raises:
            CredoError: the model has another number of outputs.
        """
        if size != 2:
            raise CredoError(
                f"NormalSpread needs a model with 2 outputs, mean and log sd; this one has {size}."
            )

    def _log_sd(self, eta: Array) -> Array:
        return jnp.clip(eta[1], -_WIDEST, _WIDEST)

    def log_prob(self, eta: Array, y: PyTree) -> Array:
        """-((y - eta_0) exp(-eta_1))^2 / 2 - eta_1 - log(2 pi) / 2."""
        log_sd = self._log_sd(eta)
        gap = _number(y, eta) - eta[0]
        return -0.5 * (gap * jnp.exp(-log_sd)) ** 2 - log_sd - 0.5 * math.log(2 * math.pi)

    def score(self, eta: Array, y: PyTree) -> Array:
        """(z exp(-eta_1), z^2 - 1) with z = (y - eta_0) exp(-eta_1)."""
        shrink = jnp.exp(-self._log_sd(eta))
        z = (_number(y, eta) - eta[0]) * shrink
        return jnp.stack([z * shrink, z**2 - 1.0])

    def fisher_root(self, eta: Array, y: PyTree) -> Array:
        """diag(exp(-eta_1), sqrt 2)."""
        return jnp.diag(jnp.stack([jnp.exp(-self._log_sd(eta)), jnp.full((), math.sqrt(2.0), eta.dtype)]))

    def mean(self, eta: Array) -> Array:
        """eta_0."""
        return eta[:1]

    def variance(self, eta: Array) -> Array:
        """exp(2 eta_1)."""
        return jnp.exp(2.0 * self._log_sd(eta))[None]

    def sample(self, eta: Array, key: Array) -> Array:
        """One draw."""
        return eta[0] + jnp.exp(self._log_sd(eta)) * jax.random.normal(key, (), eta.dtype)

    def cdf(self, eta: Array, y: Array) -> Array:
        """The normal distribution function."""
        return jst.norm.cdf(y, eta[0], jnp.exp(self._log_sd(eta)))


def _number(y: PyTree, eta: Array) -> Array:
    array = jnp.asarray(y).astype(eta.dtype)
    if array.size != 1:
        raise CredoError(f"y must be one number, for NormalSpread; got shape {array.shape}.")
    return array.reshape(())
