"""Full covariances: as a square root (the default, positive by construction) or as a dense matrix."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.errors import require_choice
from credo.core.records import record, static_field
from credo.core.trees import as_like
from credo.covariances.base import Covariance, Family, Iterate, attenuated, kalman_shift
from credo.covariances.full_steps import (
    WhitenedIterate,
    ascend_moments,
    ascend_naturals,
    narrowed,
    temper_root,
)
from credo.covariances.iterates import StackedIterate
from credo.linalg.matrices import (
    crossed,
    psd_root,
    safe_sqrt,
    scale_rows,
    solve_lower,
    symmetric,
    triangularize,
)

__all__ = ["DenseCovariance", "Full", "RootCovariance"]


@record
class Full(Family):
    """Keep the whole covariance of P parameters.

    Arguments:
        form: "root" keeps W (P, P) with W W' = S: the belief can never lose positive definiteness, in float32
            and over any number of steps; dynamics that add noise then cost P^3 a step (a QR decomposition).
            "dense" keeps S itself: adding noise costs P, but subtraction can lose positive definiteness in
            float32.

    Example:
        >>> Full().init(jnp.ones(3)).dense().shape
        (3, 3)
    """

    form: str = static_field(default="root")

    def __post_init__(self) -> None:
        require_choice("form", self.form, ["root", "dense"])

    def init(self, var: jax.Array, *, random: float = 0.0) -> Covariance:
        """The covariance diag(var) for variances (P,)."""
        return (
            RootCovariance(jnp.diag(jnp.sqrt(var))) if self.form == "root" else DenseCovariance(jnp.diag(var))
        )

    def from_dense(self, matrix: jax.Array) -> Covariance:
        """The covariance `matrix` (P, P), exactly."""
        return RootCovariance(jnp.linalg.cholesky(matrix)) if self.form == "root" else DenseCovariance(matrix)


class _Full(Covariance):
    """What both forms share, by a root W of S = W W'."""

    def as_root(self) -> jax.Array:
        """A square root W (P, P) of S."""
        raise NotImplementedError

    def with_root(self, root: jax.Array) -> Covariance:
        """The same form, of the covariance W W'."""
        raise NotImplementedError

    def precise(self, vector: jax.Array) -> jax.Array:
        """inv(S) v; cost P^3."""
        root = self.as_root()
        return jnp.linalg.solve(root.T, jnp.linalg.solve(root, vector))

    def blend(self, other: Any, share: jax.Array) -> Covariance:
        """By the Cholesky factor of (1 - a) I + a Z' Z, Z = inv(V) W with V V' = T; cost P^3."""
        root = self.as_root()
        ratio = jnp.linalg.solve(other.as_root(), root)
        eye = jnp.eye(root.shape[0], dtype=root.dtype)
        chol = jnp.linalg.cholesky((1.0 - share) * eye + share * (ratio.T @ ratio))
        return self.with_root(solve_lower(chol, root.T).T)

    def absorb(self, rows: jax.Array, residual: jax.Array, root: jax.Array) -> tuple[jax.Array, Covariance]:
        """By the gain, exact to rounding however small the noise, where rows are fewer than parameters. Else,
        where that would lose digits, with A = B W and L L' = I + A' A: W <- W L'^-1, and the move is S g with
        the new S. Cost k P^2.
        """
        factor = attenuated(root, rows)
        if factor.shape[0] < self.size:
            return self._gain(rows, residual, root)
        made = narrowed(self.as_root(), factor)
        return made @ (made.T @ (residual @ rows)), self.with_root(made)

    def _gain(self, rows: jax.Array, residual: jax.Array, root: jax.Array) -> tuple[jax.Array, Covariance]:
        """`absorb` by the gain: products with the rows are taken once."""
        raise NotImplementedError

    def iterate(self, rows: int) -> Iterate:
        """By rows where they are fewer than the parameters, else by one P x P matrix."""
        if rows < self.size:
            return StackedIterate.start(self, rows, self.dtype)
        return WhitenedIterate.start(self.as_root(), self)

    def ascend(
        self,
        mean: jax.Array,
        slope: jax.Array,
        factor: jax.Array,
        diagonal: jax.Array | None,
        prior: Any,
        rate: jax.Array,
        parameters: str | None,
        retraction: str,
    ) -> tuple[jax.Array, Covariance]:
        """Cost in natural parameters P^2 (k + 2) without a prior, P^3 with one; in the moments P^3."""
        step = ascend_moments if parameters == "moment" else ascend_naturals
        held = None if prior is None else prior.as_root()
        moved, root = step(
            self.as_root(), mean, slope, _with_diagonal(factor, diagonal), held, rate, retraction
        )
        return moved, self.with_root(root)

    def temper(
        self, factor: jax.Array, diagonal: jax.Array | None, prior: Any, rate: jax.Array, retraction: str
    ) -> Covariance:
        """Cost P^3."""
        rows = _with_diagonal(factor, diagonal)
        return self.with_root(temper_root(self.as_root(), rows, prior.as_root(), rate, retraction))


