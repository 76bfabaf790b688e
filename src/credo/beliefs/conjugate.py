"""Conjugate beliefs over one unknown: a probability, a rate, a vector of probabilities, a noise variance."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.core.errors import require_interval, require_positive
from credo.core.fields import field
from credo.core.records import record
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike
from credo.linalg.matrices import cholesky, solve_lower

__all__ = ["Beta", "Dirichlet", "Gamma", "InverseGamma"]


@record
class Beta:
    """A probability p ~ Beta(a, b): density proportional to p^(a-1) (1 - p)^(b-1).

    Attributes:
        a, b: the pseudo-counts, above 0. The belief is worth a + b observations.
        t: how many times `predict` has been called.

    Example:
        >>> float(Beta(jnp.asarray(3.0), jnp.asarray(1.0), jnp.asarray(0)).mean)
        0.75
    """

    a: Array = field("positive")
    b: Array = field("positive")
    t: Array

    @property
    def mean(self) -> Array:
        """E[p] = a / (a + b)."""
        return self.a / (self.a + self.b)

    @property
    def var(self) -> Array:
        """Var[p]."""
        total = self.a + self.b
        return self.a * self.b / (total**2 * (total + 1))

    @property
    def params(self) -> Array:
        """E[p]."""
        return self.mean

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Draws of p."""
        return jax.random.beta(key, self.a, self.b, shape, jnp.result_type(self.a))


@record
class Gamma:
    """A rate ~ Gamma(shape, per): density proportional to rate^(shape-1) exp(-per rate).

    Attributes:
        shape: the number of events that the belief is worth, above 0.
        per: the time, or the number of observations, in which those events occurred, above 0.
        t: how many times `predict` has been called.

    Example:
        >>> float(Gamma(jnp.asarray(6.0), jnp.asarray(2.0), jnp.asarray(0)).mean)
        3.0
    """

    shape: Array = field("positive")
    per: Array = field("positive")
    t: Array

    @property
    def mean(self) -> Array:
        """E[rate] = shape / per."""
        return self.shape / self.per

    @property
    def var(self) -> Array:
        """Var[rate] = shape / per^2."""
        return self.shape / self.per**2

    @property
    def params(self) -> Array:
        """E[rate]."""
        return self.mean

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Draws of the rate."""
        return jax.random.gamma(key, self.shape, shape, jnp.result_type(self.shape)) / self.per


@record
class Dirichlet:
    """Class probabilities p ~ Dirichlet(counts): density proportional to prod p_c^(counts_c - 1).

    Attributes:
        counts: (C,), each above 0: the observations of each class that the belief is worth.
        t: how many times `predict` has been called.

    Example:
        >>> Dirichlet(jnp.array([3.0, 1.0]), jnp.asarray(0)).mean
        Array([0.75, 0.25], dtype=float32)
    """

    counts: Array = field("positive")
    t: Array

    @property
    def mean(self) -> Array:
        """E[p]."""
        return self.counts / jnp.sum(self.counts)

    @property
    def var(self) -> Array:
        """Var[p] of each class."""
        return self.mean * (1 - self.mean) / (jnp.sum(self.counts) + 1)

    @property
    def params(self) -> Array:
        """E[p]."""
        return self.mean

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Draws of p, (*shape, C)."""
        return jax.random.dirichlet(key, self.counts, shape, jnp.result_type(self.counts))


@record
class InverseGamma:
    """A belief about a noise variance v: density proportional to v^-(shape + 1) exp(-scale / v).

    Arguments:
        shape: a number above 0. The belief is worth 2 `shape` observations.
        scale: a number above 0; `scale / shape` is the typical variance.
        forgetting: a number in (0, 1], by which shape and scale are multiplied before each observation, so
            that the noise may drift and early, badly predicted observations lose their weight. 1 never
            forgets and is exact.

    Raises:
        CredoError: `shape` or `scale` is not above 0, or `forgetting` is outside (0, 1].

    Example:
        >>> InverseGamma(3.0, 1.0).mean
        Array(0.5, dtype=float32, weak_type=True)
    """

    shape: ArrayLike = 2.0
    scale: ArrayLike = 1.0
    forgetting: ArrayLike = 1.0

    def __post_init__(self) -> None:
        require_positive("shape", self.shape)
        require_positive("scale", self.scale)
        require_interval("forgetting", self.forgetting, 1e-6, 1.0)

    @property
    def mean(self) -> Array:
        """The mean E[v] = scale / (shape - 1), or scale / shape where shape <= 1 and no mean exists."""
        shape = jnp.asarray(self.shape)
        scale = jnp.asarray(self.scale)
        return scale / jnp.where(shape > 1, shape - 1, shape)

    def observe(self, gap: Array, unit_cov: Array, weight: Array) -> InverseGamma:
        """Condition on residuals e (C,) ~ N(0, v unit_cov): shape + w C / 2, scale + e' inv(unit_cov) e / 2.

        The residual is that of the *prediction*, and `unit_cov` includes the uncertainty of the parameters.
        The residual after the fit would bias the noise low. The result is exact for linear models
        (normal-inverse-gamma).

        Arguments:
            gap: the residual e (C,).
            unit_cov: its covariance in units of the noise variance (C, C), positive definite.
            weight: the weights of the C residuals, summed.

        Returns:
            The belief after the observation.
        """
        shape = jnp.asarray(self.shape)
        scale = jnp.asarray(self.scale)
        forget = as_like(self.forgetting, shape)
        white = solve_lower(cholesky(unit_cov), gap)
        return InverseGamma(
            forget * shape + 0.5 * weight, forget * scale + 0.5 * jnp.sum(white**2), self.forgetting
        )
