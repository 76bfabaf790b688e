"""The protocol of families, which say what is kept, and roles that only some covariances have.

Those are products with the precision, and one covariance for a mixture.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from credo.core.errors import CredoError
from credo.core.trees import Unravel
from credo.core.types import Array
from credo.covariances.roles import Covariance, Readable

__all__ = ["Collapsible", "Family", "Invertible", "collapse_mixture", "inverse_of"]


class Family(ABC):
    """The form in which a Gaussian's covariance is kept. To write a family of your own, see `Covariance`.

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


class Invertible(Readable):
    """A covariance that can multiply by its inverse.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.covariances import Full
        >>> Full().init(jnp.asarray([1.0, 4.0])).precise(jnp.ones(2)).tolist()
        [1.0, 0.25]
    """

    @abstractmethod
    def precise(self, vector: Array) -> Array:
        """The product inv(S) v for a vector (P,)."""


class Collapsible(Readable):
    """A covariance that can stand for a mixture.

    Example:
        Two unit Gaussians in equal shares, with means -1 and 1, have variance 2 together:

        >>> import jax, jax.numpy as jnp
        >>> from credo.covariances import Full
        >>> two = jax.vmap(Full(form="dense").init)(jnp.ones((2, 1)))
        >>> two.collapse(jnp.asarray([0.5, 0.5]), jnp.asarray([[-1.0], [1.0]])).diag().tolist()
        [2.0]
    """

    @abstractmethod
    def collapse(self, weights: Array, deviations: Array) -> Covariance:
        """The covariance of a mixture of K Gaussians, in the form that the family keeps.

        The mixture has the covariance sum_k w_k (S_k + d_k d_k'). Here the arrays of `self` have a leading
        axis K.

        Arguments:
            weights: w (K,), which sum to one.
            deviations: d (K, P), the means minus the mixture's mean.

        Returns:
            The covariance that stands for the mixture.
        """


def inverse_of(cov: Readable) -> Callable[[Array], Array]:
    """The function that multiplies a vector (P,) by the precision inv(S).

    Arguments:
        cov: the covariance S.

    Returns:
        Its method `precise`.

    Raises:
        CredoError: the covariance is not `Invertible`.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.covariances import Full
        >>> inverse_of(Full().init(jnp.asarray([1.0, 4.0])))(jnp.ones(2)).tolist()
        [1.0, 0.25]
    """
    if not isinstance(cov, Invertible):
        raise CredoError(
            f"this rule multiplies by the prior's precision, and {type(cov).__name__} has none: it needs a "
            "method precise(vector)."
        )
    return cov.precise


def collapse_mixture(cov: Readable, weights: Array, deviations: Array) -> Covariance:
    """Make one covariance from those of a mixture, by `Collapsible.collapse`.

    Arguments:
        cov: the covariances of the K components, as one record whose arrays have a leading axis K.
        weights: w (K,), which sum to one.
        deviations: d (K, P), the means minus the mixture's mean.

    Returns:
        The covariance that stands for the mixture.

    Raises:
        CredoError: the covariance cannot stand for a mixture.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from credo.covariances import Full
        >>> two = jax.vmap(Full(form="dense").init)(jnp.ones((2, 1)))
        >>> collapse_mixture(two, jnp.asarray([0.5, 0.5]), jnp.asarray([[-1.0], [1.0]])).diag().tolist()
        [2.0]
    """
    if not isinstance(cov, Collapsible):
        raise CredoError(
            f"a mixture cannot become one belief with a {type(cov).__name__}: it needs a method "
            "collapse(weights, deviations)."
        )
    return cov.collapse(weights, deviations)
