"""Predictive distributions p(y | x, past): mean, var, sd, log_prob, quantile, sample, probs.

Everywhere one output means scalars: a predictive of a model with C = 1 has a scalar `mean`; with C > 1 it has
(C,).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as jss
import jax.scipy.stats as jst
import numpy as np

from credo.core.errors import CredoError
from credo.core.records import record
from credo.core.verbs import verb
from credo.likelihoods.quantiles import bisect, search_quantile, student_cdf
from credo.linalg.matrices import safe_sqrt

__all__ = [
    "MixturePredictive",
    "NormalPredictive",
    "Predictive",
    "PredictiveRows",
    "StudentTPredictive",
    "integration_nodes",
]

_QUADRATURE = 32
_POINTS = 256


@functools.lru_cache(maxsize=64)
def _nodes(size: int) -> tuple[np.ndarray, np.ndarray]:
    if size == 1:
        points, weights = np.polynomial.hermite_e.hermegauss(_QUADRATURE)
        return points[:, None], np.log(weights / weights.sum())
    # A rank-1 lattice by the generalised golden ratio (Roberts 2018), shifted off the origin, made
    # antithetic, then
    # whitened: nodes with exact zero odd moments and identity covariance.
    ratio = 2.0
    for _ in range(64):
        ratio = (1.0 + ratio) ** (1.0 / (size + 1))
    steps = ratio ** -np.arange(1, size + 1)
    half = (0.5 + np.outer(np.arange(1, _POINTS // 2 + 1), steps)) % 1.0
    from jax.scipy.special import ndtri

    with jax.ensure_compile_time_eval():
        normal = np.asarray(ndtri(jnp.asarray(half)), dtype=np.float64)
    points = np.concatenate([normal, -normal])
    if points.shape[0] >= 2 * size:
        points = points @ np.linalg.inv(np.linalg.cholesky(points.T @ points / points.shape[0])).T
    return points, np.full(points.shape[0], -np.log(points.shape[0]))


def integration_nodes(size: int, dtype: Any) -> tuple[jax.Array, jax.Array]:
    """Nodes (n, C) and log weights (n,) that integrate over a standard normal of C dimensions.

    One dimension: 32-point Gauss-Hermite. Several: 256 fixed, antithetic, whitened quasi-random points; mean
    and covariance are exact, higher moments approximate. Deterministic, so evidence and its gradient are
    reproducible.
    """
    points, log_weights = _nodes(size)
    return jnp.asarray(points, dtype), jnp.asarray(log_weights, dtype)


class Predictive:
    """What every predictive answers to."""

    @property
    def discrete(self) -> bool:
        """Whether y takes whole-number values."""
        return False

    @property
    def mean(self) -> jax.Array:
        """E[y]: a scalar for one output, else (C,)."""
        raise NotImplementedError

    @property
    def var(self) -> jax.Array:
        """Var[y] of each output: a scalar for one output, else (C,)."""
        raise NotImplementedError

    @property
    def sd(self) -> jax.Array:
        """The standard deviation of each output."""
        return safe_sqrt(self.var)

    @property
    def probs(self) -> jax.Array:
        """The class probabilities (C,) of a classifier (for Bernoulli: of 0 and of 1)."""
        raise CredoError("probs is for classifiers; this predictive is of a number: use mean, var, quantile.")

    def log_prob(self, y: Any) -> jax.Array:
        """log p(y), a scalar."""
        raise NotImplementedError

    def sample(self, key: jax.Array, shape: tuple[int, ...] = ()) -> jax.Array:
        """Draws of y with leading axes `shape`."""
        raise NotImplementedError

    def cdf(self, y: Any) -> jax.Array:
        """P(Y <= y), for each output."""
        raise NotImplementedError

    def quantile(self, p: Any) -> jax.Array:
        """The smallest y with P(Y <= y) >= p: the shape of p, with (C,) behind it where there are several
        outputs.
        """
        raise NotImplementedError

    def interval(self, level: float = 0.9) -> tuple[jax.Array, jax.Array]:
        """The central interval that holds y with probability `level`: its lower and upper end."""
        return self.quantile(0.5 - level / 2), self.quantile(0.5 + level / 2)


@record
class NormalPredictive(Predictive):
    """y ~ N(loc, scale scale'), with loc (C,) and cov (C, C)."""

    loc: jax.Array
    cov: jax.Array

    @property
    def mean(self) -> jax.Array:
        """E[y]."""
        return _drop_one(self.loc)

    @property
    def var(self) -> jax.Array:
        """Var[y] of each output."""
        return _drop_one(jnp.diagonal(self.cov))

    def log_prob(self, y: Any, observed: Any = True) -> jax.Array:
        """log N(y | loc, cov); of the `observed` outputs (C,) only, which must be uncorrelated with the
        others.
        """
        white, log_det, size = _whiten(y, self.loc, self.cov, observed)
        return -0.5 * (jnp.sum(white**2) + size * math.log(2 * math.pi)) - log_det

    def sample(self, key: jax.Array, shape: tuple[int, ...] = ()) -> jax.Array:
        """Draws of y."""
        noise = jax.random.normal(key, (*shape, self.loc.shape[0]), self.loc.dtype)
        draws = noise @ jnp.linalg.cholesky(self.cov).T
        draws = draws + jnp.broadcast_to(self.loc, draws.shape)
        return draws[..., 0] if self.loc.shape[0] == 1 else draws

    def cdf(self, y: Any) -> jax.Array:
        """P(Y <= y) of each output."""
        return jst.norm.cdf(jnp.asarray(y, self.loc.dtype), self.mean, self.sd)

    def quantile(self, p: Any) -> jax.Array:
        """loc + sd * the standard normal quantile."""
        return _spread_quantile(jss.ndtri, p, self.mean, self.sd)


@record
class StudentTPredictive(Predictive):
    """y ~ t(df, loc, shape matrix), the marginal of a normal whose variance is inverse-gamma; loc (C,), shape
    (C, C).
    """

    df: jax.Array
    loc: jax.Array
    shape: jax.Array

    @property
    def mean(self) -> jax.Array:
        """E[y]; it exists for df > 1, elsewhere this is the median."""
        return _drop_one(self.loc)

    @property
    def scale(self) -> jax.Array:
        """The scale (not the standard deviation) of each output."""
        return _drop_one(jnp.sqrt(jnp.diagonal(self.shape)))

    @property
    def var(self) -> jax.Array:
        """Var[y] = scale^2 df / (df - 2); infinite for df <= 2."""
        ratio = jnp.where(self.df > 2, self.df / jnp.where(self.df > 2, self.df - 2, 1.0), jnp.inf)
        return self.scale**2 * jnp.broadcast_to(ratio, self.scale.shape)

    def log_prob(self, y: Any, observed: Any = True) -> jax.Array:
        """The multivariate t log density; of the `observed` outputs (C,) only, which must be uncorrelated
        with the others.
        """
        white, log_det, size = _whiten(y, self.loc, self.shape, observed)
        half = 0.5 * (self.df + size)
        constant = jss.gammaln(half) - jss.gammaln(0.5 * self.df) - 0.5 * size * jnp.log(self.df * math.pi)
        return constant - log_det - half * jnp.log1p(jnp.sum(white**2) / self.df)

    def sample(self, key: jax.Array, shape: tuple[int, ...] = ()) -> jax.Array:
        """Draws of y."""
        first, second = jax.random.split(key)
        noise = (
            jax.random.normal(first, (*shape, self.loc.shape[0]), self.loc.dtype)
            @ jnp.linalg.cholesky(self.shape).T
        )
        chi2 = 2.0 * jax.random.gamma(second, 0.5 * self.df, (*shape, 1), self.loc.dtype)
        draws = noise * jnp.sqrt(self.df / chi2)
        draws = draws + jnp.broadcast_to(self.loc, draws.shape)
        return draws[..., 0] if self.loc.shape[0] == 1 else draws

    def cdf(self, y: Any) -> jax.Array:
        """P(Y <= y) of each output."""
        return student_cdf((jnp.asarray(y, self.loc.dtype) - self.mean) / self.scale, self.df)

    @verb
    def quantile(self, p: Any) -> jax.Array:
        """loc + scale * the standard t quantile, by bisection on the distribution function."""

        def standard(q: jax.Array) -> jax.Array:
            return jnp.tan(bisect(lambda u: student_cdf(jnp.tan(u), self.df), q, -np.pi / 2, np.pi / 2))

        return _spread_quantile(standard, p, self.mean, self.scale)


@record
class MixturePredictive(Predictive):
    """A likelihood averaged over values of eta: `etas` (n, C) with log weights (n,) that sum to one."""

    likelihood: Any
    etas: jax.Array
    log_weights: jax.Array

    @property
    def discrete(self) -> bool:
        """Whether y takes whole-number values."""
        return self.likelihood.discrete

    def _average(self, values: jax.Array) -> jax.Array:
        return jnp.tensordot(jnp.exp(self.log_weights), values, axes=1)

    @property
    def probs(self) -> jax.Array:
        """The class probabilities."""
        if not hasattr(self.likelihood, "probs"):
            return super().probs
        return self._average(jax.vmap(self.likelihood.probs)(self.etas))

    @property
    def mean(self) -> jax.Array:
        """E[y] (for Categorical: the class probabilities, the mean of the one-hot label)."""
        return _drop_one(self._average(jax.vmap(self.likelihood.mean)(self.etas)))

    @property
    def var(self) -> jax.Array:
        """Var[y] by the law of total variance."""
        means = jax.vmap(self.likelihood.mean)(self.etas)
        centre = self._average(means)
        return _drop_one(
            self._average(jax.vmap(self.likelihood.variance)(self.etas) + (means - centre[None, :]) ** 2)
        )

    def log_prob(self, y: Any) -> jax.Array:
        """log of the average of p(y | eta) (not the average of the logs)."""
        each = jax.vmap(lambda eta: self.likelihood.log_prob(eta, y))(self.etas)
        return jss.logsumexp(each + self.log_weights)

    def sample(self, key: jax.Array, shape: tuple[int, ...] = ()) -> jax.Array:
        """Draws of y: first of eta, then of y given eta."""
        first, second = jax.random.split(key)
        count = int(np.prod(shape))
        which = jax.random.categorical(first, self.log_weights, shape=(count,))
        draws = jax.vmap(self.likelihood.sample)(self.etas[which], jax.random.split(second, count))
        return draws.reshape(tuple(shape) + draws.shape[1:])

    def cdf(self, y: Any) -> jax.Array:
        """P(Y <= y), for one output."""
        value = jnp.asarray(y, self.etas.dtype)
        each = jax.vmap(lambda eta: self.likelihood.cdf(eta, value))(self.etas)
        return self._average(each)

    @verb
    def quantile(self, p: Any) -> jax.Array:
        """By bisection on the distribution function; among whole numbers where y is discrete."""
        largest = jnp.max(jnp.abs(self.etas))
        return search_quantile(self.cdf, p, self.mean, self.sd, largest, self.likelihood.discrete)


@record
class PredictiveRows(Predictive):
    """The predictives of N rows: `rows` is a predictive whose arrays have a leading axis N; so has every
    answer.
    """

    rows: Any

    @property
    def mean(self) -> jax.Array:
        """E[y] of each row, (N, ...)."""
        return jax.vmap(lambda row: row.mean)(self.rows)

    @property
    def var(self) -> jax.Array:
        """Var[y] of each row, (N, ...)."""
        return jax.vmap(lambda row: row.var)(self.rows)

    @property
    def probs(self) -> jax.Array:
        """The class probabilities of each row, (N, C)."""
        return jax.vmap(lambda row: row.probs)(self.rows)

    def log_prob(self, y: Any) -> jax.Array:
        """log p(y_n) of each row, (N,)."""
        return jax.vmap(lambda row, value: row.log_prob(value))(self.rows, y)

    def sample(self, key: jax.Array, shape: tuple[int, ...] = ()) -> jax.Array:
        """Draws for each row, (N, *shape, ...)."""
        keys = jax.random.split(key, jax.tree.leaves(self.rows)[0].shape[0])
        return jax.vmap(lambda row, one: row.sample(one, shape))(self.rows, keys)

    def cdf(self, y: Any) -> jax.Array:
        """P(Y_n <= y_n) of each row."""
        return jax.vmap(lambda row, value: row.cdf(value))(self.rows, y)

    @verb
    def quantile(self, p: Any) -> jax.Array:
        """The quantiles of each row: (N,) and then the shape of p."""
        return jax.vmap(lambda row: row.quantile(p))(self.rows)


def _spread_quantile(standard: Any, p: Any, loc: jax.Array, scale: jax.Array) -> jax.Array:
    probability = jnp.asarray(p, loc.dtype)
    shape = probability.shape + loc.shape
    unit = jnp.broadcast_to(standard(probability).reshape(probability.shape + (1,) * loc.ndim), shape)
    return jnp.broadcast_to(loc, shape) + jnp.broadcast_to(scale, shape) * unit


def _drop_one(values: jax.Array) -> jax.Array:
    return values[0] if values.shape == (1,) else values


def _whiten(y: Any, loc: jax.Array, cov: jax.Array, observed: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The whitened residual, half the log determinant of the covariance, and the number of outputs, of the
    observed ones.
    """
    chol = jnp.linalg.cholesky(cov)
    seen = jnp.broadcast_to(jnp.asarray(observed), loc.shape)
    gap = jnp.where(seen, vector(y, loc) - loc, 0.0)
    white = jax.scipy.linalg.solve_triangular(chol, gap, lower=True)
    return white, jnp.sum(jnp.where(seen, jnp.log(jnp.diagonal(chol)), 0.0)), jnp.sum(seen.astype(loc.dtype))


def vector(y: Any, like: jax.Array) -> jax.Array:
    """An observation as a vector (C,) of the dtype of eta."""
    array = jnp.asarray(y, like.dtype).reshape(-1)
    if array.shape != like.shape:
        raise CredoError(
            f"y must have {like.shape[0]} entries, one an output of the model; got shape {jnp.shape(y)}."
        )
    return array
