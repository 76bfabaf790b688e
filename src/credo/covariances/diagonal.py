"""Diagonal covariances: one variance a parameter."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from credo.core.errors import require_choice
from credo.core.records import record, static_field
from credo.core.trees import as_like
from credo.covariances.base import Covariance, Family, Iterate
from credo.covariances.iterates import BlendedIterate
from credo.covariances.outer_steps import couple_diagonal, inverse_gram, squares
from credo.covariances.retraction import retract
from credo.linalg.matrices import column_sums, scale_rows, solve_lower
from credo.linalg.outer import OuterRows

__all__ = ["Diagonal", "DiagonalCovariance"]


@record
class Diagonal(Family):
    """Keep one variance a parameter.

    Arguments:
        keep: which diagonal survives when an observation has coupled the parameters. "precision" keeps the
            diagonal of the precision (the variational answer: VD-EKF, VON); "covariance" keeps the marginal
            variances (the fully decoupled FD-EKF), which are larger.

    Example:
        >>> Diagonal().init(jnp.ones(3)).condition(jnp.ones((1, 3))).diag()
        Array([0.5, 0.5, 0.5], dtype=float32)
    """

    keep: str = static_field(default="precision")

    def __post_init__(self) -> None:
        require_choice("keep", self.keep, ["precision", "covariance"])

    def init(self, var: jax.Array, *, random: float = 0.0) -> DiagonalCovariance:
        """The covariance diag(var) for variances (P,)."""
        return DiagonalCovariance(var, self.keep)

    def from_dense(self, matrix: jax.Array) -> DiagonalCovariance:
        """The diagonal of the precision, or of the covariance, of a dense covariance (P, P); cost P^3 for the
        former.
        """
        if self.keep == "precision":
            return DiagonalCovariance(1.0 / jnp.diagonal(jnp.linalg.inv(matrix)), self.keep)
        return DiagonalCovariance(jnp.diagonal(matrix), self.keep)


@record
class DiagonalCovariance(Covariance):
    """S = diag(var), with var (P,)."""

    var: jax.Array
    keep: str = static_field(default="precision")

    kind: ClassVar[str] = "diagonal"

    @property
    def size(self) -> int:
        """The number P of parameters."""
        return self.var.shape[-1]

    def couple(self, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
        """rows * var, and (rows * sd)(rows * sd)'; cost k P and k^2 P, or P for outer rows."""
        if isinstance(rows, OuterRows):
            return couple_diagonal(self.var, rows)
        sd = jnp.sqrt(self.var)
        pushed = scale_rows(rows, sd)
        return scale_rows(pushed, sd), pushed @ pushed.T

    def condition(self, factor: jax.Array) -> DiagonalCovariance:
        """Precision plus the column sums of squares of B (k P), or the diagonal of the exact covariance (k^2
        P).
        """
        if self.keep == "precision":
            return DiagonalCovariance(self.var / (1.0 + self.var * squares(factor)), self.keep)
        if isinstance(factor, OuterRows):
            taken = inverse_gram(factor.gram(self.var))
            return DiagonalCovariance(self.var * (1.0 - self.var * factor.squares(taken)), self.keep)
        cross = scale_rows(factor, self.var)
        eye = jnp.eye(factor.shape[0], dtype=self.var.dtype)
        half = solve_lower(
            jnp.linalg.cholesky(eye + cross @ factor.T), scale_rows(factor, jnp.sqrt(self.var))
        )
        return DiagonalCovariance(self.var * (1.0 - column_sums(half**2)), self.keep)

    def add_precision(self, precision: jax.Array) -> DiagonalCovariance:
        """Exact; cost P."""
        return DiagonalCovariance(self.var / (1.0 + self.var * precision), self.keep)

    def precise(self, vector: jax.Array) -> jax.Array:
        """v / var."""
        return vector / self.var

    def blend(self, other: Any, share: jax.Array) -> DiagonalCovariance:
        """Exact; cost P."""
        return DiagonalCovariance(1.0 / ((1.0 - share) / self.var + share / other.var), self.keep)

    def iterate(self, rows: int) -> Iterate:
        """By mixing the precisions; cost P a step."""
        return BlendedIterate(self, self)

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
    ) -> tuple[jax.Array, DiagonalCovariance]:
        """With n = diag(N), elementwise: lam - 4 a v u mu - 2 a v^2 n, v (lam mu + a v u); or v + a n / 2, mu
        + a u; cost k P.
        """
        bend = self._bend(factor, diagonal, prior)
        if parameters == "moment":
            grown = self.var * retract(0.5 * rate * bend / self.var, retraction)
            return mean + rate * slope, DiagonalCovariance(grown, self.keep)
        change = -2.0 * rate * self.var**2 * (2.0 * slope * mean + self.var * bend)
        var = self.var / retract(change, retraction)
        return var * (mean / self.var + rate * self.var * slope), DiagonalCovariance(var, self.keep)

    def temper(
        self, factor: jax.Array, diagonal: jax.Array | None, prior: Any, rate: jax.Array, retraction: str
    ) -> DiagonalCovariance:
        """v + a v^2 n; cost k P."""
        bend = self._bend(factor, diagonal, prior)
        return DiagonalCovariance(self.var * retract(rate * self.var * bend, retraction), self.keep)

    def _bend(self, factor: jax.Array, diagonal: jax.Array | None, prior: Any) -> jax.Array:
        """The diagonal n of N (P,)."""
        bend = -squares(factor)
        if diagonal is not None:
            bend = bend - diagonal
        return bend if prior is None else bend + 1.0 / self.var - 1.0 / prior.var

    def affine(self, scale: jax.Array, noise: jax.Array) -> DiagonalCovariance:
        """Exact; cost P."""
        return DiagonalCovariance(
            as_like(scale, self.var) ** 2 * self.var + as_like(noise, self.var), self.keep
        )

    def collapse(self, weights: jax.Array, deviations: jax.Array) -> DiagonalCovariance:
        """The mixture's marginal variances, exactly; cost K P."""
        return DiagonalCovariance(weights @ (self.var + deviations**2), self.keep)

    def scale(self, factor: jax.Array) -> DiagonalCovariance:
        """Exact; cost P."""
        return DiagonalCovariance(self.var * as_like(factor, self.var), self.keep)

    def linear(self, transition: jax.Array, noise: jax.Array) -> DiagonalCovariance:
        """The diagonal of F S F' + Q (the marginal variances are what dynamics preserve); cost P^2."""
        return DiagonalCovariance(
            scale_rows(transition**2, self.var).sum(axis=1) + jnp.diagonal(noise), self.keep
        )

    def color(self, deviates: jax.Array) -> jax.Array:
        """sd * e."""
        return scale_rows(deviates, jnp.sqrt(self.var))

    def logdet(self) -> jax.Array:
        """The sum of log var."""
        return jnp.sum(jnp.log(self.var))

    def diag(self) -> jax.Array:
        """var."""
        return self.var

    def dense(self) -> jax.Array:
        """diag(var)."""
        return jnp.diag(self.var)
