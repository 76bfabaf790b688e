"""Likelihoods of one number: Bernoulli (logit), Poisson (log-rate), Student-t, heteroscedastic normal."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
import jax.scipy.special as jss
import jax.scipy.stats as jst

from credo.beliefs.conjugate import InverseGamma
from credo.core.errors import CredoError, require_choice, require_positive
from credo.core.records import record, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, PyTree
from credo.likelihoods.base import LikelihoodBase
from credo.likelihoods.mixture import MixturePredictive, hermite_nodes
from credo.likelihoods.predictive import Predictive
from credo.likelihoods.quantiles import student_cdf
from credo.likelihoods.uncertain import LogitPredictive, RatePredictive, ShiftedStudentT

__all__ = ["Bernoulli", "HeteroscedasticNormal", "Poisson", "StudentT", "secant_root"]


def secant_root(ratio: Array) -> Array:
    """The root of how much steeper the chord is than the tangent, for the slope ratio - 1 (at least -1).

    Let the score in u be c (ratio e^-u - 1), with curvature c at ratio 1; it vanishes at u = log ratio, where
    the ratio is the observation over its expectation. A Newton step of curvature c from 0 goes to ratio - 1,
    which is exponentially far for large ratios. The chord from 0 to the zero has the curvature
    c (ratio - 1) / log ratio, by which the step ends at log ratio. At ratios below 1 the tangent's step is
    the shorter one, and is taken: the root is 1.
    """
    above = ratio > 1.0
    log = jnp.log(jnp.where(above, ratio, 2.0))
    # (r - 1) / log r by expm1, which keeps its digits near 1
    chord = jnp.expm1(log) / jnp.where(log > 0, log, 1.0)
    return jnp.where(above & (log > 0), jnp.sqrt(jnp.maximum(chord, 1.0)), 1.0)


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
        label = _number(y, eta)
        logit = eta[0]
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

    def linearized(self, eta: Array, cov: Array, noise: InverseGamma | None = None) -> Predictive:
        """The predictive for eta ~ N(eta, cov), with a relative error of at most 5e-8."""
        return LogitPredictive(eta[0], cov[0, 0])


@record
class Poisson(_OneOutput):
    """Observations y that are counts with log-rate eta: log p(y | eta) = y eta - exp(eta) - log y!.

    A y below 0 counts as a missing observation.

    Arguments:
        curvature: "expected" takes the Fisher information exp(eta). "secant" takes the slope of the chord,
            (y - rate) / (log y - eta), where y is above the rate: however large y is, an update then moves
            eta no farther than to log y, where a Newton step would leave the range of numbers. With
            `BONGRule` the chord bounds the step alone, and the precision grows by exp(eta); other rules count
            the chord, 1.29 times as much at a rate of 1, and end too certain by as much.

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

    def information_root(self, eta: Array, y: PyTree) -> Array | None:
        """sqrt(rate), if the chord bounds the step."""
        if self.curvature == "expected":
            return None
        return jnp.exp(0.5 * eta)[:, None]

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

    def linearized(self, eta: Array, cov: Array, noise: InverseGamma | None = None) -> Predictive:
        """The predictive for eta ~ N(eta, cov)."""
        gaps, log_weights = self.nodes(cov)
        return RatePredictive(self, eta[None, :] + gaps, log_weights, eta[0], cov[0, 0])


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
        gap = _number(y, eta) - eta
        df = as_like(self.df, eta)
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

    def linearized(self, eta: Array, cov: Array, noise: InverseGamma | None = None) -> Predictive:
        """The predictive for eta ~ N(eta, cov)."""
        return ShiftedStudentT(eta[0], cov[0, 0], as_like(self.df, eta), as_like(self.scale, eta))


def _number(y: PyTree, eta: Array) -> Array:
    array = jnp.asarray(y).astype(eta.dtype)
    if array.size != 1:
        raise CredoError(f"y must be one number, for a model with 1 output; got shape {array.shape}.")
    return array.reshape(())


