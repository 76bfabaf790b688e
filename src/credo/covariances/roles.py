"""The roles of a covariance S (P, P): what each part of the library asks of it.

| role | who asks | what for |
|---|---|---|
| `Readable` | forecasts, curvatures, draws | J S and J S J', variances, draws, the determinant |
| `Updatable` | rules | the covariance after an observation |
| `Movable` | dynamics | the covariance after a move of the parameters |
| `Invertible` | rules that return to the prior | products with the precision |
| `Collapsible` | mixtures | one covariance in place of several |

A `Covariance` has the first three roles, which are all that a learner needs: nine methods to write. The other
two are optional. What only one rule asks for is not a role, and is kept
beside that rule, in `credo.learners.rules`.

A `Family` says what is kept of a covariance.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Protocol, TypeVar

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError
from credo.core.trees import Unravel
from credo.core.types import Array
from credo.linalg.jacobians import Crossed, DenseRows, Rows, as_rows
from credo.linalg.matrices import kalman_weights, log_det

__all__ = [
    "Collapsible",
    "Covariance",
    "Family",
    "HessianForms",
    "Invertible",
    "Movable",
    "Readable",
    "Updatable",
    "collapse_mixture",
    "inverse_of",
]

M = TypeVar("M")
M_co = TypeVar("M_co", covariant=True)


class HessianForms(Protocol[M_co]):
    """An expected Hessian that can be measured in three forms, of which a covariance chooses one.

    Example:
        >>> from credo.covariances import Diagonal
        >>> class Known:
        ...     def whole(self): return jnp.asarray([[2.0, 1.0], [1.0, 3.0]])
        ...     def diagonal(self): return jnp.diag(self.whole())
        ...     def leading(self): return self.whole()[:1]
        >>> Diagonal().init(jnp.ones(2)).hessian(Known()).tolist()
        [2.0, 3.0]
    """

    def whole(self) -> M_co:
        """The P x P matrix."""
        ...

    def diagonal(self) -> M_co:
        """Its diagonal (P,)."""
        ...

    def leading(self) -> M_co:
        """Its leading directions (R, P)."""
        ...


class Readable(ABC):
    """A positive definite P x P matrix S, held in some economical form and never mutated.

    Example:
        >>> from credo.covariances import Diagonal
        >>> cov = Diagonal().init(jnp.asarray([1.0, 4.0]))
        >>> cov.sd.tolist(), cov.push(jnp.ones((1, 2))).tolist()
        ([1.0, 2.0], [[5.0]])
    """

    layered: ClassVar[bool] = False
    """Whether rows of dense layers are wanted as outer products, however small the network is."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number P of rows."""

    @abstractmethod
    def couple(self, rows: Array | Rows) -> tuple[Crossed, Array]:
        """The products J S (k, P) and J S J' (k, k) for rows J (k, P), computed together.

        The second product is positive semi-definite by construction.
        """

    @abstractmethod
    def color(self, deviates: Array) -> Array:
        """Turn standard normal numbers (..., `deviates`) into draws (..., P) of N(0, S), by a linear map."""

    @abstractmethod
    def diag(self) -> Array:
        """The variances (P,)."""

    def mv(self, rows: Array) -> Array:
        """The product of S with one vector (P,) or several rows (k, P)."""
        return self.couple(rows.reshape(-1, self.size))[0].dense().reshape(rows.shape)

    def push(self, jacobian: Array | Rows) -> Array:
        """The covariance J S J' (C, C) of the outputs of a linear map J (C, P)."""
        return self.couple(jacobian)[1]

    def dense(self) -> Array:
        """The matrix S (P, P), for inspection and tests."""
        return self.mv(jnp.eye(self.size, dtype=self.dtype))

    def logdet(self) -> Array:
        """The logarithm of the determinant of S. The cost is P^3 unless a class knows a cheaper way."""
        return log_det(self.dense())

    @property
    def deviates(self) -> int:
        """The number of standard normal numbers that one draw needs."""
        return self.size

    @property
    def dtype(self) -> jnp.dtype:
        """The dtype of the arrays that hold S."""
        dtype: jnp.dtype = jax.tree.leaves(self)[0].dtype
        return dtype

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Exact draws from N(0, S), of shape `shape` + (P,)."""
        return self.color(jax.random.normal(key, (*shape, self.deviates), self.dtype))

    @property
    def sd(self) -> Array:
        """The standard deviations (P,)."""
        return jnp.sqrt(self.diag())

    def admit(self, rows: Rows) -> Rows:
        """The same rows in the form that this covariance multiplies most cheaply.

        That form is an array unless a class chooses another.
        """
        return DenseRows(rows.dense())

    def hessian(self, forms: HessianForms[M]) -> M:
        """The expected Hessian in the form that this covariance can hold: whole unless a class forgets."""
        return forms.whole()


class Updatable(Readable):
    """A covariance that can take in observations.

    Example:
        Observe the first parameter once, with noise variance 1 and residual 1:

        >>> from credo.covariances import Full
        >>> row, one = jnp.asarray([[1.0, 0.0]]), jnp.ones(1)
        >>> shift, kept = Full().init(jnp.asarray([1.0, 4.0])).absorb(row, one, one)
        >>> [round(value, 4) for value in shift.tolist() + kept.diag().tolist()]
        [0.5, 0.0, 0.5, 4.0]
    """

    forgets: ClassVar[bool] = True
    """Whether `condition` keeps only a part of the precision.

    Where it keeps all of it, the gain of the kept covariance equals the gain of the exact posterior.
    """

    vouches: ClassVar[bool] = False
    """Whether the move that `absorb` returns is NaN wherever the covariance beside it is not finite.

    Then a learner looks at the mean alone to accept or refuse an observation. A covariance of P x P numbers
    vouches for itself by the few rows that changed it; to read it again would cost as much as the update.
    """

    @abstractmethod
    def condition(self, factor: Array | Rows) -> Covariance:
        """Add the precision B' B of the rows B (k, P), then reduce the result to what the family keeps."""

    @abstractmethod
    def add_precision(self, precision: Array) -> Covariance:
        """Add a diagonal precision (P,), exactly."""

    def absorb(self, rows: Array | Rows, residual: Array, root: Array) -> tuple[Array, Covariance]:
        """Kalman's update with a local model of gradient J' e and Hessian -J' A A' J.

        The mean moves by S J' inv(I + A A' J S J') e. This is how far the mean of the exact posterior moves,
        before anything is forgotten.

        Arguments:
            rows: J (k, P).
            residual: e (k,).
            root: A (k, m), or the diagonal (k,) of a diagonal A.

        Returns:
            The move of the mean (P,): NaN for a covariance that is not finite, if the class `vouches`;
            and the covariance that is kept.
        """
        jacobian = as_rows(rows)
        cross, inner = self.couple(jacobian)
        shift = cross.pull(kalman_weights(root, residual, inner))
        return shift, self.condition(jacobian.attenuate(root))

    def assimilate(self, rows: Array | Rows, residual: Array, root: Array) -> tuple[Array, Covariance, Array]:
        """`absorb`, together with J S J' (k, k) before the update.

        Returns:
            The move of the mean (P,), the covariance that is kept, and J S J'. A family whose products are
            dear may take both from the same passes.
        """
        shift, cov = self.absorb(rows, residual, root)
        return shift, cov, self.push(rows)


