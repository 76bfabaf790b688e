"""Likelihoods of one output: Bernoulli (logit), Poisson (log-rate), Student-t (location)."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
import jax.scipy.special as jss
import jax.scipy.stats as jst

from credo.core.errors import CredoError, require_choice, require_positive
from credo.core.records import record, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, PyTree
from credo.likelihoods.base import LikelihoodBase
from credo.likelihoods.quantiles import student_cdf
from credo.likelihoods.secant import secant_root

__all__ = ["Bernoulli", "Poisson", "StudentT"]


class _OneOutput(LikelihoodBase):
    """Shapes shared by likelihoods whose eta is one number, held as (1,)."""

    def check(self, size: int) -> None:
        """Refuse a model with several outputs."""
        if size != 1:
            raise CredoError(f"{type(self).__name__} needs a model with 1 output; this one has {size}.")


@record
class Bernoulli(_OneOutput):
    """Observations y in {0, 1} with logit eta: p(1 | eta) = 1 / (1 + exp(-eta)).

    A y outside [0, 1] counts as a missing observation.

    Example:
        >>> Bernoulli().plugin(jnp.zeros(1)).probs
        Array([0.5, 0.5], dtype=float32)
    """

    discrete = True

    def observed(self, y: PyTree) -> Array:
        """Whether y lies in [0, 1]."""
        value = jnp.asarray(y)
        return jnp.all((value >= 0) & (value <= 1))

    def log_prob(self, eta: Array, y: PyTree) -> Array:
        """log p(y | eta), without overflow at any logit."""
        label, logit = _number(y, eta), eta[0]
        # log sigmoid(u) = min(u, 0) - log(1 + exp(-|u|)), whose second term both labels share.
        lower = label * jnp.minimum(logit, 0.0) + (1 - label) * jnp.minimum(-logit, 0.0)
        return lower - jnp.log1p(jnp.exp(-jnp.abs(logit)))

    def score(self, eta: Array, y: PyTree) -> Array:
        """y - p, from both tails so that it keeps its digits; a confident mistake is not attenuated."""
        target = _number(y, eta)
        return target * jax.nn.sigmoid(-eta) - (1 - target) * jax.nn.sigmoid(eta)

    def fisher_root(self, eta: Array, y: PyTree) -> Array:
        """sqrt(p (1 - p)), from both tails so that it does not underflow early."""
        return jnp.exp(0.5 * (jax.nn.log_sigmoid(eta) + jax.nn.log_sigmoid(-eta)))[:, None]

    def mean(self, eta: Array) -> Array:
        """p."""
        return jax.nn.sigmoid(eta)

    def variance(self, eta: Array) -> Array:
        """p (1 - p)."""
        return jax.nn.sigmoid(eta) * jax.nn.sigmoid(-eta)

    def probs(self, eta: Array) -> Array:
        """The probabilities of 0 and of 1, (2,)."""
        return jnp.concatenate([jax.nn.sigmoid(-eta), jax.nn.sigmoid(eta)])

    def sample(self, eta: Array, key: Array) -> Array:
        return jax.random.bernoulli(key, jax.nn.sigmoid(eta[0])).astype(eta.dtype)

    def cdf(self, eta: Array, y: Array) -> Array:
        """P(Y <= y)."""
        return jnp.where(y < 0, 0.0, jnp.where(y < 1, jax.nn.sigmoid(-eta[0]), 1.0))


@record
class Poisson(_OneOutput):
    """Observations y that are counts with log-rate eta: log p(y | eta) = y eta - exp(eta) - log y!.

    A y below 0 counts as a missing observation.

    Arguments:
        curvature: "expected" takes the Fisher information exp(eta). "secant" takes the slope of the chord,
            (y - rate) / (log y - eta), where y is above the rate: however large y is, an update then moves
            eta no farther than to log y, where a Newton step would leave the range of numbers.

    Raises:
        CredoError: `curvature` has another value.

    Example:
        >>> Poisson().plugin(jnp.log(jnp.asarray([4.0]))).quantile(0.5)
        Array(4., dtype=float32)
    """

    discrete = True
    curvature: Literal["expected", "secant"] = static_field(default="expected")

    def __post_init__(self) -> None:
        require_choice("curvature", self.curvature, ["expected", "secant"])

    def observed(self, y: PyTree) -> Array:
        """Whether y is a count: at least 0."""
        return jnp.all(jnp.asarray(y) >= 0)

    def log_prob(self, eta: Array, y: PyTree) -> Array:
        """y eta - exp(eta) - log y!."""
        count = _number(y, eta)
        return count * eta[0] - jnp.exp(eta[0]) - jss.gammaln(count + 1.0)

    def score(self, eta: Array, y: PyTree) -> Array:
        """y - rate."""
        return _number(y, eta) - jnp.exp(eta)

    def fisher_root(self, eta: Array, y: PyTree) -> Array:
        """sqrt(rate), or the root of the chord's slope."""
        root = jnp.exp(0.5 * eta)[:, None]
        if self.curvature == "expected":
            return root
        return root * secant_root(_number(y, eta) * jnp.exp(-eta[0]))

    def mean(self, eta: Array) -> Array:
        """The rate."""
        return jnp.exp(eta)

    def variance(self, eta: Array) -> Array:
        """The rate."""
        return jnp.exp(eta)

    def sample(self, eta: Array, key: Array) -> Array:
        return jax.random.poisson(key, jnp.exp(eta[0])).astype(eta.dtype)

    def cdf(self, eta: Array, y: Array) -> Array:
        """P(Y <= y), by the incomplete gamma function."""
        floor = jnp.floor(y)
        inside = jss.gammaincc(jnp.maximum(floor, 0.0) + 1.0, jnp.exp(eta[0]))
        return jnp.where(floor < 0, 0.0, inside)


