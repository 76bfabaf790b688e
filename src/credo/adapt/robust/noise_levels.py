"""Noise with a new level for every observation: `GammaWeight` and `StudentTNoise`."""

from __future__ import annotations

from typing import Generic

import jax.numpy as jnp

from credo.adapt.nested import B
from credo.adapt.robust.residual import Residual
from credo.adapt.robust.reweighted import Trust
from credo.adapt.robust.tailed import EvidenceKind, TailedLearner
from credo.core.errors import require_positive
from credo.core.records import record, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike
from credo.learners.outputs import OutputLearner

__all__ = ["GammaWeight", "StudentTNoise"]


def gamma_trust(residual: Residual, last: Trust | None, shape: Array, rate: Array) -> Trust:
    """w = (a + C / 2) / (b + D / 2): the mean of a Gamma(a, b) weight given D."""
    distance = residual.predicted(rate / shape) if last is None else residual.expected
    return Trust((shape + 0.5 * residual.size) / (rate + 0.5 * distance))


@record
class GammaWeight(TailedLearner[B], Generic[B]):
    """Noise R / w with a weight w ~ Gamma(a, b) for every observation, inferred by expectation-maximisation.

    Ting, Theodorou & Schaal 2007 (ECML, "Learning an outlier-robust Kalman filter"), with R and the dynamics
    known. With D = E[(y - H theta)' inv(R) (y - H theta)] under the posterior,

        w <- (a + C / 2) / (b + D / 2),

    the mean of w given D. The first w uses D under the predictive, (b / a) e' inv(H P H' + (b / a) R) e, so
    that an outlier does not pull the first trial along. The learner is `StudentTNoise` with df = 2 a and R b
    / a.

    Arguments:
        learner: a recursive, ensemble or particle learner with a `Normal` likelihood of known variance R.
        shape, rate: a and b, above 0.
        iterations: how many updates an observation takes, at least 1.
        evidence: what is reported as `log_evidence`, "predictive" or "bound"; see
            `credo.adapt.robust.tailed`.

    `forecast` is t(2 a, yhat, H P H' + (b / a) R), and `extras.weight` is w.

    Raises:
        CredoError: the learner, `shape`, `rate`, `iterations` or `evidence` is not allowed.

    Cost: `iterations` updates of `learner`. This is a variational approximation: evidence and forecast are
    exact where the belief is certain (H P H' = 0) and approximate elsewhere.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.adapt import GammaWeight
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = GammaWeight(credo.extended_kalman(model), shape=2.0, rate=1.0)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1e6)
        >>> bool(jnp.max(jnp.abs(belief.mean)) < 1e-3)
        True
    """

    learner: OutputLearner[B]
    shape: ArrayLike = 1.0
    rate: ArrayLike = 1.0
    iterations: int = static_field(default=2)
    evidence: EvidenceKind = static_field(default="predictive")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("shape", self.shape)
        require_positive("rate", self.rate)

    def _tail(self, size: int, like: Array) -> tuple[Array, Array]:
        shape = as_like(self.shape, like)
        return 2.0 * shape, as_like(self.rate, like) / shape

    def _weigh(self, residual: Residual, last: Trust | None) -> Trust:
        return gamma_trust(
            residual, last, as_like(self.shape, residual.gap), as_like(self.rate, residual.gap)
        )


@record
class StudentTNoise(TailedLearner[B], Generic[B]):
    """Student-t noise of scale matrix R, by variational iterations on the weight of every observation.

    y ~ N(H theta, R / w), w ~ Gamma(df / 2, df / 2); with D the posterior's expected squared residual in
    units of R (C outputs),

        w <- (df + C) / (df + D),    update with noise R / w.

    The first w is (df + C) / (df + e' inv(H P H' + R) e), its mean given y under the predictive. Sources:
    Lange, Little & Taylor 1989 (the weights); Huang, Zhang, Li, Wu & Chambers 2017 (IEEE TAES 53(3), the
    filter).

    Arguments:
        learner: a recursive, ensemble or particle learner with a `Normal` likelihood of known variance R,
            which is the squared scale here.
        df: the degrees of freedom, above 0; as they grow, the result approaches the learner inside.
        iterations: how many updates an observation takes, at least 1.
        evidence: what is reported as `log_evidence`, "predictive" or "bound"; see
            `credo.adapt.robust.tailed`.

    `forecast` is t(df, yhat, H P H' + R), and `extras.weight` is w.

    Raises:
        CredoError: the learner, `df`, `iterations` or `evidence` is not allowed.

    Cost: `iterations` updates of `learner`. This is a variational approximation: evidence and forecast are
    exact where the belief is certain (H P H' = 0) and approximate elsewhere.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.adapt import StudentTNoise
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = StudentTNoise(credo.extended_kalman(model), df=4.0)
        >>> learner.forecast(learner.init(jnp.zeros(2)), jnp.ones(2))
        StudentTPredictive(df=4, loc=float32[1], shape=float32[1,1])
    """

    learner: OutputLearner[B]
    df: ArrayLike = 4.0
    iterations: int = static_field(default=2)
    evidence: EvidenceKind = static_field(default="predictive")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("df", self.df)

    def _tail(self, size: int, like: Array) -> tuple[Array, Array]:
        return as_like(self.df, like), jnp.ones((), like.dtype)

    def _weigh(self, residual: Residual, last: Trust | None) -> Trust:
        half = 0.5 * as_like(self.df, residual.gap)
        return gamma_trust(residual, last, half, half)
