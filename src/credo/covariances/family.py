"""The protocol of families, which say what is kept of a Gaussian's covariance."""

from __future__ import annotations

from abc import ABC, abstractmethod

from credo.core.trees import Unravel
from credo.core.types import Array
from credo.covariances.roles import Covariance

__all__ = ["Family"]


class Family(ABC):
    """What is kept of a Gaussian's covariance. To write a family of your own, see `Covariance`.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.covariances import Diagonal, Full, LowRank
        >>> [type(family.init(jnp.ones(3))).__name__ for family in (Full(), Diagonal(), LowRank(1))]
        ['RootCovariance', 'DiagonalCovariance', 'LowRankCovariance']
    """

    def over(self, unravel: Unravel) -> Family:
        """The family for parameters of a given layout: itself, unless it tells parameters apart."""
        return self

    @abstractmethod
    def init(self, var: Array, *, random: float = 0.0) -> Covariance:
        """The covariance diag(var) for variances (P,).

        Arguments:
            var: the variances.
            random: for a low-rank factor, the share of the precision (at least 0 and below 1) that random
                directions hold at the start; other families ignore it.
        """

    @abstractmethod
    def from_dense(self, matrix: Array) -> Covariance:
        """The member of the family that stands for a dense covariance (P, P).

        It is exact only where the family can hold the given matrix.
        """
