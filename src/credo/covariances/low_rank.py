"""Diagonal plus low-rank precisions ("DLR"): inv(S) = diag(y) + W' W with W (R, P).

Derivations: docs/explanation/families.md. Sources: Chang et al. 2023 (LOFI, arXiv 2305.19535), sections 3.1
to 3.3; every formula is checked against dense algebra in the tests.

It forgets by a projection: diag(y) + B' B with n rows B becomes diag(y') + W' W with R rows. All three
projections keep the diagonal of the precision (the first two exactly), work on the small Gram matrix of the
rows, and divide by nothing that can vanish.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias, get_args

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError, require_choice, require_integer
from credo.core.fields import field
from credo.core.records import record, static_field
from credo.core.trees import all_finite, as_like
from credo.core.types import Array
from credo.covariances.roles import Collapsible, Covariance, Family, HessianForms, Invertible, M
from credo.linalg.jacobians import Crossed, Rows, as_rows
from credo.linalg.jacobians.rows import leading
from credo.linalg.matrices import (
    cholesky,
    column_sums,
    eigh,
    identity,
    inverse_gram,
    kalman_weights,
    scale_rows,
    solve_lower,
)
from credo.linalg.normals import narrow

__all__ = ["PROJECTIONS", "LowRank", "LowRankCovariance", "project", "random_factor"]

Projection: TypeAlias = Literal["svd", "whitened", "factor-analysis"]
"""The ways to reduce the rows of a precision."""

PROJECTIONS: tuple[Projection, ...] = get_args(Projection)

_ROUNDS = 3


def project(base: Array, rows: Array, rank: int, projection: Projection) -> tuple[Array, Array]:
    """The new diagonal y' (P,) and rows W (R, P) for diag(y) + B' B, with B (n, P).

    "svd" keeps the leading singular directions of B (Chang et al. 2023, LOFI); "whitened" those of B y^-1/2,
    in which most is learned relative to the diagonal. "factor-analysis" minimises the Kullback-Leibler
    divergence by three expectation-maximisation steps from the first (Lambert, Bonnabel & Bach 2023, LRVGA).
    Cost: P n^2, and for each of these steps P R (n + R) more.
    """
    new_base, factor = leading(base, rows, rank, projection == "whitened")
    if projection == "factor-analysis":
        for _ in range(_ROUNDS):
            new_base, factor = _analyse(base, rows, new_base, factor)
    return new_base, factor


def _analyse(base: Array, rows: Array, new_base: Array, factor: Array) -> tuple[Array, Array]:
    """One expectation-maximisation step of factor analysis of T = diag(y) + B' B.

    With M = I + W y'^-1 W' and b = inv(M) W y'^-1: W <- inv(inv(M) + b T b') b T and y' <- diag(T) - the
    column sums of W * (b T) (Rubin & Thayer 1982), but never below y: a diagonal that vanishes where W takes
    all of T (a Heywood case) would leave directions without precision, and streams diverge. The second moment
    inv(M) + b T b' is near I where the kept precision is near T, so its Cholesky factor is well conditioned.
    """
    spread = scale_rows(factor, 1.0 / new_base)
    inner = inverse_gram(spread @ factor.T)
    weights = inner @ spread
    image = scale_rows(weights, base) + (weights @ rows.T) @ rows
    chol = cholesky(inner + image @ weights.T)
    new_factor = solve_lower(chol, solve_lower(chol, image), transpose=True)
    total = base + column_sums(rows**2)
    rest = total - column_sums(new_factor * image)
    return jnp.maximum(rest, base), new_factor


@record
class LowRank(Family):
    """Keep a diagonal plus R directions of the precision.

    Arguments:
        rank: the number R of directions, from 1 to P.
        base: the form of the rest of the precision: "diagonal", or "spherical", which keeps one number for
            all parameters (the mean of the diagonal; memory is the same).
        projection: how to forget: "svd", "whitened" or "factor-analysis", as in
            `credo.covariances.low_rank`.
        random: the share of the prior precision, at least 0 and below 1, that random directions carry at the
            start. None (the default) leaves the choice to the rule. BONG and BLR need no random directions.
            BOG and BBB get 0.1, because W = 0 is a stationary point for them, at which they would stay
            diagonal forever.

    Raises:
        CredoError: `rank` is below 1, `random` is out of range, or a name is unknown.

    Example:
        >>> LowRank(rank=2).init(jnp.ones(5)).factor.shape
        (2, 5)
    """

    rank: int = static_field(default=10)
    base: Literal["diagonal", "spherical"] = static_field(default="diagonal")
    projection: Projection = static_field(default="svd")
    random: float | None = static_field(default=None)

    def __post_init__(self) -> None:
        require_integer("rank", self.rank, 1)
        require_choice("base", self.base, ["diagonal", "spherical"])
        require_choice("projection", self.projection, PROJECTIONS)
        if self.random is not None and not 0 <= self.random < 1:
            raise CredoError(f"random must be None or at least 0 and below 1; got {self.random!r}.")

    def _check(self, size: int) -> None:
        if self.rank > size:
            raise CredoError(f"rank must be at most the number of parameters P = {size}; got {self.rank}.")

    def init(self, var: Array, *, random: float = 0.0) -> LowRankCovariance:
        """The covariance diag(var) for variances (P,), with W = 0 or random; the field `random` decides."""
        self._check(var.shape[-1])
        share = random if self.random is None else self.random
        if share == 0:
            zero = jnp.zeros((self.rank, var.shape[-1]), var.dtype)
            return LowRankCovariance(self.level(1.0 / var), zero, self)
        base, factor = random_factor(var, self.rank, share)
        return LowRankCovariance(self.level(base), factor, self)

    def level(self, base: Array) -> Array:
        """The diagonal (P,) in the form that the family keeps."""
        if self.base == "spherical":
            return jnp.full_like(base, jnp.mean(base))
        return base

    def project(self, base: Array, rows: Array) -> LowRankCovariance:
        """Approximate the precision diag(y) + B' B for rows B (n, P). Cost: P n^2."""
        new_base, factor = project(base, rows, self.rank, self.projection)
        return LowRankCovariance(self.level(new_base), factor, self)

    def take_in(self, base: Array, factor: Array, rows: Rows) -> LowRankCovariance:
        """Approximate the precision diag(y) + W' W + B' B, for rows B (k, P) of any kind."""
        if self.projection == "factor-analysis":
            return self.project(base, jnp.concatenate([factor, rows.dense()], axis=0))
        new_base, leading = rows.leading(base, factor, self.rank, self.projection == "whitened")
        return LowRankCovariance(self.level(new_base), leading, self)

    def from_dense(self, matrix: Array) -> LowRankCovariance:
        """The projection of the precision of a dense covariance (P, P). Cost: P^3."""
        self._check(matrix.shape[-1])
        precision = jnp.linalg.inv(matrix)
        values, vectors = eigh(0.5 * (precision + precision.T))
        floor = values[0]
        factor = (vectors * jnp.sqrt(jnp.maximum(values - floor, 0.0))[None, :]).T[::-1]
        return self.project(jnp.full(values.shape, floor), factor)


