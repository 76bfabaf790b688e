"""The protocol of rows, and of their products with a covariance."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import jax
import jax.numpy as jnp

from credo.core.records import record
from credo.core.types import Array, DTypeLike
from credo.linalg.matrices import kalman_weights

__all__ = ["Assimilated", "Crossed", "Rows"]


@record
class Assimilated:
    """An update of a diagonal plus low-rank precision: the mean's move (P,), and J S J' (k, k) before it.

    `base` and `factor` are y (P,) and W (R, P) after it.
    """

    shift: Array
    inner: Array
    base: Array
    factor: Array


class Crossed(ABC):
    """The product K = J S (k, P) of rows with a covariance, whose rows are only ever combined."""

    @abstractmethod
    def pull(self, coefficients: Array) -> Array:
        """The combination c K (P,) for coefficients c (k,), or (q, P) for (q, k)."""

    @abstractmethod
    def dense(self) -> Array:
        """K itself, as an array (k, P)."""


class Rows(Crossed):
    """Rows J (k, P) of a Jacobian, as a record, so that they can be stacked and sliced as trees."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(k, P)."""

    @property
    @abstractmethod
    def dtype(self) -> DTypeLike:
        """The dtype of the rows."""

    @property
    @abstractmethod
    def compact(self) -> bool:
        """Whether products of rows cost far less than rows, so that loops should work in their space."""

    @abstractmethod
    def push(self, vector: Array) -> Array:
        """J w (k,) for w (P,), or (k, n) for (P, n)."""

    @abstractmethod
    def mix_rows(self, matrix: Array) -> Rows:
        """The rows M J for M (m, k)."""

    @abstractmethod
    def scale_rows(self, column: Array) -> Rows:
        """The rows diag(c) J for c (k,)."""

    @abstractmethod
    def where(self, keep: Array) -> Rows:
        """The rows with those whose `keep` (k,) is False set to zero."""

    @abstractmethod
    def cross(self, matrix: Array) -> Array:
        """M J' (q, k) for M (q, P)."""

    @abstractmethod
    def gram(self, weight: Array | None = None, other: Rows | None = None) -> Array:
        """J diag(w) H' (k, l) for a weight w (P,), by default 1, and rows H of this kind, by default J."""

    @abstractmethod
    def squares(self, inner: Array | None = None) -> Array:
        """The diagonal (P,) of J' N J for N (k, k); by default of J' J: the column sums of squares."""

    @abstractmethod
    def explained(self, var: Array) -> Array:
        """The diagonal (P,) of diag(v) J' inv(I + J diag(v) J') J: the share of each variance v (P,) that an
        observation of J with unit noise takes away.
        """

    @abstractmethod
    def couple_diagonal(self, var: Array) -> tuple[Crossed, Array]:
        """J S and J S J' for S = diag(v), with v (P,)."""

    @abstractmethod
    def couple_ridge(self, base: Array, factor: Array) -> tuple[Crossed, Array]:
        """J S and J S J' for S = inv(diag(y) + W' W), with y (P,) and W (R, P)."""

    @abstractmethod
    def leading(self, base: Array, factor: Array, rank: int, whitened: bool) -> tuple[Array, Array]:
        """diag(y) + W' W + J' J as y' (P,) and R leading rows W' (R, P), with its diagonal kept exactly.

        The leading rows are those of [W; J], or of [W; J] y^-1/2 where `whitened`.
        """

    @abstractmethod
    def assimilate(
        self, base: Array, factor: Array, residual: Array, root: Array, rank: int, whitened: bool
    ) -> Assimilated:
        """Kalman's update of S = inv(diag(y) + W' W) with gradient J' e and Hessian -J' A A' J.

        The mean moves by S J' inv(I + A A' J S J') e, and the precision becomes what `leading` keeps of
        diag(y) + W' W + J' A A' J; the root A is (k, m), or (k,) if it is diagonal. The move is NaN where
        the precision is not finite.
        """

    def assimilate_diagonal(self, var: Array, residual: Array, root: Array) -> tuple[Array, Array, Array]:
        """Kalman's update of S = diag(v) with gradient J' e and Hessian -J' A A' J.

        It gives how far the mean moves (P,), J S J' (k, k) before the update, and v (P,) after it, whose
        inverse has grown by the diagonal of J' A A' J.
        """
        cross, inner = self.couple_diagonal(var)
        shift = cross.pull(kalman_weights(root, residual, inner))
        return shift, inner, var / (1.0 + var * self.attenuate(root).squares())

    def attenuate(self, root: Array) -> Rows:
        """The rows A' J (m, P) for A (k, m), or for the diagonal (k,) of a diagonal A."""
        if root.ndim == 1:
            return self.scale_rows(root)
        return self.mix_rows(root.T)

    def empty(self, groups: int) -> Self:
        """Rows of zeros, with room for the given number of groups of rows like these."""
        zeros: Self = jax.tree.map(
            lambda leaf: jnp.zeros((groups * leaf.shape[0], *leaf.shape[1:]), leaf.dtype), self
        )
        return zeros

    def write_group(self, rows: Rows, at: Array | int) -> Self:
        """These rows with group number `at` replaced by `rows`."""
        first = jnp.asarray(at, jnp.int32)
        zero = jnp.zeros((), jnp.int32)

        def write(into: Array, leaf: Array) -> Array:
            where = (first * leaf.shape[0], *[zero] * (leaf.ndim - 1))
            return jax.lax.dynamic_update_slice(into, leaf, where)

        result: Self = jax.tree.map(write, self, rows)
        return result
