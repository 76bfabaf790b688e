"""What a covariance S (P, P) is asked for, split by who asks.

| role | who asks | what |
|---|---|---|
| `Readable` | forecasts, curvatures, draws | J S and J S J', variances, draws, the determinant |
| `Updatable` | rules | what remains after an observation |
| `Movable` | dynamics | what remains after a move of the parameters |
| `Invertible` | rules that weigh a prior again | products with the precision |
| `Collapsible` | mixtures | one covariance for several |

A `Covariance` has the first three, which is what a learner needs: nine methods to write. The other two are
extra. What one rule alone asks for is not a role: it stands beside the rule, in `credo.learners.rules`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Protocol, TypeVar

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError
from credo.core.types import Array
from credo.linalg.gains import kalman_weights
from credo.linalg.jacobians import Crossed, DenseRows, Rows, as_rows

__all__ = [
    "Collapsible",
    "Covariance",
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
    """An expected Hessian that can be measured in three forms, of which a covariance chooses one."""

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
    """A positive definite P x P matrix S, held in some economical form; never mutated."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number P of rows."""

    @abstractmethod
    def couple(self, rows: Array | Rows) -> tuple[Crossed, Array]:
        """The products J S (k, P) and J S J' (k, k) for rows J (k, P), sharing the work.

        The latter is positive semi-definite by construction.
        """

    @abstractmethod
    def color(self, deviates: Array) -> Array:
        """Standard normal numbers (..., `deviates`) as draws (..., P) of N(0, S), linearly and exactly."""

    @abstractmethod
    def diag(self) -> Array:
        """The variances (P,)."""

    def mv(self, rows: Array) -> Array:
        """The product rows S, for one vector (P,) or several (k, P); S is symmetric, so this is also S v."""
        return self.couple(rows.reshape(-1, self.size))[0].dense().reshape(rows.shape)

    def push(self, jacobian: Array | Rows) -> Array:
        """The covariance J S J' (C, C) of the outputs of a linear map J (C, P)."""
        return self.couple(jacobian)[1]

    def dense(self) -> Array:
        """The matrix S (P, P); for inspection and tests."""
        return self.mv(jnp.eye(self.size, dtype=self.dtype))

    def logdet(self) -> Array:
        """The logarithm of the determinant of S; cost P^3, unless a class knows better."""
        log_det: Array = jnp.linalg.slogdet(self.dense())[1]
        return log_det

    @property
    def deviates(self) -> int:
        """How many standard normal numbers make a draw."""
        return self.size

    @property
    def dtype(self) -> jnp.dtype:
        """The dtype of the numbers here."""
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
        """The same rows in the form that this covariance multiplies best: an array, unless a class knows
        better.
        """
        return DenseRows(rows.dense())

    def hessian(self, forms: HessianForms[M]) -> M:
        """The expected Hessian in the form that this covariance can hold: whole, unless a class forgets."""
        return forms.whole()


class Updatable(Readable):
    """A covariance that observations are taken into."""

    forgets: ClassVar[bool] = True
    """Whether `condition` keeps only a part; where it keeps all, the kept and the joint gain are the same."""

    @abstractmethod
    def condition(self, factor: Array | Rows) -> Covariance:
        """Add the precision B' B of the rows B (k, P), then keep what the family keeps."""

    @abstractmethod
    def add_precision(self, precision: Array) -> Covariance:
        """Add a diagonal precision (P,), exactly."""

    def absorb(self, rows: Array | Rows, residual: Array, root: Array) -> tuple[Array, Covariance]:
        """Kalman's update with a local model of gradient J' e and Hessian -J' A A' J.

        The mean moves by S J' inv(I + A A' J S J') e, which is the move of the exact posterior, before
        anything is forgotten.

        Arguments:
            rows: J (k, P).
            residual: e (k,).
            root: A (k, m), or the diagonal (k,) of a diagonal A.

        Returns:
            How far the mean moves (P,), and the covariance that is kept.
        """
        jacobian = as_rows(rows)
        cross, inner = self.couple(jacobian)
        shift = cross.pull(kalman_weights(root, residual, inner))
        return shift, self.condition(jacobian.attenuate(root))


class Movable(Readable):
    """A covariance that dynamics move."""

    @abstractmethod
    def affine(self, scale: Array, noise: Array) -> Covariance:
        """diag(a) S diag(a) + diag(d), exactly; `scale` a and `noise` d are scalars or (P,)."""

    @abstractmethod
    def scale(self, factor: Array) -> Covariance:
        """S times a positive number, exactly."""

    @abstractmethod
    def linear(self, transition: Array, noise: Array) -> Covariance:
        """F S F' + Q for dense F and Q (P, P), then keep what the family keeps."""

    def mix(self, scale: Array, other: Readable, share: Array) -> Covariance:
        """a^2 S + b T for numbers a = `scale` and b = `share` and a covariance T of the same family.

        Exact for `Full` and `Diagonal`; `LowRank` takes T for diagonal.
        """
        return self.affine(scale, share * other.diag())


class Covariance(Updatable, Movable):
    """The covariance of a belief: it is read, updated and moved.

    To add a family, write one class with `size`, `couple`, `color`, `diag`, `condition`, `add_precision`,
    `affine`, `scale` and `linear`, and a `Family` that starts it. BONG and all dynamics then work with it, at
    every curvature. `BLRRule`, `BOGRule` and `BBBRule` need a step of their own for it, which is registered
    beside the rule.

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


class Invertible(Readable):
    """A covariance that multiplies by its inverse."""

    @abstractmethod
    def precise(self, vector: Array) -> Array:
        """The product inv(S) v for a vector (P,)."""


class Collapsible(Readable):
    """A covariance that stands for a mixture."""

    @abstractmethod
    def collapse(self, weights: Array, deviations: Array) -> Covariance:
        """The covariance of a mixture of K Gaussians: sum_k w_k (S_k + d_k d_k'), then what the family keeps.

        Here the arrays of `self` have a leading axis K.

        Arguments:
            weights: w (K,), which sum to one.
            deviations: d (K, P), the means minus the mixture's mean.
        """


def inverse_of(cov: Readable) -> Callable[[Array], Array]:
    """The product with the precision of S.

    Raises:
        CredoError: the covariance has none.
    """
    if not isinstance(cov, Invertible):
        raise CredoError(
            f"this rule multiplies by the prior's precision, and {type(cov).__name__} has none: it needs a "
            "method precise(vector)."
        )
    return cov.precise


def collapse_mixture(cov: Readable, weights: Array, deviations: Array) -> Covariance:
    """`Collapsible.collapse`.

    Raises:
        CredoError: the covariance cannot stand for a mixture.
    """
    if not isinstance(cov, Collapsible):
        raise CredoError(
            f"a mixture cannot become one belief with a {type(cov).__name__}: it needs a method "
            "collapse(weights, deviations)."
        )
    return cov.collapse(weights, deviations)
