"""Full covariances: as a square root (the default, positive by construction) or as a dense matrix."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal, TypeAlias

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jax.core import Tracer

from credo.core.errors import require_choice
from credo.core.fields import field
from credo.core.records import record, static_field
from credo.core.trees import as_like
from credo.core.types import Array
from credo.covariances.roles import Collapsible, Covariance, Family, Invertible, Readable
from credo.linalg.jacobians import DenseRows, Rows, as_rows
from credo.linalg.matrices import (
    attenuate,
    cholesky,
    crossed,
    framed,
    identity,
    kalman_weights,
    log_det,
    psd_root,
    raised,
    rows_times,
    safe_sqrt,
    scale_rows,
    solve,
    solve_lower,
    symmetric,
    triangularize,
)

__all__ = ["DenseCovariance", "Form", "Full", "FullCovariance", "RootCovariance"]


def vouched(shift: Array, left: Array, right: Array) -> Array:
    """The move of the mean (P,), or NaN if the product left' right of rows (k, P) may not be finite.

    The rows of an update are products with the whole covariance, so they show whatever is not finite in it.
    """
    bound = left.shape[0] * jnp.max(jnp.abs(left)) * jnp.max(jnp.abs(right))
    return jnp.where(jnp.isfinite(jax.lax.stop_gradient(bound)), shift, jnp.nan)


def narrowed(root: Array, white: Array) -> Array:
    """A root of inv(inv(W W') + B' B), given B W: W L'^-1 with L L' = I + W' B' B W. Cost: P^3."""
    chol = cholesky(jnp.eye(root.shape[0], dtype=root.dtype) + white.T @ white)
    return jsl.solve_triangular(chol, root.T, lower=True).T


Form: TypeAlias = Literal["root", "dense"]
"""The form in which a full covariance is held."""


@record
class Full(Family):
    """Keep the whole covariance of P parameters.

    Arguments:
        form: "root" keeps W (P, P) with W W' = S. The belief can then never lose positive definiteness, even
            in float32 and over any number of steps, but dynamics that add noise cost P^3 a step (a QR
            decomposition). "dense" keeps S itself. Adding noise then costs P, but subtraction can lose
            positive definiteness in float32.

    Raises:
        CredoError: `form` has another value.

    Example:
        >>> Full().init(jnp.ones(3)).dense().shape
        (3, 3)
    """

    form: Form = static_field(default="root")

    def __post_init__(self) -> None:
        require_choice("form", self.form, ["root", "dense"])

    def init(self, var: Array, *, random: float = 0.0) -> RootCovariance | DenseCovariance:
        if self.form == "root":
            return RootCovariance(jnp.diag(jnp.sqrt(var)))
        return DenseCovariance(jnp.diag(var))

    def from_dense(self, matrix: Array) -> RootCovariance | DenseCovariance:
        """The covariance `matrix` (P, P), exactly; a singular one only if it is not traced."""
        if self.form == "dense":
            return DenseCovariance(matrix)
        root = cholesky(matrix)
        if not isinstance(matrix, Tracer) and not np.all(np.isfinite(np.asarray(root))):
            root = jnp.asarray(semidefinite_root(np.asarray(matrix)), matrix.dtype)
        return RootCovariance(root)


def semidefinite_root(matrix: np.ndarray) -> np.ndarray:
    """A root W (n, n) with W W' = M of a matrix that may be singular, by its eigenvectors.

    Eigenvalues below the rounding of the largest one are 0: what is known exactly stays known.
    """
    values, vectors = np.linalg.eigh(matrix.astype(np.float64))
    least = np.finfo(matrix.dtype).eps * matrix.shape[0] * max(float(values[-1]), 0.0)
    return vectors * np.sqrt(np.where(values > least, values, 0.0))


class FullCovariance(Covariance, Invertible, Collapsible):
    """A covariance of which nothing is forgotten, with a root W of S = W W'.

    `RootCovariance` and `DenseCovariance` are its two forms. A rule with steps of its own can write them once
    for both forms, by means of `as_root` and `with_root`.

    Example:
        >>> cov = Full().init(jnp.asarray([1.0, 4.0]))
        >>> isinstance(cov, FullCovariance), cov.with_root(2.0 * cov.as_root()).diag().tolist()
        (True, [4.0, 16.0])
    """

    forgets: ClassVar[bool] = False
    vouches: ClassVar[bool] = True

    @abstractmethod
    def as_root(self) -> Array:
        """A square root W (P, P) of S."""

    @abstractmethod
    def with_root(self, root: Array) -> FullCovariance:
        """The covariance W W' in the same form."""

    @abstractmethod
    def _gain(self, rows: Array, residual: Array, root: Array) -> tuple[Array, FullCovariance]:
        """`absorb` by the gain, which multiplies by the rows only once."""

    def precise(self, vector: Array) -> Array:
        """The product inv(S) v. Cost: P^3."""
        root = self.as_root()
        return solve(root.T, solve(root, vector))

    def absorb(self, rows: Array | Rows, residual: Array, root: Array) -> tuple[Array, FullCovariance]:
        """Kalman's update, in one of two ways that depend on the number of rows.

        With fewer rows than parameters, the gain is exact to rounding however small the noise is. With at
        least as many rows, the gain would lose digits; then, with A = B W and L L' = I + A' A, the root
        becomes W L'^-1, and the move is S g with the new S. Cost: k P^2.
        """
        array = as_rows(rows).dense()
        factor = attenuate(root, array)
        if factor.shape[0] < self.size:
            return self._gain(array, residual, root)
        old_root = self.as_root()
        new_root = narrowed(old_root, factor @ old_root)
        shift = vouched(new_root @ (new_root.T @ (residual @ array)), new_root, new_root)
        return shift, self.with_root(new_root)


@record
class RootCovariance(FullCovariance):
    """The covariance S = W W', kept as its square root W (P, P), which need not be triangular.

    Example:
        >>> RootCovariance(2.0 * jnp.eye(3)).diag()
        Array([4., 4., 4.], dtype=float32)
    """

    root: Array

    def as_root(self) -> Array:
        """W."""
        return self.root

    def with_root(self, root: Array) -> RootCovariance:
        """The covariance W W', which keeps this root unchanged."""
        return RootCovariance(root)

    @property
    def size(self) -> int:
        return self.root.shape[-1]

    def couple(self, rows: Array | Rows) -> tuple[DenseRows, Array]:
        """With Z = rows W: Z W' and Z Z'. Cost: 2 k P^2."""
        white = rows_times(as_rows(rows).dense(), self.root)
        return DenseRows(self._color(white)), white @ white.T

    def condition(self, factor: Array | Rows) -> RootCovariance:
        """Andrews' square-root update: with A = W' B' and L L' = I + A' A, W <- W - (W A) L^-T (I + L)^-1 A'.

        The update subtracts no covariances, so the result is positive definite by construction, and it needs
        only a k x k Cholesky factor. Cost: 3 k P^2. Source: Andrews 1968 (the tests compare it with the
        inverse).
        """
        whitened = rows_times(as_rows(factor).dense(), self.root)
        return RootCovariance(self.root - crossed(self._color(whitened), self._narrow(whitened)))

    def _color(self, white: Array) -> Array:
        """Z W' for rows Z (k, P), in the order that XLA multiplies up to twice as fast on a CPU."""
        return (self.root @ white.T).T

    def _narrow(self, whitened: Array) -> Array:
        """(I + L)^-1 L^-1 A' as rows (k, P), given A' = B W."""
        eye = identity(whitened.shape[0], self.root.dtype)
        chol = cholesky(eye + whitened @ whitened.T)
        inner = solve_lower(chol, solve_lower(eye + chol, eye), transpose=True)
        return inner @ whitened

    def _gain(self, rows: Array, residual: Array, root: Array) -> tuple[Array, FullCovariance]:
        """Cost: 3 k P^2."""
        white = rows_times(rows, self.root)
        cross = self._color(white)
        shift = kalman_weights(root, residual, white @ white.T) @ cross
        left = attenuate(root, cross)
        right = self._narrow(attenuate(root, white))
        return vouched(shift, left, right), RootCovariance(self.root - crossed(left, right))

    def add_precision(self, precision: Array) -> RootCovariance:
        """Exact, by one Cholesky factor and one triangular solve. Cost: P^3."""
        sd = safe_sqrt(jnp.broadcast_to(precision, (self.size,)))
        return RootCovariance(narrowed(self.root, sd[:, None] * self.root))

    def affine(self, scale: Array, noise: Array) -> RootCovariance:
        """Exact, by a QR decomposition of [a W, sqrt(d) I]. Cost: P^3."""
        scale = as_like(scale, self.root)
        noise = as_like(noise, self.root)
        root = scale_rows(self.root.T, scale).T
        return RootCovariance(triangularize(root, jnp.diag(safe_sqrt(jnp.broadcast_to(noise, (self.size,))))))

    def mix(self, scale: Array, other: Readable, share: Array) -> RootCovariance:
        """Exact, by a QR decomposition of [a W, sqrt(b) V] with V V' = T. Cost: P^3."""
        assert isinstance(other, RootCovariance)
        return RootCovariance(triangularize(self.root * scale, other.root * safe_sqrt(share)))

    def collapse(self, weights: Array, deviations: Array) -> RootCovariance:
        """Exact, by a QR decomposition of all K roots and deviations. Cost: K P^3."""
        shares = safe_sqrt(weights)
        blocks = jnp.moveaxis(self.root * shares[:, None, None], 0, 1).reshape(self.size, -1)
        return RootCovariance(triangularize(blocks, deviations.T * shares[None, :]))

    def scale(self, factor: Array) -> RootCovariance:
        """Exact. Cost: P^2."""
        return RootCovariance(self.root * jnp.sqrt(as_like(factor, self.root)))

    def linear(self, transition: Array, noise: Array) -> RootCovariance:
        """Exact, by a QR decomposition of [F W, root of Q]. Cost: P^3."""
        return RootCovariance(triangularize(transition @ self.root, psd_root(noise)))

    def linear_diagonal(self, transition: Array, noise: Array) -> RootCovariance:
        """Exact, by a QR decomposition of [F W, sqrt(d) I]. Cost: P^3."""
        return RootCovariance(triangularize(transition @ self.root, jnp.diag(safe_sqrt(noise))))

    def color(self, deviates: Array) -> Array:
        """W e."""
        return deviates @ self.root.T

    def logdet(self) -> Array:
        """2 log |det W|. Cost: P^3."""
        return 2.0 * log_det(self.root)

    def diag(self) -> Array:
        """Row sums of squares of W."""
        return jnp.sum(self.root**2, axis=-1)

    def dense(self) -> Array:
        """W W'."""
        return self.root @ self.root.T

    def rescale(self, scale: Array) -> RootCovariance:
        """The root diag(a) W. Cost: P^2."""
        return RootCovariance(scale[:, None] * self.root)


@record
class DenseCovariance(FullCovariance):
    """The covariance S, kept as the matrix itself (P, P).

    Example:
        >>> DenseCovariance(jnp.eye(3)).condition(jnp.eye(1, 3)).diag()
        Array([0.5, 1. , 1. ], dtype=float32)
    """

    matrix: Array = field("covariance")

    def as_root(self) -> Array:
        """The Cholesky factor of S. Cost: P^3."""
        return cholesky(self.matrix)

    def with_root(self, root: Array) -> DenseCovariance:
        """W W'. Cost: P^3."""
        return DenseCovariance(root @ root.T)

    @property
    def size(self) -> int:
        return self.matrix.shape[-1]

    def couple(self, rows: Array | Rows) -> tuple[DenseRows, Array]:
        """rows S and its product with rows'. Cost: k P^2."""
        array = as_rows(rows).dense()
        cross = rows_times(array, self.matrix)
        return DenseRows(cross), symmetric(cross @ array.T)

    def condition(self, factor: Array | Rows) -> DenseCovariance:
        """S - S B' inv(I + B S B') B S by a k x k Cholesky factor. Cost: k P^2. Exact up to cancellation."""
        rows = as_rows(factor).dense()
        cross = rows_times(rows, self.matrix)
        half = self._halve(cross, symmetric(cross @ rows.T))
        return DenseCovariance(self.matrix - crossed(half, half))

    def _halve(self, cross: Array, inner: Array) -> Array:
        """The rows H (k, P) in S - H' H, given B S and B S B'."""
        chol = cholesky(identity(inner.shape[0], self.matrix.dtype) + inner)
        return solve_lower(chol, cross)

    def _gain(self, rows: Array, residual: Array, root: Array) -> tuple[Array, FullCovariance]:
        """Cost: 2 k P^2."""
        coupled, inner = self.couple(rows)
        cross = coupled.array
        shift = kalman_weights(root, residual, inner) @ cross
        gram = attenuate(root, attenuate(root, inner).T)
        half = self._halve(attenuate(root, cross), gram)
        return vouched(shift, half, half), DenseCovariance(self.matrix - crossed(half, half))

    def add_precision(self, precision: Array) -> DenseCovariance:
        """Exact, by one Cholesky factor, a triangular solve and a product. Cost: P^3.

        No data take an antisymmetric part of S away, and inflation lets it grow at every step. The rounding
        errors of the product are therefore made symmetric.
        """
        sd = safe_sqrt(jnp.broadcast_to(precision, (self.size,)))
        cross = sd[:, None] * self.matrix
        half = self._halve(cross, symmetric(scale_rows(cross, sd)))
        return DenseCovariance(symmetric(self.matrix - crossed(half, half)))

    def affine(self, scale: Array, noise: Array) -> DenseCovariance:
        """Exact. Cost: P^2."""
        scale = as_like(scale, self.matrix)
        noise = as_like(noise, self.matrix)
        return DenseCovariance(raised(framed(self.matrix, scale), noise))

    def affine_within(self, scale: Array, noise: Array, limit: Array) -> DenseCovariance:
        """Exact, in one pass over S, since the variances of the result are known before it. Cost: P^2."""
        scale = as_like(scale, self.matrix)
        noise = as_like(noise, self.matrix)
        within = jnp.sqrt(jnp.minimum(limit / (scale**2 * self.diag() + noise), 1.0))
        return self.affine(scale * within, noise * within**2)

    def mix(self, scale: Array, other: Readable, share: Array) -> DenseCovariance:
        """Exact. Cost: P^2."""
        return DenseCovariance(self.matrix * scale**2 + share * other.dense())

    def collapse(self, weights: Array, deviations: Array) -> DenseCovariance:
        """Exact. Cost: K P^2."""
        spread = scale_rows(deviations.T, weights) @ deviations
        return DenseCovariance(jnp.tensordot(weights, self.matrix, axes=1) + spread)

    def scale(self, factor: Array) -> DenseCovariance:
        """Exact. Cost: P^2."""
        return DenseCovariance(self.matrix * as_like(factor, self.matrix))

    def linear(self, transition: Array, noise: Array) -> DenseCovariance:
        """F S F' + Q. Cost: P^3."""
        return DenseCovariance(symmetric(transition @ self.matrix @ transition.T + noise))

    def color(self, deviates: Array) -> Array:
        """L e with L the Cholesky factor. Cost: P^3."""
        return deviates @ self.as_root().T

    def logdet(self) -> Array:
        """The logarithm of det S from the Cholesky factor, so NaN if S is no longer positive definite.

        Cost: P^3.
        """
        return 2.0 * jnp.sum(jnp.log(jnp.diagonal(self.as_root())))

    def diag(self) -> Array:
        """The diagonal of S."""
        variances: Array = jnp.diagonal(self.matrix)
        return variances

    def dense(self) -> Array:
        return self.matrix
