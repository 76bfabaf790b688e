"""The protocol of families: what is kept of a Gaussian's covariance."""

from __future__ import annotations

from abc import ABC, abstractmethod

from credo.core.types import Array
from credo.covariances.roles import Covariance

__all__ = ["Family"]


class Family(ABC):
    """What is kept of a Gaussian's covariance; `Covariance` has a worked example of a family of your own."""

    @abstractmethod
    def init(self, var: Array, *, random: float = 0.0) -> Covariance:
        """The covariance diag(var) for variances (P,).

        Arguments:
            var: the variances.
            random: for a low-rank factor, the share of the precision (from 0, below 1) that random directions
                take at the start; other families have nothing to start and ignore it.
        """

    @abstractmethod
    def from_dense(self, matrix: Array) -> Covariance:
        """The member of the family that stands for a dense covariance (P, P); exact only where the family can
        hold it.
        """
