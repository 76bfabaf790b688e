"""The likelihood of a mini-batch: several independent observations taken as one."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl

from credo.beliefs.conjugate import InverseGamma
from credo.core.errors import CredoError
from credo.core.records import record
from credo.core.types import Array, DTypeLike, PyTree
from credo.likelihoods.base import LikelihoodBase
from credo.likelihoods.elliptical import NormalPredictive, StudentTPredictive
from credo.likelihoods.normal import Normal
from credo.likelihoods.predictive import Predictive

__all__ = ["Rows"]


@record
class Rows(LikelihoodBase):
    """B independent rows of one likelihood taken as one observation, with their log-likelihoods summed.

    eta is (B C,), and y has a leading axis of length B. `credo.joint` builds such models.

    Arguments:
        each: the likelihood of one row.

    Example:
        >>> Rows(Normal(1.0)).score(jnp.zeros(2), jnp.array([1.0, 2.0]))
        Array([1., 2.], dtype=float32)
    """

    each: LikelihoodBase

    @property
    def discrete(self) -> bool:  # type: ignore[override]
        """Whether y takes whole-number values."""
        return self.each.discrete

    @property
    def quadratic(self) -> bool:  # type: ignore[override]
        """Whether log p is quadratic in eta."""
        return self.each.quadratic

    def _split(self, eta: Array, y: PyTree) -> Array:
        return eta.reshape(self.rows(y), -1)

    def rows(self, y: PyTree) -> int:
        """The number B of rows.

        Raises:
            CredoError: y is a scalar.
        """
        leaves = jax.tree.leaves(y)
        if not leaves or jnp.ndim(leaves[0]) == 0:
            raise CredoError("y of a joint model must have a leading axis, one entry a row; got a scalar.")
        return jnp.shape(leaves[0])[0]

    def observed(self, y: PyTree) -> Array:
        """Which rows are observed: booleans (B,)."""
        return jax.vmap(self.each.observed)(y)

    def seen(self, y: PyTree) -> Array | None:
        """Which outputs of which rows are observed (B C,), where rows may be observed in part."""
        outputs: Array | None = jax.vmap(self.each.seen)(y)
        if outputs is None:
            return None
        return outputs.reshape(-1)

    def log_prob(self, eta: Array, y: PyTree) -> Array:
        """The sum over rows."""
        return jnp.sum(jax.vmap(self.each.log_prob)(self._split(eta, y), y))

    def score(self, eta: Array, y: PyTree) -> Array:
        """The rows' scores, one after another."""
        return jax.vmap(self.each.score)(self._split(eta, y), y).reshape(-1)

    def fisher_root(self, eta: Array, y: PyTree) -> Array:
        """Block diagonal in the rows."""
        roots = jax.vmap(self.each.fisher_root)(self._split(eta, y), y)
        blocks: Array = jsl.block_diag(*roots)
        return blocks

    def information_root(self, eta: Array, y: PyTree) -> Array | None:
        """Block diagonal in the rows; None if it is that of `fisher_root`."""
        roots: Array | None = jax.vmap(self.each.information_root)(self._split(eta, y), y)
        if roots is None:
            return None
        blocks: Array = jsl.block_diag(*roots)
        return blocks

    def init_noise(self, dtype: DTypeLike) -> InverseGamma | None:
        """The prior of the noise of one row."""
        return self.each.init_noise(dtype)

    def given_noise(self, noise: InverseGamma | None) -> Rows:
        """The rows in units of their noise."""
        return Rows(self.each.given_noise(noise))

    def linearized(self, eta: Array, cov: Array, noise: InverseGamma | None = None) -> Predictive:
        """The joint predictive of all rows.

        It is exact for `Normal`. Other likelihoods take quasi-random nodes in B C dimensions, which is a
        rough approximation.
        """
        if isinstance(self.each, Normal):
            return self.each.tiled(eta.shape[0]).linearized(eta, cov, noise)
        return super().linearized(eta, cov, noise)

    def log_evidence(
        self,
        predictive: Predictive,
        eta: Array,
        y: PyTree,
        observed: Array,
        noise: InverseGamma | None = None,
    ) -> Array:
        """log p of the rows that were observed, a scalar.

        Arguments:
            predictive: the joint predictive, in which rows that were not observed have no covariance.
            eta: the outputs (B C,).
            y: the observations, with a leading axis B.
            observed: which rows were observed, booleans (B,).
            noise: the belief about the noise, if it is learned.
        """
        if isinstance(predictive, NormalPredictive | StudentTPredictive):
            return predictive.log_prob(y, jnp.repeat(observed, eta.shape[0] // observed.shape[0]))
        alone = jax.vmap(lambda e, v: self.each.plugin(e, noise).log_prob(v))(self._split(eta, y), y)
        return predictive.log_prob(y) - jnp.sum(jnp.where(observed, 0.0, alone))