@record
class StudentT(_OneOutput):
    """Observations y ~ eta + scale * t(df), with location eta and heavy-tailed noise.

    Arguments:
        df: the degrees of freedom, above 0.
        scale: the scale, above 0; the standard deviation is scale sqrt(df / (df - 2)).
        curvature: "expected" takes the Fisher information (df + 1) / ((df + 3) scale^2), whatever y is.
            "weighted" takes w / scale^2 with the weight w = (df + 1) / (df + (e / scale)^2) that the residual
            e leaves to y (Lange, Little & Taylor 1989): the update is then that for normal noise of variance
            scale^2 / w. An outlier says next to nothing; with "expected" it says that nothing has moved, so
            that a filter which has lost the truth grows ever more certain, and never finds it again.

    Raises:
        CredoError: `df` or `scale` is not above 0, or the curvature is neither of the two.

    Example:
        >>> StudentT(df=4.0).score(jnp.zeros(1), jnp.asarray(1e6)) < 1e-4
        Array([ True], dtype=bool)
    """

    df: ArrayLike = 4.0
    scale: ArrayLike = 1.0
    curvature: Literal["expected", "weighted"] = static_field(default="expected")

    def __post_init__(self) -> None:
        require_positive("df", self.df)
        require_positive("scale", self.scale)
        require_choice("curvature", self.curvature, ["expected", "weighted"])

    def log_prob(self, eta: Array, y: PyTree) -> Array:
        """The t log density."""
        return jst.t.logpdf(_number(y, eta), as_like(self.df, eta), eta[0], as_like(self.scale, eta))

    def score(self, eta: Array, y: PyTree) -> Array:
        """(df + 1) e / (df scale^2 + e^2) with e = y - eta: bounded, so outliers are forgiven."""
        gap, df = _number(y, eta) - eta, as_like(self.df, eta)
        return (df + 1.0) * gap / (df * as_like(self.scale, eta) ** 2 + gap**2)

    def fisher_root(self, eta: Array, y: PyTree) -> Array:
        """The root of (df + 1) / ((df + 3) scale^2), or of w / scale^2."""
        df = as_like(self.df, eta)
        if self.curvature == "weighted":
            gap = _number(y, eta) - eta[0]
            height = (df + 1.0) / (df * as_like(self.scale, eta) ** 2 + gap**2)
            return jnp.sqrt(height).reshape(1, 1)
        return (jnp.sqrt((df + 1.0) / (df + 3.0)) / as_like(self.scale, eta)).reshape(1, 1)

    def mean(self, eta: Array) -> Array:
        """The location (for df <= 1, where no mean exists, the median)."""
        return eta

    def variance(self, eta: Array) -> Array:
        """scale^2 df / (df - 2), infinite for df <= 2."""
        df = as_like(self.df, eta)
        ratio = jnp.where(df > 2, df / jnp.where(df > 2, df - 2, 1.0), jnp.inf)
        return jnp.broadcast_to(ratio * as_like(self.scale, eta) ** 2, eta.shape)

    def sample(self, eta: Array, key: Array) -> Array:
        return eta[0] + as_like(self.scale, eta) * jax.random.t(key, as_like(self.df, eta), dtype=eta.dtype)

    def cdf(self, eta: Array, y: Array) -> Array:
        """The t distribution function."""
        return student_cdf((y - eta[0]) / as_like(self.scale, eta), as_like(self.df, eta))


def _number(y: PyTree, eta: Array) -> Array:
    array = jnp.asarray(y).astype(eta.dtype)
    if array.size != 1:
        raise CredoError(f"y must be one number, for a model with 1 output; got shape {array.shape}.")
    return array.reshape(())