class Movable(Readable):
    """A covariance that dynamics can move.

    Example:
        >>> from credo.covariances import Diagonal
        >>> cov = Diagonal().init(jnp.asarray([1.0, 4.0]))
        >>> cov.affine(2.0, 1.0).diag().tolist(), cov.scale(0.5).diag().tolist()
        ([5.0, 17.0], [0.5, 2.0])
    """

    @abstractmethod
    def affine(self, scale: Array, noise: Array) -> Covariance:
        """The covariance diag(a) S diag(a) + diag(d), exactly.

        Arguments:
            scale: a, a scalar or an array (P,).
            noise: d, a scalar or an array (P,).
        """

    @abstractmethod
    def scale(self, factor: Array) -> Covariance:
        """S times a positive number, exactly."""

    @abstractmethod
    def linear(self, transition: Array, noise: Array) -> Covariance:
        """The covariance F S F' + Q for dense F and Q (P, P), reduced to what the family keeps."""

    def linear_diagonal(self, transition: Array, noise: Array) -> Covariance:
        """The covariance F S F' + diag(d) for variances d (P,), reduced to what the family keeps."""
        return self.linear(transition, jnp.diag(noise))

    def mix(self, scale: Array, other: Readable, share: Array) -> Covariance:
        """The covariance a^2 S + b T, for a covariance T of the same family.

        The result is exact for `Full` and `Diagonal`; `LowRank` treats T as if it were diagonal.

        Arguments:
            scale: the number a.
            other: T.
            share: the number b.
        """
        return self.affine(scale, share * other.diag())

    def rescale(self, scale: Array) -> Covariance:
        """The covariance diag(a) S diag(a), exactly; no noise is added.

        Arguments:
            scale: a, a positive array (P,).
        """
        return self.affine(scale, jnp.zeros_like(scale))

    def affine_within(self, scale: Array, noise: Array, limit: Array) -> Covariance:
        """`affine`, and then `rescale` where a variance would exceed a limit: D M D for the result M of
        `affine`, with D = diag(min(1, sqrt(limit / diag M))).

        Arguments:
            scale, noise: as for `affine`.
            limit: the largest variances that are allowed (P,), above 0.
        """
        moved = self.affine(scale, noise)
        return moved.rescale(jnp.sqrt(jnp.minimum(limit / moved.diag(), 1.0)))


