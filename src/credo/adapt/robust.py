"""Learners that an outlier cannot drag along: observations are weighted down, or found to be outliers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as jss

from credo.adapt.robust_base import Residual, RobustLearner, Trust, log_peak
from credo.core.errors import require_choice, require_positive
from credo.core.records import record, static_field
from credo.core.trees import as_like
from credo.learners import RecursiveLearner

__all__ = ["OutlierIndicator", "WoLF"]

WEIGHTINGS = ("imq", "mahalanobis")


@record
class WoLF(RobustLearner):
    """The weighted-observation likelihood filter: log p(y | theta) counts W^2, so that its noise is R / W^2.

    Duran-Martin, Altamirano, Shestopaloff, Sanchez-Betancourt, Knoblauch, Jones, Briol & Murphy 2024 (arXiv
    2405.05646), a generalised posterior whose update stays closed-form. With e = y - yhat at the predicted
    mean,

        "imq":          W^2 = 1 / (1 + |e|^2 / c^2)
        "mahalanobis":  W = 1 where |R^(-1/2) e| < c, else 0.

    An observation moves the mean by at most a bounded amount, and an outlier by next to nothing.

    Arguments:
        learner: a `RecursiveLearner` with a `Normal` likelihood of known variance.
        threshold: c, above 0; in the units of y for "imq", in standard deviations of the noise for
            "mahalanobis". As c grows the learner inside is approached.
        weighting: "imq" or "mahalanobis".

    `update` reports `log_evidence` = log N(y | yhat, H P H' + R / W^2), the density of the observation
    under the noise it was given; `extras.weight` is W^2; `forecast` is that of `learner`. An observation
    left out by "mahalanobis" has no such noise: it is scored with the least noise under which it would not
    have been left out, R |R^(-1/2) e|^2 / c^2. So the evidence is finite and continuous, falls with the
    distance, and far out does not depend on the belief: an outlier speaks for no hypothesis. As a function
    of y it does not integrate to one: it compares beliefs, not likelihoods.

    Raises:
        CredoError: the learner, the threshold or the weighting is not one of these.

    Cost: that of `learner`, and one more Jacobian. Exact as a generalised posterior where `learner` is exact.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.adapt.robust import WoLF
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = WoLF(credo.extended_kalman(model), threshold=2.0)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1e6)
        >>> bool(jnp.max(jnp.abs(belief.mean)) < 1e-3), bool(info.extras.weight < 1e-10)
        (True, True)
    """

    learner: RecursiveLearner
    threshold: Any
    weighting: str = static_field(default="imq")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("threshold", self.threshold)
        require_choice("weighting", self.weighting, WEIGHTINGS)

    def _weigh(self, seen: Residual, last: Trust | None) -> Trust:
        limit = as_like(self.threshold, seen.gap)
        if self.weighting == "imq":
            scaled = seen.error / limit
            return Trust(1.0 / (1.0 + scaled @ scaled))
        return Trust((jnp.sqrt(seen.distance) < limit).astype(limit.dtype))

    def _evidence(self, seen: Residual, trust: Trust) -> jax.Array:
        if self.weighting == "imq":
            return seen.log_prob(trust.weight)
        limit = as_like(self.threshold, seen.gap)
        return seen.log_prob(1.0 / jnp.maximum(1.0, seen.distance / limit**2))


@record
class OutlierIndicator(RobustLearner):
    """Finds out whether y is an inlier, by variational Bayes on a Bernoulli indicator with a Beta prior.

    Wang, Li, Fang & Wang 2018 (IEEE Signal Processing Letters 25(8), eqs. 24-31): y ~ N(H theta, R)^z, z ~
    Bernoulli(p), p ~ Beta(a, b), with a density that is flat in y where z = 0. With D the expected squared
    residual in units of the noise and psi the digamma function, each iteration takes

        z <- sigmoid(psi(a + z) - psi(b + 1 - z) - D / 2)

    and updates with noise R / z. The first z sees D under the predictive, e' inv(H P H' + R) e. The
    indicator is anew for each observation; p is not learned over time.

    Arguments:
        learner: a `RecursiveLearner` with a `Normal` likelihood of known variance.
        inliers, outliers: a and b, above 0: the prior pseudo-counts.
        iterations: how many updates an observation takes, at least 1.

    `update` reports `log_evidence` = log [a N(y | yhat, H P H' + R) + b N(0 | 0, R)] / (a + b), whose
    second term is the flat density of outliers: a floor that is the same for every belief, so that it
    compares beliefs, not likelihoods. `extras.weight` is z; `forecast` is that of `learner`: of an inlier.

    Raises:
        CredoError: the learner, a count or `iterations` is not one of these.

    Cost: `iterations` updates of `learner`. A variational approximation; the evidence is that of the model
    with z summed out, at the belief before the update.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.adapt.robust import OutlierIndicator
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = OutlierIndicator(credo.extended_kalman(model))
        >>> _, near = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> _, far = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 100.0)
        >>> bool(near.extras.weight > 0.99), bool(far.extras.weight < 0.01)
        (True, True)
    """

    learner: RecursiveLearner
    inliers: Any = 0.9
    outliers: Any = 0.1
    iterations: int = static_field(default=2)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("inliers", self.inliers)
        require_positive("outliers", self.outliers)

    def _weigh(self, seen: Residual, last: Trust | None) -> Trust:
        a, b = as_like(self.inliers, seen.gap), as_like(self.outliers, seen.gap)
        before = jnp.ones_like(a) if last is None else last.weight
        distance = seen.predicted() if last is None else seen.expected
        odds = jss.digamma(a + before) - jss.digamma(b + 1.0 - before)
        return Trust(jax.nn.sigmoid(odds - 0.5 * distance))

    def _evidence(self, seen: Residual, trust: Trust) -> jax.Array:
        a, b = as_like(self.inliers, seen.gap), as_like(self.outliers, seen.gap)
        inside = jnp.log(a) + seen.log_prob(jnp.ones_like(a))
        outside = jnp.log(b) + seen.log_scale + log_peak(seen.size)
        return jnp.logaddexp(inside, outside) - jnp.log(a + b)
