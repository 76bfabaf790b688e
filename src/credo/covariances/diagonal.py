"""Diagonal covariances: one variance a parameter."""

from __future__ import annotations

from typing import ClassVar, Literal

import jax.numpy as jnp

from credo.core.errors import require_choice
from credo.core.fields import field
from credo.core.records import record, static_field
from credo.core.trees import as_like
from credo.core.types import Array
from credo.covariances.roles import Collapsible, Covariance, Family, HessianForms, Invertible, M
from credo.linalg.jacobians import Crossed, Rows, as_rows
from credo.linalg.matrices import kalman_weights, scale_rows

__all__ = ["Diagonal", "DiagonalCovariance"]


@record
class Diagonal(Family):
    """Keep one variance for each parameter.

    Arguments:
        keep: which diagonal survives when an observation has coupled the parameters. "precision" keeps the
            diagonal of the precision (the variational answer: VD-EKF, VON); "covariance" keeps the marginal
            variances (the fully decoupled FD-EKF), which are larger.

    Raises:
        CredoError: `keep` has another value.

    Example:
        >>> Diagonal().init(jnp.ones(3)).condition(jnp.ones((1, 3))).diag()
        Array([0.5, 0.5, 0.5], dtype=float32)
    """

    keep: Literal["precision", "covariance"] = static_field(default="precision")

    def __post_init__(self) -> None:
        require_choice("keep", self.keep, ["precision", "covariance"])

    def init(self, var: Array, *, random: float = 0.0) -> DiagonalCovariance:
        return DiagonalCovariance(var, self.keep)

    def from_dense(self, matrix: Array) -> DiagonalCovariance:
        """The diagonal of the precision, or of the covariance itself, of a dense covariance (P, P).

        Cost: P^3 for the precision.
        """
        if self.keep == "precision":
            return DiagonalCovariance(1.0 / jnp.diagonal(jnp.linalg.inv(matrix)), self.keep)
        return DiagonalCovariance(jnp.diagonal(matrix), self.keep)


@record
class DiagonalCovariance(Covariance, Invertible, Collapsible):
    """The covariance S = diag(var), with var (P,).

    Example:
        >>> DiagonalCovariance(jnp.ones(2)).push(jnp.ones((1, 2)))
        Array([[2.]], dtype=float32)
    """

    var: Array = field("nonnegative")
    keep: Literal["precision", "covariance"] = static_field(default="precision")

    vouches: ClassVar[bool] = True

    @property
    def size(self) -> int:
        return self.var.shape[-1]

    def admit(self, rows: Rows) -> Rows:
        """The rows, unchanged."""
        return rows

    def hessian(self, forms: HessianForms[M]) -> M:
        """The diagonal of the expected Hessian."""
        return forms.diagonal()

    def couple(self, rows: Array | Rows) -> tuple[Crossed, Array]:
        """rows * var, and (rows * sd)(rows * sd)'. Cost: k P and k^2 P, or P for outer rows."""
        return as_rows(rows).couple_diagonal(self.var)

    def condition(self, factor: Array | Rows) -> DiagonalCovariance:
        """Add the column sums of squares of B to the precision, or keep the diagonal of the exact covariance.

        Cost: k P for the first, k^2 P for the second.
        """
        rows = as_rows(factor)
        if self.keep == "precision":
            return DiagonalCovariance(self.var / (1.0 + self.var * rows.squares()), self.keep)
        return DiagonalCovariance(self.var * (1.0 - rows.explained(self.var)), self.keep)

    def absorb(self, rows: Array | Rows, residual: Array, root: Array) -> tuple[Array, DiagonalCovariance]:
        """Kalman's update. Cost: k^2 P, or P for outer rows."""
        shift, cov, _ = self.assimilate(rows, residual, root)
        return shift, cov

    def assimilate(
        self, rows: Array | Rows, residual: Array, root: Array
    ) -> tuple[Array, DiagonalCovariance, Array]:
        """`absorb` and J S J', which share their products."""
        jacobian = as_rows(rows)
        if self.keep == "precision":
            shift, inner, var = jacobian.assimilate_diagonal(self.var, residual, root)
            return shift, DiagonalCovariance(var, self.keep), inner
        cross, inner = self.couple(jacobian)
        shift = cross.pull(kalman_weights(root, residual, inner))
        return shift, self.condition(jacobian.attenuate(root)), inner

    def add_precision(self, precision: Array) -> DiagonalCovariance:
        """Exact. Cost: P."""
        return DiagonalCovariance(self.var / (1.0 + self.var * precision), self.keep)

    def precise(self, vector: Array) -> Array:
        """v / var."""
        return vector / self.var

    def affine(self, scale: Array, noise: Array) -> DiagonalCovariance:
        """Exact. Cost: P."""
        return DiagonalCovariance(
            as_like(scale, self.var) ** 2 * self.var + as_like(noise, self.var), self.keep
        )

    def collapse(self, weights: Array, deviations: Array) -> DiagonalCovariance:
        """The mixture's marginal variances, exactly. Cost: K P."""
        return DiagonalCovariance(weights @ (self.var + deviations**2), self.keep)

    def scale(self, factor: Array) -> DiagonalCovariance:
        """Exact. Cost: P."""
        return DiagonalCovariance(self.var * as_like(factor, self.var), self.keep)

    def linear(self, transition: Array, noise: Array) -> DiagonalCovariance:
        """The diagonal of F S F' + Q (the marginal variances are what dynamics preserve). Cost: P^2."""
        return DiagonalCovariance(
            scale_rows(transition**2, self.var).sum(axis=1) + jnp.diagonal(noise), self.keep
        )

    def color(self, deviates: Array) -> Array:
        """sd * e."""
        return scale_rows(deviates, jnp.sqrt(self.var))

    def logdet(self) -> Array:
        """The sum of log var."""
        return jnp.sum(jnp.log(self.var))

    def diag(self) -> Array:
        """var."""
        return self.var

    def dense(self) -> Array:
        """diag(var)."""
        return jnp.diag(self.var)
