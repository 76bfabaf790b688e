"""Learners for heavy-tailed noise, in which every observation has its own, inferred noise level.

With the level summed out the noise is t(df, 0, K) for a scale matrix K, and `forecast` is t(df, yhat, H P
H' + K), exact if the belief is certain. What `update` reports as `log_evidence` is chosen by `evidence`:

"predictive": the density of `forecast`. Its tails widen with the belief, so that an outlier favours the
less certain of two beliefs, by up to df / 2 nats for each factor of e between their scales squared.

"bound": the variational lower bound on log p(y | past); for one output, df = 3 and beliefs at least as
certain as the noise, it is within 0.3 nats. Its tails are those of the noise, so that an outlier favours
no belief. It is the better choice where hypotheses are compared, as by run lengths.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, Literal, TypeAlias, get_args

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt.nested import B, floating
from credo.adapt.robust.reweighted import Residual, RobustLearner, Trust, log_peak
from credo.core.errors import require_choice
from credo.core.names import ForecastName
from credo.core.records import record
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.learners.functions import OutputLearner
from credo.likelihoods import MixturePredictive, Normal, NormalPredictive, Predictive, StudentTPredictive
from credo.likelihoods.base import LikelihoodBase
from credo.linalg.matrices import solve

__all__ = ["EvidenceKind", "TailedLearner", "TailedNormal"]

EvidenceKind: TypeAlias = Literal["predictive", "bound"]
"""What is reported as the evidence of an observation."""


@record
class TailedNormal(LikelihoodBase):
    """y ~ t(df, eta, level R): normal noise of covariance R whose level is random.

    Its predictive for eta ~ N(eta, cov) is t(df, eta, cov + level R), which is exact for cov = 0.

    Example:
        >>> from credo.likelihoods import Normal
        >>> TailedNormal(Normal(3.0), 4.0).linearized(jnp.zeros(1), jnp.eye(1)).var
        Array(8., dtype=float32)
    """

    normal: Normal
    df: ArrayLike
    level: ArrayLike = 1.0

    def check(self, size: int) -> None:
        """Refuse a noise covariance whose shape does not fit `size` outputs."""
        self.normal.check(size)

    def log_prob(self, eta: Array, y: PyTree) -> Array:
        """log t(y | df, eta, level R)."""
        return self.plugin(eta).log_prob(y)

    def mean(self, eta: Array) -> Array:
        """eta."""
        return eta

    def variance(self, eta: Array) -> Array:
        """level R df / (df - 2) of each output; infinite for df <= 2."""
        return self.plugin(eta).var.reshape(eta.shape)

    def sample(self, eta: Array, key: Array) -> Array:
        return self.plugin(eta).sample(key)

    def cdf(self, eta: Array, y: Array) -> Array:
        """The distribution function, for one output."""
        return self.plugin(eta).cdf(y)

    def plugin(self, eta: Array, noise: PyTree = None) -> Predictive:
        """t(df, eta, level R)."""
        return self.linearized(eta, jnp.zeros((eta.shape[0], eta.shape[0]), eta.dtype))

    def linearized(self, eta: Array, cov: Array, noise: PyTree = None) -> Predictive:
        """t(df, eta, cov + level R)."""
        plain = self.normal.plugin(eta)
        assert isinstance(plain, NormalPredictive)
        return StudentTPredictive(as_like(self.df, eta), eta, cov + as_like(self.level, eta) * plain.cov)

    def mixture(self, etas: Array, noise: PyTree = None) -> Predictive:
        """The equal mixture of t distributions over draws (M, C) of eta."""
        weights = jnp.full(etas.shape[0], -np.log(etas.shape[0]), etas.dtype)
        return MixturePredictive(self, etas, weights)


class TailedLearner(RobustLearner[B], Generic[B]):
    """A robust learner whose noise is t(df, level R): evidence and forecast."""

    evidence: EvidenceKind = "predictive"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("evidence", self.evidence, get_args(EvidenceKind))

    @abstractmethod
    def _tail(self, size: ArrayLike, like: Array) -> tuple[Array, Array]:
        """The degrees of freedom and the level, for `size` outputs."""

    def _log_tail(self, gap: Array, spread: Array, size: Array) -> Array:
        """log(1 + D / (df level)) or its like, for what a belief leaves: g (C,) and V (C, C)."""
        df, level = self._tail(size, gap)
        return jnp.log1p((gap @ gap + jnp.trace(spread)) / (df * level))

    def _evidence(self, residual: Residual, trust: Trust) -> Array:
        df, level = self._tail(residual.size, residual.gap)
        zero = jnp.zeros_like(residual.gap)
        seen = residual.seen
        eye = jnp.eye(zero.shape[0], dtype=zero.dtype)
        if self.evidence == "predictive":
            predicted = StudentTPredictive(df, zero, residual.spread + level * eye)
            density = predicted.log_prob(residual.gap, seen)
            return jnp.where(df > 0, density + residual.log_scale, jnp.nan)
        # The bound: -KL(posterior, prior) + log t, with the posterior's D in the place of g' g, where -KL =
        # log N(g | 0, V + inv(M)) - E log N(g | inv(M)), and M = B B' is the precision that was used.
        root = jnp.sqrt(trust.weight) * eye if trust.root is None else trust.root
        shrink = eye + residual.spread @ root @ root.T
        gap, spread = solve(shrink, residual.gap), solve(shrink, residual.spread)
        inside = NormalPredictive(zero, root.T @ residual.spread @ root + eye)
        density = inside.log_prob(root.T @ residual.gap, seen)
        excess = jnp.sum((root.T @ gap) ** 2) + jnp.trace(root.T @ spread @ root)
        peak = StudentTPredictive(df, zero, level * eye).log_prob(zero, seen)
        tail = peak - 0.5 * (df + residual.size) * self._log_tail(gap, spread, residual.size)
        bound = density - log_peak(residual.size) + 0.5 * excess + tail
        return jnp.where(df > 0, bound + residual.log_scale, jnp.nan)

    def predictive(
        self, belief: B, x: PyTree, method: ForecastName | None, samples: int | None, key: Key | None
    ) -> Predictive:
        return self._tailed(belief, x).predictive(belief, x, method, samples, key)

    def scaled_predictive(self, belief: B, x: PyTree, scale: ArrayLike | None) -> Predictive:
        return self._tailed(belief, x).scaled_predictive(belief, x, scale)

    def _tailed(self, belief: B, x: PyTree) -> OutputLearner[B]:
        """The learner inside, whose noise is Student-t."""
        model = self.learner.model
        size = jax.eval_shape(lambda: self.learner.output_moments(belief, x))[0].shape[0]
        assert isinstance(model.likelihood, Normal)
        noise = TailedNormal(model.likelihood, *self._tail(size, jnp.zeros((), floating(belief))))
        return self._with(noise)