def _with_diagonal(factor: jax.Array, diagonal: jax.Array | None) -> jax.Array:
    """Rows that stand for B' B + diag(d)."""
    if diagonal is None:
        return factor
    return jnp.concatenate([factor, jnp.diag(safe_sqrt(diagonal))], axis=0)


@record
class RootCovariance(_Full):
    """S = W W' by its square root W (P, P), which need not be triangular."""

    root: jax.Array

    def as_root(self) -> jax.Array:
        """W."""
        return self.root

    def with_root(self, root: jax.Array) -> RootCovariance:
        """By its root as it is."""
        return RootCovariance(root)

    @property
    def size(self) -> int:
        """The number P of parameters."""
        return self.root.shape[-1]

    def couple(self, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
        """With Z = rows W: Z W' and Z Z'; cost 2 k P^2."""
        pushed = rows @ self.root
        return pushed @ self.root.T, pushed @ pushed.T

    def condition(self, factor: jax.Array) -> RootCovariance:
        """Andrews' square-root update: with A = W' B' and L L' = I + A' A, W <- W - (W A) L^-T (I + L)^-1 A'.

        No subtraction of covariances takes place, so the result is positive definite by construction, and
        only a k x k Cholesky factor is needed. Cost 3 k P^2. Source: Andrews 1968 (verified in the tests
        against the inverse).
        """
        whitened = factor @ self.root
        return self._less(whitened, whitened @ self.root.T)

    def _less(self, whitened: jax.Array, cross: jax.Array) -> RootCovariance:
        eye = jnp.eye(whitened.shape[0], dtype=self.root.dtype)
        chol = jnp.linalg.cholesky(eye + whitened @ whitened.T)
        inner = solve_lower(chol, solve_lower(eye + chol, eye), transpose=True)
        return RootCovariance(self.root - crossed(cross, inner @ whitened))

    def _gain(self, rows: jax.Array, residual: jax.Array, root: jax.Array) -> tuple[jax.Array, Covariance]:
        """Cost 3 k P^2."""
        pushed = rows @ self.root
        cross = pushed @ self.root.T
        shift = kalman_shift(root, residual, cross, pushed @ pushed.T)
        return shift, self._less(attenuated(root, pushed), attenuated(root, cross))

    def add_precision(self, precision: jax.Array) -> RootCovariance:
        """Exact; cost P^3."""
        return self.condition(jnp.diag(safe_sqrt(jnp.broadcast_to(precision, (self.size,)))))

    def affine(self, scale: jax.Array, noise: jax.Array) -> RootCovariance:
        """Exact, by a QR decomposition of [a W, sqrt(d) I]; cost P^3."""
        scale, noise = as_like(scale, self.root), as_like(noise, self.root)
        moved = scale_rows(self.root.T, scale).T
        return RootCovariance(
            triangularize(moved, jnp.diag(safe_sqrt(jnp.broadcast_to(noise, (self.size,)))))
        )

    def mix(self, scale: jax.Array, other: Covariance, share: jax.Array) -> RootCovariance:
        """Exact, by a QR decomposition of [a W, sqrt(b) V] with V V' = T; cost P^3."""
        assert isinstance(other, RootCovariance)
        return RootCovariance(triangularize(self.root * scale, other.root * safe_sqrt(share)))

    def collapse(self, weights: jax.Array, deviations: jax.Array) -> RootCovariance:
        """Exact, by a QR decomposition of all K roots and deviations; cost K P^3."""
        shares = safe_sqrt(weights)
        blocks = jnp.moveaxis(self.root * shares[:, None, None], 0, 1).reshape(self.size, -1)
        return RootCovariance(triangularize(blocks, deviations.T * shares[None, :]))

    def scale(self, factor: jax.Array) -> RootCovariance:
        """Exact; cost P^2."""
        return RootCovariance(self.root * jnp.sqrt(as_like(factor, self.root)))

    def linear(self, transition: jax.Array, noise: jax.Array) -> RootCovariance:
        """Exact, by a QR decomposition of [F W, root of Q]; cost P^3."""
        return RootCovariance(triangularize(transition @ self.root, psd_root(noise)))

    def color(self, deviates: jax.Array) -> jax.Array:
        """W e."""
        return deviates @ self.root.T

    def logdet(self) -> jax.Array:
        """2 log |det W|; cost P^3."""
        return 2.0 * jnp.linalg.slogdet(self.root)[1]

    def diag(self) -> jax.Array:
        """Row sums of squares of W."""
        return jnp.sum(self.root**2, axis=-1)

    def dense(self) -> jax.Array:
        """W W'."""
        return self.root @ self.root.T


@record
class DenseCovariance(_Full):
    """S itself, (P, P)."""

    matrix: jax.Array

    def as_root(self) -> jax.Array:
        """The Cholesky factor; cost P^3."""
        return jnp.linalg.cholesky(self.matrix)

    def with_root(self, root: jax.Array) -> DenseCovariance:
        """W W'; cost P^3."""
        return DenseCovariance(root @ root.T)

    @property
    def size(self) -> int:
        """The number P of parameters."""
        return self.matrix.shape[-1]

    def couple(self, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
        """rows S and its product with rows'; cost k P^2."""
        cross = rows @ self.matrix
        return cross, symmetric(cross @ rows.T)

    def condition(self, factor: jax.Array) -> DenseCovariance:
        """S - S B' inv(I + B S B') B S by a k x k Cholesky factor; cost k P^2. Exact up to cancellation."""
        cross = factor @ self.matrix
        return self._less(cross, symmetric(cross @ factor.T))

    def _less(self, cross: jax.Array, inner: jax.Array) -> DenseCovariance:
        chol = jnp.linalg.cholesky(jnp.eye(inner.shape[0], dtype=self.matrix.dtype) + inner)
        half = solve_lower(chol, cross)
        return DenseCovariance(self.matrix - crossed(half, half))

    def _gain(self, rows: jax.Array, residual: jax.Array, root: jax.Array) -> tuple[jax.Array, Covariance]:
        """Cost 2 k P^2."""
        cross, inner = self.couple(rows)
        shift = kalman_shift(root, residual, cross, inner)
        gram = attenuated(root, attenuated(root, inner).T)
        return shift, self._less(attenuated(root, cross), gram)

    def add_precision(self, precision: jax.Array) -> DenseCovariance:
        """Exact; cost P^3."""
        return self.condition(jnp.diag(safe_sqrt(jnp.broadcast_to(precision, (self.size,)))))

    def affine(self, scale: jax.Array, noise: jax.Array) -> DenseCovariance:
        """Exact; cost P^2."""
        scale, noise = as_like(scale, self.matrix), as_like(noise, self.matrix)
        moved = scale_rows(scale_rows(self.matrix, scale).T, scale)
        return DenseCovariance(moved + jnp.diag(jnp.broadcast_to(noise, (self.size,))))

    def mix(self, scale: jax.Array, other: Covariance, share: jax.Array) -> DenseCovariance:
        """Exact; cost P^2."""
        return DenseCovariance(self.matrix * scale**2 + share * other.dense())

    def collapse(self, weights: jax.Array, deviations: jax.Array) -> DenseCovariance:
        """Exact; cost K P^2."""
        spread = scale_rows(deviations.T, weights) @ deviations
        return DenseCovariance(jnp.tensordot(weights, self.matrix, axes=1) + spread)

    def scale(self, factor: jax.Array) -> DenseCovariance:
        """Exact; cost P^2."""
        return DenseCovariance(self.matrix * as_like(factor, self.matrix))

    def linear(self, transition: jax.Array, noise: jax.Array) -> DenseCovariance:
        """F S F' + Q; cost P^3."""
        return DenseCovariance(symmetric(transition @ self.matrix @ transition.T + noise))

    def color(self, deviates: jax.Array) -> jax.Array:
        """L e with L the Cholesky factor; cost P^3."""
        return deviates @ jnp.linalg.cholesky(self.matrix).T

    def logdet(self) -> jax.Array:
        """By the Cholesky factor, hence NaN where S has lost positive definiteness; cost P^3."""
        return 2.0 * jnp.sum(jnp.log(jnp.diagonal(jnp.linalg.cholesky(self.matrix))))

    def diag(self) -> jax.Array:
        """The diagonal of S."""
        return jnp.diagonal(self.matrix)

    def dense(self) -> jax.Array:
        """S."""
        return self.matrix