@record
class LowRankCovariance(Covariance, Invertible, Collapsible):
    """The covariance S = inv(diag(y) + W' W). `base` is y (P,), and `factor` is W (R, P).

    `family` says how to forget. Without a family the number of rows is kept, by "svd". Between a `blend` and
    the `condition` that follows it, there are more rows than the rank of the family.

    Example:
        >>> LowRankCovariance(jnp.ones(3), jnp.ones((1, 3))).diag()
        Array([0.75, 0.75, 0.75], dtype=float32)
    """

    base: Array = field("precision")
    factor: Array
    family: LowRank | None = static_field(default=None)

    vouches: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.family is None:
            object.__setattr__(self, "family", LowRank(self.rank))

    @property
    def _family(self) -> LowRank:
        assert self.family is not None
        return self.family

    @property
    def spherical(self) -> bool:
        """Whether y is one number for all parameters."""
        return self._family.base == "spherical"

    @property
    def size(self) -> int:
        return self.base.shape[-1]

    @property
    def rank(self) -> int:
        """The number R of kept directions."""
        return self.factor.shape[-2]

    def admit(self, rows: Rows) -> Rows:
        """The rows, unchanged."""
        return rows

    def hessian(self, forms: HessianForms[M]) -> M:
        """The leading directions of the expected Hessian."""
        return forms.leading()

    def couple(self, rows: Array | Rows) -> tuple[Crossed, Array]:
        """By the Woodbury identity. Cost: k P (k + R) and P R^2, or P R^2 for outer rows."""
        return as_rows(rows).couple_ridge(self.base, self.factor)

    def condition(self, factor: Array | Rows) -> LowRankCovariance:
        """Stack the rows [W; B], rotate them by the eigenvectors of their Gram matrix, keep the R largest.

        The dropped rows are added to the diagonal, so the diagonal of the precision is kept exactly. No
        division takes place. Cost: P (R + k)^2. Exact where rank([W; B]) <= R.
        """
        return self._family.take_in(self.base, self.factor, as_rows(factor))

    def absorb(self, rows: Array | Rows, residual: Array, root: Array) -> tuple[Array, LowRankCovariance]:
        """Kalman's update. Cost: P (R + k)^2, or P R^2 for outer rows."""
        shift, cov, _ = self.assimilate(rows, residual, root)
        return shift, cov

    def assimilate(
        self, rows: Array | Rows, residual: Array, root: Array
    ) -> tuple[Array, LowRankCovariance, Array]:
        """`absorb` and J S J', which outer rows take from the same two passes over y and W."""
        jacobian = as_rows(rows)
        family = self._family
        if family.projection == "factor-analysis":
            cross, inner = self.couple(jacobian)
            shift = cross.pull(kalman_weights(root, residual, inner))
            kept = self.condition(jacobian.attenuate(root))
            shift = jnp.where(all_finite(kept), shift, jnp.nan)
        else:
            new = jacobian.assimilate(
                self.base, self.factor, residual, root, family.rank, family.projection == "whitened"
            )
            shift = new.shift
            inner = new.inner
            kept = LowRankCovariance(family.level(new.base), new.factor, family)
        return shift, kept, inner

    def precise(self, vector: Array) -> Array:
        """y v + W' (W v). Cost: P R."""
        return self.base * vector + (self.factor @ vector) @ self.factor

    def add_precision(self, precision: Array) -> LowRankCovariance:
        """Exact. Cost: P."""
        return LowRankCovariance(self.base + precision, self.factor, self.family)

    def affine(self, scale: Array, noise: Array) -> LowRankCovariance:
        """Exact: y' = 1 / (a^2 / y + d), W' = inv(E) (a y' / y * W) with E E' = I + W diag(d y' / y) W'; cost
        P R^2.
        """
        scale = as_like(scale, self.base)
        noise = as_like(noise, self.base)
        base = 1.0 / (scale**2 / self.base + noise)
        shrink = base / self.base
        spread = scale_rows(self.factor, noise * shrink)
        eye = identity(self.rank, self.base.dtype)
        chol = cholesky(eye + spread @ self.factor.T)
        return LowRankCovariance(
            base, solve_lower(chol, scale_rows(self.factor, scale * shrink)), self.family
        )

    def collapse(self, weights: Array, deviations: Array) -> LowRankCovariance:
        """The exact marginal variances of the mixture, with the projected correlations of the mean precision.

        The covariance of a mixture has no diagonal plus low-rank precision. With a from the ratio of the
        variances, S becomes diag(a) S diag(a). Cost: K^2 P R^2.
        """
        variances = weights @ (jax.vmap(LowRankCovariance.diag)(self) + deviations**2)
        rows = (self.factor * jnp.sqrt(weights)[:, None, None]).reshape(-1, self.size)
        mean = self._family.project(weights @ self.base, rows)
        stretch = jnp.sqrt(mean.diag() / variances)
        return LowRankCovariance(mean.base * stretch**2, scale_rows(mean.factor, stretch), self.family)

    def scale(self, factor: Array) -> LowRankCovariance:
        """Exact. Cost: P R."""
        factor = as_like(factor, self.base)
        return LowRankCovariance(self.base / factor, self.factor / jnp.sqrt(factor), self.family)

    def linear(self, transition: Array, noise: Array) -> LowRankCovariance:
        """The projection of F S F' + Q, through dense matrices. Cost: P^3. For diagonal F and Q, `affine` is
        exact.
        """
        exact = transition @ self.dense() @ transition.T + noise
        return self._family.from_dense(exact)

    def color(self, deviates: Array) -> Array:
        """From draws of N(0, 1/y), by `narrow`: they do not depend on how W is arranged. Cost: P R^2, and P R
        a draw.
        """
        x = scale_rows(deviates, jax.lax.rsqrt(self.base))
        spread = scale_rows(self.factor, 1.0 / self.base)
        return narrow(x, self.factor, spread, spread @ self.factor.T)

    def logdet(self) -> Array:
        """-(sum log y + log det(I + W y^-1 W')). Cost: P R^2."""
        spread = scale_rows(self.factor, 1.0 / self.base)
        chol = cholesky(identity(self.rank, self.base.dtype) + spread @ self.factor.T)
        return -jnp.sum(jnp.log(self.base)) - 2.0 * jnp.sum(jnp.log(jnp.diagonal(chol)))

    def diag(self) -> Array:
        """The variances: 1/y minus what the kept directions explain. Cost: P R^2.

        Rounding could make the difference negative, so no variance is taken below the inverse of the diagonal
        of the precision.
        """
        spread = scale_rows(self.factor, 1.0 / self.base)
        chol = cholesky(identity(self.rank, self.base.dtype) + spread @ self.factor.T)
        rest = 1.0 / self.base - column_sums(solve_lower(chol, spread) ** 2)
        return jnp.maximum(rest, 1.0 / (self.base + column_sums(self.factor**2)))

    def dense(self) -> Array:
        """The matrix (P, P). Cost: P^2 R."""
        return self.mv(jnp.eye(self.size, dtype=self.base.dtype))

    def rescale(self, scale: Array) -> LowRankCovariance:
        """The precision diag(y / a^2) + (W / a)' (W / a). Cost: P R."""
        base = self.base / scale**2
        return LowRankCovariance(base, scale_rows(self.factor, 1.0 / scale), self.family)

    def precision(self) -> Array:
        """The precision diag(y) + W' W as a matrix (P, P), for inspection and tests."""
        return jnp.diag(self.base) + self.factor.T @ self.factor


def random_factor(var: Array, rank: int, share: float) -> tuple[Array, Array]:
    """A start (y, W) with random directions, whose expected precision is 1 / var.

    y = (1 - e) / var, with e the `share` of the precision in the R directions, and W of Gaussian columns,
    normalised and scaled by sqrt(e P / (R var)). The seed is fixed: a family always starts from one belief.
    """
    directions = jax.random.normal(jax.random.key(0), (rank, var.shape[0]), var.dtype)
    unit = directions / jnp.sqrt(jnp.sum(directions**2, axis=1, keepdims=True))
    height = jnp.sqrt(share * var.shape[0] / (rank * var))
    return (1.0 - share) / var, scale_rows(unit, height)
