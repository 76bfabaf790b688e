"""How far a Newton step may go before it makes matters worse."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.core.records import record
from credo.core.types import Array, PyTree
from credo.likelihoods import Rows as JointRows
from credo.likelihoods.base import LikelihoodBase
from credo.linalg.matrices import kalman_weights, precision

__all__ = ["Objective"]

_HALVINGS = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24)
"""The shares of a step that are tried are 2^-n for these n."""


@record
class Objective:
    """The weighted log-likelihood of one observation (or joint rows) as a function of the outputs eta."""

    likelihood: LikelihoodBase
    y: PyTree
    weight: Array

    def log_prob(self, eta: Array) -> Array:
        """The weighted log p(y | eta), a scalar."""
        if self.weight.size == 1:
            return self.weight.reshape(()) * self.likelihood.log_prob(eta, self.y)
        assert isinstance(self.likelihood, JointRows)
        values = jax.vmap(self.likelihood.each.log_prob)(eta.reshape(self.weight.size, -1), self.y)
        return jnp.sum(jnp.where(self.weight > 0, self.weight * values, 0.0))

    def share(self, eta: Array, root: Array, residual: Array, inner: Array) -> Array:
        """The share of Kalman's step to take: 1, or less where the whole step would overshoot.

        With w = inv(I + A A' M) e the step moves the outputs by M w, and the log posterior of the linearised
        model by log p(y | eta + M w) - log p(y | eta) - w' M w / 2. That is above 0 where log p is quadratic.
        Where log p bends, as for a classifier that is sure and wrong, or a scale whose logarithm is an
        output, it may be far below 0: the step then leads to parameters that both the prior and the
        observation contradict. Of the shares 1/2, 1/4, ... the best one is taken. `root`, `residual` and
        `inner` are A, e and M = J S J' of the local model.
        """
        weights = kalman_weights(root, residual, inner)
        move = inner @ weights
        cost = 0.5 * (weights @ move)

        def gain(share: Array) -> Array:
            return self.log_prob(eta + share * move) - share**2 * cost

        shares = jnp.asarray([0.5**n for n in _HALVINGS], eta.dtype)
        gains = jax.vmap(gain)(shares)
        gains = jnp.where(jnp.isfinite(gains), gains, -jnp.inf)
        best, here = jnp.argmax(gains), self.log_prob(eta)
        slack = 64 * precision(eta.dtype).eps * (1.0 + jnp.abs(here))
        less = jnp.where(gains[best] > here, shares[best], 0.0)
        return jax.lax.stop_gradient(jnp.where(gain(jnp.ones_like(cost)) >= here - slack, 1.0, less))
