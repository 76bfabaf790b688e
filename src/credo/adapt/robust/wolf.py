"""The weighted-observation likelihood filter, which weights distant observations down."""

from __future__ import annotations

from typing import Generic, Literal, TypeAlias, get_args

import jax.numpy as jnp

from credo.adapt.nested import B
from credo.adapt.robust.residual import Residual
from credo.adapt.robust.reweighted import RobustLearner, Trust
from credo.core.errors import require_choice, require_positive
from credo.core.records import record, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike
from credo.learners.outputs import OutputLearner

__all__ = ["Weighting", "WoLF"]

Weighting: TypeAlias = Literal["imq", "mahalanobis"]
"""How the weight of an observation falls with its distance."""


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
