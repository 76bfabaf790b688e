"""Learners that tell outliers: by their distance (`WoLF`), or by an indicator (`OutlierIndicator`)."""

from __future__ import annotations

from typing import Generic, Literal, TypeAlias, get_args

import jax
import jax.numpy as jnp
import jax.scipy.special as jss

from credo.adapt.nested import B
from credo.adapt.robust.reweighted import Residual, RobustLearner, Trust, log_peak
from credo.core.errors import require_choice, require_positive
from credo.core.records import record, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike
from credo.learners.base import OutputLearner

__all__ = ["OutlierIndicator", "WoLF"]


@record
class OutlierIndicator(RobustLearner[B], Generic[B]):
    """Infer whether y is an inlier, by variational Bayes on a Bernoulli indicator with a Beta prior.

    Wang, Li, Fang & Wang 2018 (IEEE Signal Processing Letters 25(8), eqs. 24-31): y ~ N(H theta, R)^z, z ~
    Bernoulli(p), p ~ Beta(a, b), with a density that is flat in y where z = 0. With D the expected squared
    residual in units of the noise and psi the digamma function, each iteration takes

        z <- sigmoid(psi(a + z) - psi(b + 1 - z) - D / 2)

    and updates with noise R / z. The first z uses D under the predictive, e' inv(H P H' + R) e. Each
    observation has a new indicator, and p is not learned over time.

    Arguments:
        learner: a recursive, ensemble or particle learner with a `Normal` likelihood of known variance.
        inliers, outliers: the prior pseudo-counts a and b, above 0.
        iterations: how many updates an observation takes, at least 1.

    `update` reports `log_evidence` = log [a N(y | yhat, H P H' + R) + b N(0 | 0, R)] / (a + b), whose
    second term is the flat density of outliers: a floor that is the same for every belief, so that it
    compares beliefs, not likelihoods. `extras.weight` is z; `forecast` is that of `learner`: of an inlier.

    Raises:
        CredoError: the learner, a count or `iterations` is not allowed.

    Cost: `iterations` updates of `learner`. This is a variational approximation: the evidence is that of the
        model
    with z summed out, at the belief before the update.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.adapt import OutlierIndicator
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = OutlierIndicator(credo.extended_kalman(model))
        >>> _, near = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> _, far = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 100.0)
        >>> bool(near.extras.weight > 0.99), bool(far.extras.weight < 0.01)
        (True, True)
    """

    learner: OutputLearner[B]
    inliers: ArrayLike = 0.9
    outliers: ArrayLike = 0.1
    iterations: int = static_field(default=2)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("inliers", self.inliers)
        require_positive("outliers", self.outliers)

    def _weigh(self, residual: Residual, last: Trust | None) -> Trust:
        a = as_like(self.inliers, residual.gap)
        b = as_like(self.outliers, residual.gap)
        before = jnp.ones_like(a) if last is None else last.weight
        distance = residual.predicted() if last is None else residual.expected
        odds = jss.digamma(a + before) - jss.digamma(b + 1.0 - before)
        return Trust(jax.nn.sigmoid(odds - 0.5 * distance))

    def _evidence(self, residual: Residual, trust: Trust) -> Array:
        a = as_like(self.inliers, residual.gap)
        b = as_like(self.outliers, residual.gap)
        inside = jnp.log(a) + residual.log_prob(jnp.ones_like(a))
        outside = jnp.log(b) + residual.log_scale + log_peak(residual.size)
        return jnp.logaddexp(inside, outside) - jnp.log(a + b)


Weighting: TypeAlias = Literal["imq", "mahalanobis"]
"""The function by which the weight of an observation falls with its distance."""


@record
class WoLF(RobustLearner[B], Generic[B]):
    """The weighted-observation likelihood filter: log p(y | theta) has weight W^2, so the noise is R / W^2.

    Duran-Martin, Altamirano, Shestopaloff, Sanchez-Betancourt, Knoblauch, Jones, Briol & Murphy 2024 (arXiv
    2405.05646), a generalised posterior whose update stays closed-form. With e = y - yhat at the predicted
    mean,

        "imq":          W^2 = 1 / (1 + |e|^2 / c^2)
        "mahalanobis":  W = 1 where |R^(-1/2) e| < c, else 0.

    An observation moves the mean by at most a bounded amount, and an outlier by next to nothing.

    Arguments:
        learner: a recursive, ensemble or particle learner with a `Normal` likelihood of known variance.
        threshold: c, above 0, in the units of y for "imq" and in standard deviations of the noise for
            "mahalanobis". As c grows, the result approaches the learner inside.
        weighting: "imq" or "mahalanobis".

    `update` reports `log_evidence` = log N(y | yhat, H P H' + R / W^2), the density of the observation
    under the noise it was given; `extras.weight` is W^2; `forecast` is that of `learner`. An observation
    left out by "mahalanobis" has no such noise: it is scored with the least noise under which it would not
    have been left out, R |R^(-1/2) e|^2 / c^2. So the evidence is finite and continuous, falls with the
    distance, and far out does not depend on the belief, so that an outlier favours no hypothesis. As a
    function of y it does not integrate to one, so it can compare beliefs but not likelihoods.

    Raises:
        CredoError: the learner, the threshold or the weighting is not allowed.

    Cost: that of `learner`, and one more Jacobian. The result is exact as a generalised posterior where
        `learner` is.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.adapt import WoLF
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = WoLF(credo.extended_kalman(model), threshold=2.0)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1e6)
        >>> bool(jnp.max(jnp.abs(belief.mean)) < 1e-3), bool(info.extras.weight < 1e-10)
        (True, True)
    """

    learner: OutputLearner[B]
    threshold: ArrayLike
    weighting: Weighting = static_field(default="imq")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("threshold", self.threshold)
        require_choice("weighting", self.weighting, get_args(Weighting))

    def _weigh(self, residual: Residual, last: Trust | None) -> Trust:
        limit = as_like(self.threshold, residual.gap)
        if self.weighting == "imq":
            scaled = residual.error / limit
            return Trust(1.0 / (1.0 + scaled @ scaled))
        return Trust((jnp.sqrt(residual.distance) < limit).astype(limit.dtype))

    def _evidence(self, residual: Residual, trust: Trust) -> Array:
        if self.weighting == "imq":
            return residual.log_prob(trust.weight)
        limit = as_like(self.threshold, residual.gap)
        return residual.log_prob(1.0 / jnp.maximum(1.0, residual.distance / limit**2))
