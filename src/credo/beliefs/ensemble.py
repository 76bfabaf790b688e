"""A belief that is represented by an ensemble of parameter vectors."""

from __future__ import annotations

from credo.beliefs.gaussian import Anchor
from credo.core.records import record, static_field
from credo.core.trees import Unravel
from credo.core.types import Array, PyTree
from credo.covariances import EnsembleCovariance

__all__ = ["Ensemble"]


@record
class Ensemble:
    """An ensemble of M equally likely members, which is the belief of `credo.enkf`.

    Attributes:
        mean: the members' mean, as a vector (P,).
        deviations: the members minus their mean (M, P).
        key: the key data from which noise is drawn; step t folds in t.
        t: how many times `predict` has been called.
        unravel: how a vector becomes the parameter tree.
        anchor: the prior, kept only for dynamics that return to it.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> learner = credo.enkf(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)), members=20)
        >>> learner.init(jnp.zeros(3)).members.shape
        (20, 3)
    """

    mean: Array
    deviations: Array
    key: Array
    t: Array
    unravel: Unravel = static_field()
    anchor: Anchor | None = None

    @property
    def members(self) -> Array:
        """The members as vectors (M, P)."""
        return self.mean[None, :] + self.deviations

    @property
    def cov(self) -> EnsembleCovariance:
        """The sample covariance, which divides by M - 1."""
        return EnsembleCovariance(self.deviations, self.key)

    @property
    def params(self) -> PyTree:
        """The mean as a parameter tree."""
        return self.unravel(self.mean)

    @property
    def size(self) -> int:
        """The number P of parameters."""
        return self.unravel.size

    @property
    def var(self) -> Array:
        """The sample variances (P,)."""
        return self.cov.diag()

    @property
    def sd(self) -> Array:
        """The sample standard deviations (P,)."""
        return self.cov.sd