class Covariance(Updatable, Movable):
    """The covariance of a belief, which can be read, updated and moved.

    To add a family, write one class with `size`, `couple`, `color`, `diag`, `condition`, `add_precision`,
    `affine`, `scale` and `linear`, and a `Family` that starts it. BONG and all dynamics then work with it, at
    every curvature. `BLRRule`, `BOGRule` and `BBBRule` each need a step written for the new family, which is
    registered beside the rule.

    Example:
        A family that keeps one variance for all parameters:

        >>> import credo
        >>> from credo.covariances import Covariance, Family
        >>> @credo.record
        ... class OneVariance(Covariance):
        ...     var: jax.Array
        ...     count: int = credo.static_field()
        ...
        ...     @property
        ...     def size(self):
        ...         return self.count
        ...
        ...     def couple(self, rows):
        ...         return as_rows(rows).couple_diagonal(self.diag())
        ...
        ...     def color(self, deviates):
        ...         return jnp.sqrt(self.var) * deviates
        ...
        ...     def diag(self):
        ...         return jnp.full(self.count, self.var)
        ...
        ...     def condition(self, factor):
        ...         return self.add_precision(as_rows(factor).squares())
        ...
        ...     def add_precision(self, precision):
        ...         return OneVariance(1 / (1 / self.var + jnp.mean(precision)), self.count)
        ...
        ...     def affine(self, scale, noise):
        ...         return OneVariance(jnp.mean(scale**2) * self.var + jnp.mean(noise), self.count)
        ...
        ...     def scale(self, factor):
        ...         return OneVariance(factor * self.var, self.count)
        ...
        ...     def linear(self, transition, noise):
        ...         moved = self.var * jnp.sum(transition**2) + jnp.trace(noise)
        ...         return OneVariance(moved / self.count, self.count)
        >>> @credo.record
        ... class One(Family):
        ...     def init(self, var, *, random=0.0):
        ...         return OneVariance(jnp.mean(var), var.shape[0])
        ...
        ...     def from_dense(self, matrix):
        ...         return OneVariance(jnp.trace(matrix) / len(matrix), len(matrix))
        >>> learner = credo.bong(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)), One())
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> [round(value, 3) for value in belief.mean.tolist() + belief.sd.tolist()]
        [0.476, 0.476, 0.302, 0.302]
    """


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
