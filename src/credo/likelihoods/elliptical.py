"""Predictives in closed form: normal, and Student-t for a noise variance that is learned."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.scipy.special as jss
import numpy as np

from credo.core.errors import CredoError
from credo.core.records import record
from credo.core.types import Array, ArrayLike, PyTree
from credo.core.verbs import verb
from credo.likelihoods.predictive import Predictive
from credo.likelihoods.quantiles import bisect, log_gamma_ratio, student_cdf
from credo.linalg.matrices import cholesky, solve_lower

__all__ = ["NormalPredictive", "StudentTPredictive", "drop_one", "only_observed", "vector"]


@record
class NormalPredictive(Predictive):
    """The predictive y ~ N(loc, cov).

    Attributes:
        loc: the mean (C,).
        cov: the covariance (C, C), positive definite.

    Example:
        >>> low, high = NormalPredictive(jnp.zeros(1), jnp.eye(1)).interval(0.9)
        >>> round(float(low), 3), round(float(high), 3)
        (-1.645, 1.645)
    """

    loc: Array
    cov: Array

    @property
    def mean(self) -> Array:
        return drop_one(self.loc)

    @property
    def var(self) -> Array:
        return drop_one(jnp.diagonal(self.cov))

    def log_prob(self, y: PyTree, observed: ArrayLike = True) -> Array:
        """log N(y | loc, cov).

        Arguments:
            y: the observation (C,). Outputs that are NaN are left out, unless all of them are.
            observed: which outputs count, booleans (C,).
        """
        square, log_det, size = _distance(y, self.loc, self.cov, observed)
        return -0.5 * (square + size * math.log(2 * math.pi)) - log_det

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        noise = jax.random.normal(key, (*shape, self.loc.shape[0]), self.loc.dtype)
        draws = noise @ cholesky(self.cov).T
        draws = draws + jnp.broadcast_to(self.loc, draws.shape)
        return drop_last(draws)

    def cdf(self, y: PyTree) -> Array:
        """P(Y <= y) of each output."""
        return jss.ndtr((jnp.asarray(y, self.loc.dtype) - self.mean) / self.sd)

    def heavier(self, df: Array) -> StudentTPredictive:
        """t(df, loc, cov (df - 2) / df)."""
        df = df.astype(self.loc.dtype)
        return StudentTPredictive(df, self.loc, (df - 2.0) / df * self.cov)

    def quantile(self, p: ArrayLike) -> Array:
        """loc + sd * the standard normal quantile."""
        return _spread_quantile(jss.ndtri, p, self.mean, self.sd)


@record
class StudentTPredictive(Predictive):
    """y ~ t(df, loc, shape): the marginal of a normal distribution whose variance is inverse-gamma.

    Attributes:
        df: the degrees of freedom, above 0.
        loc: the location (C,).
        shape: the shape matrix (C, C), positive definite; the variance is df / (df - 2) times it.

    Example:
        >>> StudentTPredictive(jnp.asarray(4.0), jnp.zeros(1), jnp.eye(1)).var
        Array(2., dtype=float32)
    """

    df: Array
    loc: Array
    shape: Array

    @property
    def mean(self) -> Array:
        """The mean E[y], which exists for df > 1; otherwise the median."""
        return drop_one(self.loc)

    @property
    def scale(self) -> Array:
        """The scale (not the standard deviation) of each output."""
        return drop_one(jnp.sqrt(jnp.diagonal(self.shape)))

    @property
    def var(self) -> Array:
        """Var[y] = scale^2 df / (df - 2); infinite for df <= 2."""
        ratio = jnp.where(self.df > 2, self.df / jnp.where(self.df > 2, self.df - 2, 1.0), jnp.inf)
        return self.scale**2 * jnp.broadcast_to(ratio, self.scale.shape)

    def log_prob(self, y: PyTree, observed: ArrayLike = True) -> Array:
        """The log density of the multivariate t.

        Arguments:
            y: the observation (C,). Outputs that are NaN are left out, unless all of them are.
            observed: which outputs count, booleans (C,).
        """
        square, log_det, size = _distance(y, self.loc, self.shape, observed)
        half = 0.5 * (self.df + size)
        ratio = log_gamma_ratio(0.5 * self.df, 0.5 * size)
        constant = ratio - 0.5 * size * jnp.log(self.df * math.pi)
        return constant - log_det - half * jnp.log1p(square / self.df)

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        first, second = jax.random.split(key)
        noise = jax.random.normal(first, (*shape, self.loc.shape[0]), self.loc.dtype) @ cholesky(self.shape).T
        chi2 = 2.0 * jax.random.gamma(second, 0.5 * self.df, (*shape, 1), self.loc.dtype)
        draws = noise * jnp.sqrt(self.df / chi2)
        draws = draws + jnp.broadcast_to(self.loc, draws.shape)
        return drop_last(draws)

    def cdf(self, y: PyTree) -> Array:
        """P(Y <= y) of each output."""
        return student_cdf((jnp.asarray(y, self.loc.dtype) - self.mean) / self.scale, self.df)

    def heavier(self, df: Array) -> StudentTPredictive:
        """t(df, loc, shape n / (n - 2) (df - 2) / df) where the own degrees of freedom n are above df."""
        df = df.astype(self.loc.dtype)
        light = self.df > df
        ratio = jnp.where(light, self.df / jnp.where(light, self.df - 2.0, 1.0) * ((df - 2.0) / df), 1.0)
        return StudentTPredictive(jnp.where(light, df, self.df), self.loc, ratio * self.shape)

    @verb
    def quantile(self, p: ArrayLike) -> Array:
        """loc + scale * the standard t quantile, by bisection on the distribution function."""

        def standard(q: Array) -> Array:
            return jnp.tan(bisect(lambda u: student_cdf(jnp.tan(u), self.df), q, -np.pi / 2, np.pi / 2))

        return _spread_quantile(standard, p, self.mean, self.scale)


def _spread_quantile(standard: Callable[[Array], Array], p: ArrayLike, loc: Array, scale: Array) -> Array:
    probability = jnp.asarray(p, loc.dtype)
    shape = probability.shape + loc.shape
    unit = jnp.broadcast_to(standard(probability).reshape(probability.shape + (1,) * loc.ndim), shape)
    return jnp.broadcast_to(loc, shape) + jnp.broadcast_to(scale, shape) * unit


def drop_last(draws: Array) -> Array:
    """The draws (..., C), without their last axis if there is one output."""
    scalars: Array = draws[..., 0] if draws.shape[-1] == 1 else draws
    return scalars


def drop_one(values: Array) -> Array:
    """A scalar if there is one output (1,), and several outputs (C,) unchanged."""
    if values.shape == (1,):
        return values[0]
    return values


def _distance(y: PyTree, loc: Array, cov: Array, observed: ArrayLike) -> tuple[Array, Array, Array]:
    """The squared Mahalanobis distance of the observed outputs, half their log determinant, their number."""
    value = vector(y, loc)
    seen = jnp.broadcast_to(jnp.asarray(observed), loc.shape)
    if loc.shape[0] == 1:
        # Without a square root, the compiler makes one loop of the densities of many such forecasts.
        var = jnp.where(cov[0, 0] > 0, cov[0, 0], jnp.nan)
        square = (value[0] - loc[0]) ** 2 / var
        log_det = 0.5 * jnp.log(var)
        return jnp.where(seen[0], square, 0.0), jnp.where(seen[0], log_det, 0.0), seen[0].astype(loc.dtype)
    missing = jnp.isnan(value)
    seen = seen & (~missing | jnp.all(missing))
    chol = cholesky(only_observed(cov, seen))
    gap = jnp.where(seen, value - loc, 0.0)
    log_det = jnp.sum(jnp.where(seen, jnp.log(jnp.diagonal(chol)), 0.0))
    return jnp.sum(solve_lower(chol, gap) ** 2), log_det, jnp.sum(seen.astype(loc.dtype))


def only_observed(cov: Array, seen: Array) -> Array:
    """The covariance (C, C) in which outputs that are not seen (C,) have variance 1 and are uncorrelated.

    Its Cholesky factor and its inverse are, for the outputs that are seen, those of their own block.
    """
    return jnp.where(seen[:, None] & seen[None, :], cov, jnp.eye(cov.shape[0], dtype=cov.dtype))


def vector(y: PyTree, like: Array) -> Array:
    """An observation as a vector (C,), one entry for each of the model's outputs, with the dtype of eta."""
    array = jnp.asarray(y, like.dtype).reshape(-1)
    if array.shape != like.shape:
        raise CredoError(
            f"y must have {like.shape[0]} entries, one an output of the model; got shape {jnp.shape(y)}."
        )
    return array
