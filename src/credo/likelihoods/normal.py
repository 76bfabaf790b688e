"""Normal observations, with known noise, with a noise variance that is learned, or with a root of the noise.

Noise that is given by a root may be singular.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import jax.scipy.stats as jst
import numpy as np

from credo.beliefs.conjugate import InverseGamma
from credo.core.errors import CredoError, require_covariance, require_representable
from credo.core.records import record
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, DTypeLike, PyTree
from credo.likelihoods.base import LikelihoodBase
from credo.likelihoods.elliptical import (
    NormalPredictive,
    StudentTPredictive,
    drop_last,
    only_observed,
    vector,
)
from credo.likelihoods.mixture import MixturePredictive
from credo.likelihoods.predictive import Predictive
from credo.linalg.matrices import cholesky, inverse, precision, solve, solve_lower, spread_root, triangularize

__all__ = ["Normal", "RootNormal", "RootNormalPredictive", "informative", "resolution"]


@record
class Normal(LikelihoodBase):
    """Observations y ~ N(eta, var), with mean eta.

    Arguments:
        var: the noise *variance* (never a standard deviation): a number, one number an output (C,), a
            covariance matrix (C, C), or an `InverseGamma` prior if it is unknown. With such a prior, the
            variances of the belief and the noise of the dynamics are in units of the noise variance, updates
            are exact for linear models (normal-inverse-gamma), and predictives are Student-t.

    Of several outputs, those that are NaN in y are not observed: `log_prob`, `score` and `fisher_root` are
    those of the others alone.

    Raises:
        CredoError: a variance is not above 0, or (later) its shape does not fit the outputs of a model.

    Example:
        >>> Normal(0.25).linearized(jnp.zeros(1), jnp.eye(1)).var
        Array(1.25, dtype=float32)
    """

    quadratic = True
    var: ArrayLike | Sequence[float] | InverseGamma = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.var, InverseGamma):
            return
        if isinstance(self.var, list | tuple):
            require_representable("var", self.var)
            object.__setattr__(self, "var", jnp.asarray(self.var, float))
        require_covariance("var", self.var, singular=False)

    def _var(self, eta: Array) -> Array:
        """The variance that is known, in the dtype of eta."""
        assert not isinstance(self.var, InverseGamma)
        return as_like(jnp.asarray(self.var), eta)

    def _cov(self, eta: Array) -> Array:
        var = self._var(eta)
        if var.ndim == 2:
            return var
        return jnp.diag(jnp.broadcast_to(var, eta.shape))

    def check(self, size: int) -> None:
        """Refuse a noise variance whose shape does not fit `size` outputs.

        Raises:
            CredoError: the shape of `var` does not fit the outputs of the model.
        """
        if isinstance(self.var, InverseGamma) or np.ndim(self.var) == 0:
            return
        if np.shape(self.var) not in [(size,), (size, size)]:
            raise CredoError(
                f"var must be a number, ({size},) or ({size}, {size}) to fit; got shape {np.shape(self.var)}."
            )

    def log_prob(self, eta: Array, y: PyTree) -> Array:
        """log N(y | eta, var)."""
        var = self._var(eta)
        if var.ndim == 2:
            return NormalPredictive(eta, var).log_prob(y)
        value = vector(y, eta)
        var = jnp.broadcast_to(var, eta.shape)
        missing = jnp.isnan(value)
        seen = ~missing | jnp.all(missing)
        gap = jnp.where(seen, value - eta, 0.0)
        return -0.5 * jnp.sum(jnp.where(seen, gap**2 / var + jnp.log(2 * math.pi * var), 0.0))

    def score(self, eta: Array, y: PyTree) -> Array:
        """inv(var) (y - eta), and 0 for outputs that are not observed."""
        gap = vector(y, eta) - eta
        var = self._var(eta)
        if eta.shape[0] == 1:
            if var.ndim == 2:
                return solve(var, gap)
            return gap / var
        seen = ~jnp.isnan(gap)
        gap = jnp.where(seen, gap, 0.0)
        if var.ndim == 2:
            return solve(only_observed(var, seen), gap)
        return gap / var

    def fisher_root(self, eta: Array, y: PyTree) -> Array:
        """1 / sd on the diagonal (for a noise matrix R: inv(L)' with R = L L'); rows of 0 if y is NaN."""
        var = self._var(eta)
        if eta.shape[0] == 1:
            if var.ndim == 2:
                return inverse(cholesky(var)).T
            return jax.lax.rsqrt(var).reshape(1, 1)
        seen = ~jnp.isnan(vector(y, eta))
        if var.ndim < 2:
            return jnp.diag(jnp.where(seen, jnp.broadcast_to(jax.lax.rsqrt(var), eta.shape), 0.0))
        return jnp.where(seen[:, None], inverse(cholesky(only_observed(var, seen))).T, 0.0)

    def seen(self, y: PyTree) -> Array | None:
        """Which of several outputs are not NaN (C,); None for one output."""
        leaves = jax.tree.leaves(y)
        if len(leaves) != 1 or jnp.size(leaves[0]) == 1:
            return None
        array = jnp.asarray(leaves[0])
        if jnp.issubdtype(array.dtype, jnp.floating):
            return ~jnp.isnan(array.reshape(-1))
        return None

    def mean(self, eta: Array) -> Array:
        """eta."""
        return eta

    def variance(self, eta: Array) -> Array:
        """The noise variance of each output."""
        variances: Array = jnp.diagonal(self._cov(eta))
        return variances

    def sample(self, eta: Array, key: Array) -> Array:
        return NormalPredictive(eta, self._cov(eta)).sample(key)

    def cdf(self, eta: Array, y: Array) -> Array:
        """The normal distribution function, for one output."""
        return jst.norm.cdf(y, eta[0], jnp.sqrt(self.variance(eta)[0]))

    def init_noise(self, dtype: DTypeLike) -> InverseGamma | None:
        """The prior of the noise variance if it is unknown."""
        if not isinstance(self.var, InverseGamma):
            return None
        prior: InverseGamma = jax.tree.map(lambda value: jnp.asarray(value, dtype), self.var)
        return prior

    def given_noise(self, noise: InverseGamma | None) -> Normal:
        """The likelihood with unit noise where the variance is unknown; the belief is in units of it."""
        if noise is None:
            return self
        return Normal(1.0)

    def tiled(self, size: int) -> Normal:
        """The noise of several rows, one after another, with `size` outputs in all."""
        if isinstance(self.var, InverseGamma) or np.ndim(self.var) == 0:
            return self
        var = jnp.asarray(self.var)
        count = size // var.shape[0]
        return Normal(
            jnp.tile(var, count) if var.ndim == 1 else jnp.kron(jnp.eye(count, dtype=var.dtype), var)
        )

    def plugin(self, eta: Array, noise: InverseGamma | None = None) -> Predictive:
        """N(eta, var), or a Student-t that marginalises an unknown variance."""
        return self.linearized(eta, jnp.zeros((eta.shape[0], eta.shape[0]), eta.dtype), noise)

    def linearized(self, eta: Array, cov: Array, noise: InverseGamma | None = None) -> Predictive:
        """The predictive N(eta, cov + var), which is exact for linear models.

        If var is unknown, it is Student-t(2 shape, eta, scale / shape (cov + I)).
        """
        if noise is None:
            return NormalPredictive(eta, cov + self._cov(eta))
        shape = jnp.asarray(noise.shape)
        scale = jnp.asarray(noise.scale)
        unit = cov + jnp.eye(eta.shape[0], dtype=eta.dtype)
        return StudentTPredictive(2.0 * shape, eta, scale / shape * unit)

    def mixture(self, etas: Array, noise: InverseGamma | None = None) -> Predictive:
        """The equal mixture of normals over draws of eta; unknown noise takes its mean variance."""
        known = self if noise is None else Normal(noise.mean)
        weights = jnp.full(etas.shape[0], -np.log(etas.shape[0]), etas.dtype)
        return MixturePredictive(known, etas, weights)


def resolution(root: Array) -> float:
    """The share of a row of a matrix (n, m) that reflections may leave where exact ones leave 0."""
    return float(0.5 * math.sqrt(sum(root.shape)) * precision(root.dtype).eps)


def informative(root: Array, loc: Array, seen: Array) -> tuple[Array, Array]:
    """A root (C, K + C) of the covariance of outputs, and those seen (C,) that the others do not determine.

    Each output has independent noise of the size of its rounding, and of that of its mean (C,), so that no
    triangle of the root has a 0. An output is determined if, given those before it, a quarter of its standard
    deviation or more is that noise. Rows of outputs that say nothing are those of the identity.
    """
    level = resolution(root) * (jnp.sqrt(jnp.sum(root**2, axis=1)) + jnp.abs(loc))
    heard = seen & (level > 0)
    white = solve_lower(triangularize(_padded(root, level, heard)), jnp.diag(level))
    free = heard & (jnp.sum(white**2, axis=1) < 1.0 / 16.0)
    return _padded(root, level, free), free


def _padded(root: Array, level: Array, seen: Array) -> Array:
    noise = jnp.diag(jnp.where(seen, level, 1.0))
    return jnp.concatenate([jnp.where(seen[:, None], root, 0.0), noise], axis=1)


@record
class RootNormalPredictive(NormalPredictive):
    """The predictive y ~ N(loc, cov), whose covariance may be singular.

    Its density is taken from a triangle that reflections make of the root. No square is taken, so that a
    standard deviation of 1e-5 beside one of 1 keeps its digits in single precision.

    Attributes:
        loc: the mean (C,).
        cov: the covariance (C, C), positive semi-definite.
        root: a root (C, K) of it.

    Example:
        >>> distribution = RootNormalPredictive(jnp.zeros(2), jnp.ones((2, 2)), jnp.ones((2, 1)))
        >>> round(float(distribution.log_prob(jnp.ones(2))), 3)  # the density of one of two that are the same
        -1.419
    """

    root: Array

    def log_prob(self, y: PyTree, observed: ArrayLike = True) -> Array:
        """log N(y | loc, cov) of the outputs that those before them do not determine.

        Arguments:
            y: the observation (C,). Outputs that are NaN are left out, unless all of them are.
            observed: which outputs count, booleans (C,).
        """
        value = vector(y, self.loc)
        missing = jnp.isnan(value)
        seen = jnp.broadcast_to(jnp.asarray(observed), self.loc.shape) & (~missing | jnp.all(missing))
        padded, free = informative(self.root, self.loc, seen)
        chol = triangularize(padded)
        white = solve_lower(chol, jnp.where(free, value - self.loc, 0.0))
        logs = jnp.where(free, jnp.log(jnp.abs(jnp.diagonal(chol))), 0.0)
        size = jnp.sum(free.astype(chol.dtype))
        return -0.5 * (white @ white + size * math.log(2.0 * math.pi)) - jnp.sum(logs)

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        noise = jax.random.normal(key, (*shape, self.root.shape[1]), self.loc.dtype)
        draws = noise @ self.root.T
        return drop_last(draws + jnp.broadcast_to(self.loc, draws.shape))


@record
class RootNormal(LikelihoodBase):
    """Observations y ~ N(eta, R) with R = N N', which may be singular.

    It is the likelihood of `credo.kalman` if R is singular, or so small that single precision loses it.

    Arguments:
        root: N (C, K).

    Raises:
        CredoError: (later) the model has another number of outputs.

    Example:
        >>> float(RootNormal(jnp.zeros((1, 1))).plugin(jnp.ones(1)).var)
        0.0
    """

    quadratic = True
    root: ArrayLike

    def check(self, size: int) -> None:
        """Refuse a model with another number of outputs.

        Raises:
            CredoError: the model has another number of outputs.
        """
        if jnp.shape(self.root)[0] != size:
            raise CredoError(f"root must have {size} rows to fit; got shape {jnp.shape(self.root)}.")

    def log_prob(self, eta: Array, y: PyTree) -> Array:
        """log N(y | eta, R)."""
        return self.with_spread(eta, jnp.zeros((eta.shape[0], 1), eta.dtype)).log_prob(y)

    def seen(self, y: PyTree) -> Array | None:
        """A mask of those of several outputs that are not NaN (C,); None for one output."""
        array = jnp.asarray(y)
        if array.size == 1:
            return None
        return ~jnp.isnan(array.reshape(-1))

    def mean(self, eta: Array) -> Array:
        """eta."""
        return eta

    def variance(self, eta: Array) -> Array:
        """The noise variance of each output."""
        return jnp.sum(as_like(self.root, eta) ** 2, axis=1)

    def sample(self, eta: Array, key: Array) -> Array:
        return self.with_spread(eta, jnp.zeros((eta.shape[0], 1), eta.dtype)).sample(key)

    def with_spread(self, eta: Array, spread: Array) -> RootNormalPredictive:
        """The predictive for eta ~ N(eta, Z Z'), given by the root Z (C, K)."""
        root = jnp.concatenate([as_like(self.root, eta), spread], axis=1)
        return RootNormalPredictive(eta, root @ root.T, root)

    def linearized(self, eta: Array, cov: Array, noise: InverseGamma | None = None) -> Predictive:
        """The predictive N(eta, cov + R)."""
        return self.with_spread(eta, spread_root(cov))
