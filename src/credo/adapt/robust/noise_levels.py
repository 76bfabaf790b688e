"""Noise with a level or a covariance of its own for every observation.

Learners for heavy-tailed noise, in which every observation has its own, inferred noise level.

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
from jax.core import Tracer

from credo.adapt.nested import B, floating
from credo.adapt.robust.reweighted import Residual, RobustLearner, Trust, log_peak
from credo.beliefs import InverseGamma
from credo.core.errors import CredoError, require_choice, require_positive
from credo.core.names import ForecastName
from credo.core.records import record, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.learners.base import OutputLearner
from credo.likelihoods import MixturePredictive, Normal, NormalPredictive, Predictive, StudentTPredictive
from credo.likelihoods.base import LikelihoodBase
from credo.linalg.matrices import cholesky, log_det, solve, solve_lower

__all__ = ["GammaWeight", "InverseWishartNoise", "StudentTNoise"]


EvidenceKind: TypeAlias = Literal["predictive", "bound"]
"""The number that is reported as the evidence of an observation."""


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
        gap = solve(shrink, residual.gap)
        spread = solve(shrink, residual.spread)
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
            `credo.adapt.robust.noise_levels`.

    `forecast` is t(2 a, yhat, H P H' + (b / a) R), and `extras.weight` is w.

    Raises:
        CredoError: the learner, `shape`, `rate`, `iterations` or `evidence` is not allowed.

    Cost: `iterations` updates of `learner`. This is a variational approximation: evidence and forecast are
    exact if the belief is certain (H P H' = 0) and approximate otherwise.

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

    def _tail(self, size: ArrayLike, like: Array) -> tuple[Array, Array]:
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
            `credo.adapt.robust.noise_levels`.

    `forecast` is t(df, yhat, H P H' + R), and `extras.weight` is w.

    Raises:
        CredoError: the learner, `df`, `iterations` or `evidence` is not allowed.

    Cost: `iterations` updates of `learner`. This is a variational approximation: evidence and forecast are
    exact if the belief is certain (H P H' = 0) and approximate otherwise.

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

    def _tail(self, size: ArrayLike, like: Array) -> tuple[Array, Array]:
        return as_like(self.df, like), jnp.ones((), like.dtype)

    def _weigh(self, residual: Residual, last: Trust | None) -> Trust:
        half = 0.5 * as_like(self.df, residual.gap)
        return gamma_trust(residual, last, half, half)


@record
class InverseWishartNoise(TailedLearner[B], Generic[B]):
    """Noise with its own covariance for every observation, inverse-Wishart around R.

    Agamennoni, Nieto & Nebot 2012 (IEEE Transactions on Signal Processing 60(10)): R_t ~ IW(df R, df), in the
    parametrisation where E[inv(R_t)] = inv(R). With S = E[(y - H theta)(y - H theta)'] under the posterior,

        R_t <- (df R + S) / (df + 1),    update with noise R_t.

    The noise grows only along the residual. Across it, where the observation agrees with the belief, the
    observation counts in full. The first S is e e' times e' inv(H P H' + R) e / e' inv(R) e, the share that
    noise explains under the predictive. With one output it is `StudentTNoise`.

    Arguments:
        learner: a recursive, ensemble or particle learner with a `Normal` likelihood of known variance R.
        df: the degrees of freedom, above C - 1 for C outputs; as they grow, the result approaches the learner
            inside. If C is known only with the data, a smaller number gives `ok=False`.
        iterations: how many updates an observation takes, at least 1.
        evidence: what is reported as `log_evidence`, "predictive" or "bound"; see
            `credo.adapt.robust.noise_levels`.

    `forecast` is t(k, yhat, H P H' + R df / k) with k = df - C + 1, and `extras.weight` is
    tr(R inv(R_t)) / C.

    Raises:
        CredoError: the learner, `df`, `iterations` or `evidence` is not allowed.

    Cost: `iterations` updates of `learner`, and C^3. This is a variational approximation: evidence and
        forecast are
    exact if the belief is certain (H P H' = 0) and approximate otherwise.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.adapt import InverseWishartNoise
        >>> model = credo.Model(lambda w, x: w, credo.Normal(jnp.ones(2)))
        >>> learner = InverseWishartNoise(credo.extended_kalman(model), df=4.0)
        >>> belief, _ = learner.step(learner.init(jnp.zeros(2)), None, jnp.array([1e4, 0.0]))
        >>> bool(belief.var[0] > 0.99), bool(belief.var[1] < 0.5)
        (True, True)
    """

    learner: OutputLearner[B]
    df: ArrayLike = 4.0
    iterations: int = static_field(default=2)
    evidence: EvidenceKind = static_field(default="predictive")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("df", self.df)
        normal = self.learner.model.likelihood
        assert isinstance(normal, Normal) and not isinstance(normal.var, InverseGamma)
        shape = np.shape(normal.var)
        if shape and not isinstance(self.df, Tracer) and np.any(np.asarray(self.df) <= shape[0] - 1):
            raise CredoError(
                f"df must be above C - 1 = {shape[0] - 1} for {shape[0]} outputs; got {self.df}."
            )

    def _tail(self, size: ArrayLike, like: Array) -> tuple[Array, Array]:
        df = as_like(self.df, like)
        left = df - (size - 1)
        return left, df / left

    def _log_tail(self, gap: Array, spread: Array, size: Array) -> Array:
        base = jnp.eye(gap.shape[0], dtype=gap.dtype) + spread / as_like(self.df, gap)
        along = gap @ solve(base, gap) / as_like(self.df, gap)
        return log_det(base) + jnp.log1p(along)

    def _weigh(self, residual: Residual, last: Trust | None) -> Trust:
        # inv((df I + V + g g') / (df + 1)) = B B' by B = sqrt(df + 1) inv(L)' (I - u u' / (q (q + 1))), where
        # L L' = df I + V, u = inv(L) g and q^2 = 1 + u' u: the large number g g' is never added to I.
        df = as_like(self.df, residual.gap)
        gap = residual.gap
        eye = jnp.eye(gap.shape[0], dtype=gap.dtype)
        base = df * eye
        if last is None:
            apart = residual.distance > 0
            share = residual.predicted() / jnp.where(apart, residual.distance, 1.0)
            gap = jnp.sqrt(jnp.where(apart, share, 1.0)) * gap
        else:
            base = base + residual.spread
        lower = cholesky(base)
        unit = solve_lower(lower, gap)
        long = jnp.sqrt(1.0 + unit @ unit)
        bend = eye - jnp.outer(unit / long, unit / (long + 1.0))
        root = jnp.sqrt(df + 1.0) * solve_lower(lower, bend, transpose=True)
        return Trust(jnp.sum(jnp.where(residual.seen[:, None], root, 0.0) ** 2) / residual.size, root)
