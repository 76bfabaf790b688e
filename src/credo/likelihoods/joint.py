"""Several independent observations as one: the likelihood of a mini-batch."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl

from credo.core.errors import CredoError
from credo.core.records import record
from credo.likelihoods.base import LikelihoodBase
from credo.likelihoods.normal import Normal
from credo.likelihoods.predictive import NormalPredictive, Predictive, StudentTPredictive

__all__ = ["Rows"]


@record
class Rows(LikelihoodBase):
    """B independent rows of one likelihood: eta is (B C,), y has a leading axis of length B; log-likelihoods
    are summed.

    Arguments:
        each: the likelihood of one row.
    """

    each: Any

    @property
    def discrete(self) -> bool:  # type: ignore[override]
        """Whether y takes whole-number values."""
        return self.each.discrete

    def _split(self, eta: jax.Array, y: Any) -> jax.Array:
        return eta.reshape(self.rows(y), -1)

    def rows(self, y: Any) -> int:
        """The number B of rows."""
        leaves = jax.tree.leaves(y)
        if not leaves or jnp.ndim(leaves[0]) == 0:
            raise CredoError("y of a joint model must have a leading axis, one entry a row; got a scalar.")
        return jnp.shape(leaves[0])[0]

    def observed(self, y: Any) -> jax.Array:
        """Which rows are observed: booleans (B,)."""
        return jax.vmap(self.each.observed)(y)

    def log_prob(self, eta: jax.Array, y: Any) -> jax.Array:
        """The sum over rows."""
        return jnp.sum(jax.vmap(self.each.log_prob)(self._split(eta, y), y))

    def score(self, eta: jax.Array, y: Any) -> jax.Array:
        """The rows' scores, one after another."""
        return jax.vmap(self.each.score)(self._split(eta, y), y).reshape(-1)

    def fisher_root(self, eta: jax.Array, y: Any) -> jax.Array:
        """Block diagonal in the rows."""
        return jsl.block_diag(*jax.vmap(self.each.fisher_root)(self._split(eta, y), y))

    def init_noise(self, dtype: Any) -> Any:
        """The prior of the noise of one row."""
        return self.each.init_noise(dtype)

    def given_noise(self, noise: Any) -> Rows:
        """The rows in units of their noise."""
        return Rows(self.each.given_noise(noise))

    def linearized(self, eta: jax.Array, cov: jax.Array, noise: Any = None) -> Predictive:
        """The joint predictive of all rows: exact for Normal, else by quasi-random nodes in B C dimensions
        (rough).
        """
        if isinstance(self.each, Normal):
            return self.each.tiled(eta.shape[0]).linearized(eta, cov, noise)
        return super().linearized(eta, cov, noise)

    def log_evidence(
        self, predictive: Predictive, eta: jax.Array, y: Any, observed: jax.Array, noise: Any = None
    ) -> jax.Array:
        """log p of the `observed` rows (B,) under the joint predictive, in which the other rows have no
        covariance.
        """
        if isinstance(predictive, NormalPredictive | StudentTPredictive):
            return predictive.log_prob(y, jnp.repeat(observed, eta.shape[0] // observed.shape[0]))
        alone = jax.vmap(lambda e, v: self.each.plugin(e, noise).log_prob(v))(self._split(eta, y), y)
        return predictive.log_prob(y) - jnp.sum(jnp.where(observed, 0.0, alone))