@record
class HeteroscedasticNormal(LikelihoodBase):
    """Observations y ~ N(eta_0, exp(eta_1)): one output is the mean, the other the log of the noise variance.

    The Fisher information is diag(exp(-eta_1), 1/2). If an observation lies outside the noise, r^2 = (y -
    eta_0)^2 exp(-eta_1) > 1, the second entry is that of the chord of the score, (r^2 - 1) / (2 log r^2),
    which is larger: one outlier then cannot carry the log variance beyond the value that explains it.
    With `BONGRule` the chord bounds the step alone, and the precision grows by the Fisher information. Other
    rules count the chord, 1.19 times as much on average, and end too certain of the log variance by as much.
    The model needs 2 outputs, and y is one number.

    Raises:
        CredoError: (later) the model has another number of outputs, or y is not one number.

    Example:
        >>> predictive = HeteroscedasticNormal().plugin(jnp.log(jnp.array([1.0, 4.0])))
        >>> float(predictive.mean), float(predictive.var)
        (0.0, 4.0)
    """

    def check(self, size: int) -> None:
        """Refuse a model that has not 2 outputs.

        Raises:
            CredoError: the model has another number of outputs.
        """
        if size != 2:
            raise CredoError(
                "HeteroscedasticNormal needs a model with 2 outputs, the mean and the log of the noise "
                f"variance; this one has {size}."
            )

    def log_prob(self, eta: Array, y: PyTree) -> Array:
        """log N(y | eta_0, exp(eta_1))."""
        gap = _modelled_number(y, eta) - eta[0]
        return -0.5 * (gap**2 * jnp.exp(-eta[1]) + eta[1] + jnp.log(2 * jnp.pi).astype(eta.dtype))

    def score(self, eta: Array, y: PyTree) -> Array:
        """((y - eta_0) exp(-eta_1), (r^2 - 1) / 2)."""
        gap = _modelled_number(y, eta) - eta[0]
        precision = jnp.exp(-eta[1])
        return jnp.stack([gap * precision, 0.5 * (gap**2 * precision - 1.0)])

    def fisher_root(self, eta: Array, y: PyTree) -> Array:
        """The root of the Fisher information, with the chord for outliers."""
        square = (_modelled_number(y, eta) - eta[0]) ** 2 * jnp.exp(-eta[1])
        return jnp.diag(jnp.stack([jnp.exp(-0.5 * eta[1]), jnp.sqrt(0.5) * secant_root(square)]))

    def information_root(self, eta: Array, y: PyTree) -> Array | None:
        """The root of the Fisher information."""
        half = jnp.full_like(eta[1], 0.5)
        return jnp.diag(jnp.sqrt(jnp.stack([jnp.exp(-eta[1]), half])))

    def mean(self, eta: Array) -> Array:
        """eta_0."""
        return eta[:1]

    def variance(self, eta: Array) -> Array:
        """exp(eta_1)."""
        return jnp.exp(eta[1:])

    def sample(self, eta: Array, key: Array) -> Array:
        return eta[0] + jnp.exp(0.5 * eta[1]) * jax.random.normal(key, (), eta.dtype)

    def cdf(self, eta: Array, y: Array) -> Array:
        """The normal distribution function."""
        return jst.norm.cdf(y, eta[0], jnp.exp(0.5 * eta[1]))

    def linearized(self, eta: Array, cov: Array, noise: InverseGamma | None = None) -> Predictive:
        """The predictive for eta ~ N(eta, cov): a mixture of normals over 32 Gauss-Hermite nodes of eta_1.

        Given eta_1, eta_0 is normal, and is integrated exactly.
        """
        nodes, log_weights = hermite_nodes(eta.dtype)
        sd = jnp.sqrt(jnp.maximum(cov[1, 1], 0.0))
        slope = cov[0, 1] / jnp.where(sd > 0, sd, 1.0)
        rest = jnp.maximum(cov[0, 0] - slope**2, 0.0)
        means = eta[0] + slope * nodes
        variances = jnp.exp(eta[1] + sd * nodes) + rest
        return MixturePredictive(self, jnp.stack([means, jnp.log(variances)], axis=1), log_weights)


def _modelled_number(y: PyTree, eta: Array) -> Array:
    array = jnp.asarray(y).astype(eta.dtype)
    if array.size != 1:
        raise CredoError(f"y must be one number, whose mean and variance are modelled; got {array.shape}.")
    return array.reshape(())
