"""Learners for heavy-tailed noise: every observation has a noise level of its own, which is inferred.

With the level summed out the noise is t(df, 0, K) for a scale matrix K, and `forecast` is t(df, yhat, H P
H' + K), exact where the belief is certain. What `update` reports as `log_evidence` is chosen by `evidence`:

"predictive": the density of `forecast`. Its tails widen with the belief, so that an outlier speaks for the
less certain of two beliefs, by up to df / 2 nats for each factor of e between their scales squared.

"bound": the variational lower bound on log p(y | past); for one output, df = 3 and beliefs at least as
certain as the noise, it is within 0.3 nats. Its tails are those of the noise, so that an outlier speaks for
no belief: the better choice where hypotheses are compared, as by run lengths.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt.robust_base import Residual, RobustLearner, Trust, log_peak
from credo.beliefs import Gaussian
from credo.core.errors import CredoError, require_choice, require_positive
from credo.core.records import record, static_field
from credo.core.trees import as_like
from credo.learners import RecursiveLearner
from credo.likelihoods import MixturePredictive, Normal, NormalPredictive, Predictive, StudentTPredictive
from credo.likelihoods.base import LikelihoodBase

__all__ = ["GammaWeight", "InverseWishartNoise", "StudentTNoise", "TailedNormal"]

EVIDENCES = ("predictive", "bound")


@record
class TailedNormal(LikelihoodBase):
    """y ~ t(df, eta, level R): normal noise of covariance R whose level is random.

    Arguments:
        normal: the `Normal` that holds R.
        df: degrees of freedom, above 0.
        level: what multiplies R, above 0.

    Its predictive for eta ~ N(eta, cov) is t(df, eta, cov + level R), which is exact for cov = 0.

    Example:
        >>> from credo.likelihoods import Normal
        >>> TailedNormal(Normal(3.0), 4.0).linearized(jnp.zeros(1), jnp.eye(1)).var
        Array(8., dtype=float32)
    """

    normal: Normal
    df: Any
    level: Any = 1.0

    def check(self, size: int) -> None:
        """Refuse a noise covariance whose shape does not fit `size` outputs."""
        self.normal.check(size)

    def log_prob(self, eta: jax.Array, y: Any) -> jax.Array:
        """log t(y | df, eta, level R)."""
        return self.plugin(eta).log_prob(y)

    def mean(self, eta: jax.Array) -> jax.Array:
        """eta."""
        return eta

    def variance(self, eta: jax.Array) -> jax.Array:
        """level R df / (df - 2) of each output; infinite for df <= 2."""
        return self.plugin(eta).var.reshape(eta.shape)

    def sample(self, eta: jax.Array, key: jax.Array) -> jax.Array:
        """One draw."""
        return self.plugin(eta).sample(key)

    def cdf(self, eta: jax.Array, y: jax.Array) -> jax.Array:
        """The distribution function, for one output."""
        return self.plugin(eta).cdf(y)

    def plugin(self, eta: jax.Array, noise: Any = None) -> Predictive:
        """t(df, eta, level R)."""
        return self.linearized(eta, jnp.zeros((eta.shape[0], eta.shape[0]), eta.dtype))

    def linearized(self, eta: jax.Array, cov: jax.Array, noise: Any = None) -> Predictive:
        """t(df, eta, cov + level R)."""
        plain: Any = self.normal.plugin(eta)
        return StudentTPredictive(as_like(self.df, eta), eta, cov + as_like(self.level, eta) * plain.cov)

    def mixture(self, etas: jax.Array, noise: Any = None) -> Predictive:
        """The equal mixture of t distributions over draws (M, C) of eta."""
        weights = jnp.full(etas.shape[0], -np.log(etas.shape[0]), etas.dtype)
        return MixturePredictive(self, etas, weights)


class _Tailed(RobustLearner):
    """A robust learner whose noise is t(df, level R): evidence and forecast."""

    evidence: str = "predictive"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("evidence", self.evidence, EVIDENCES)

    def _tail(self, size: int, like: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The degrees of freedom and the level, for `size` outputs."""
        raise NotImplementedError

    def _log_tail(self, gap: jax.Array, spread: jax.Array) -> jax.Array:
        """log(1 + D / (df level)) or its like, for what a belief leaves: g (C,) and V (C, C)."""
        df, level = self._tail(gap.shape[0], gap)
        return jnp.log1p((gap @ gap + jnp.trace(spread)) / (df * level))

    def _evidence(self, seen: Residual, trust: Trust) -> jax.Array:
        df, level = self._tail(seen.size, seen.gap)
        zero, eye = jnp.zeros_like(seen.gap), jnp.eye(seen.size, dtype=seen.gap.dtype)
        if self.evidence == "predictive":
            density = StudentTPredictive(df, zero, seen.spread + level * eye).log_prob(seen.gap)
            return jnp.where(df > 0, density + seen.log_scale, jnp.nan)
        # The bound: -KL(posterior, prior) + log t, with the posterior's D in the place of g' g, where -KL =
        # log N(g | 0, V + inv(M)) - E log N(g | inv(M)), and M = B B' is the precision that was used.
        root = jnp.sqrt(trust.weight) * eye if trust.root is None else trust.root
        shrink = eye + seen.spread @ root @ root.T
        gap, spread = jnp.linalg.solve(shrink, seen.gap), jnp.linalg.solve(shrink, seen.spread)
        met = NormalPredictive(zero, root.T @ seen.spread @ root + eye).log_prob(root.T @ seen.gap)
        spared = jnp.sum((root.T @ gap) ** 2) + jnp.trace(root.T @ spread @ root)
        peak = StudentTPredictive(df, zero, level * eye).log_prob(zero)
        tail = peak - 0.5 * (df + seen.size) * self._log_tail(gap, spread)
        bound = met - log_peak(seen.size) + 0.5 * spared + tail
        return jnp.where(df > 0, bound + seen.log_scale, jnp.nan)

    def predictive(
        self, belief: Gaussian, x: Any, method: str | None, samples: int | None, key: Any
    ) -> Predictive:
        model = self.learner.model
        size = jax.eval_shape(lambda mean: model.outputs(mean, belief.unravel, x), belief.mean).shape[0]
        noise = TailedNormal(model.likelihood, *self._tail(size, belief.mean))
        return self._with(noise).predictive(belief, x, method, samples, key)


def _gamma_trust(seen: Residual, last: Trust | None, shape: jax.Array, rate: jax.Array) -> Trust:
    """w = (a + C / 2) / (b + D / 2): the mean of a Gamma(a, b) weight given D."""
    distance = seen.predicted(rate / shape) if last is None else seen.expected
    return Trust((shape + 0.5 * seen.size) / (rate + 0.5 * distance))


@record
class GammaWeight(_Tailed):
    """Noise R / w with a weight w ~ Gamma(a, b) for every observation, inferred by expectation-maximisation.

    Ting, Theodorou & Schaal 2007 (ECML, "Learning an outlier-robust Kalman filter"), with R and the dynamics
    known. With D = E[(y - H theta)' inv(R) (y - H theta)] under the posterior,

        w <- (a + C / 2) / (b + D / 2),

    the mean of w given D. The first w sees D under the predictive, (b / a) e' inv(H P H' + (b / a) R) e,
    so that an outlier does not first drag the trial along. It is `StudentTNoise` with df = 2 a and R b / a.

    Arguments:
        learner: a `RecursiveLearner` with a `Normal` likelihood of known variance R.
        shape, rate: a and b, above 0.
        iterations: how many updates an observation takes, at least 1.
        evidence: "predictive" or "bound": what is reported as `log_evidence`; see `credo.adapt.robust_noise`.

    `forecast` is t(2 a, yhat, H P H' + (b / a) R), and `extras.weight` is w.

    Raises:
        CredoError: the learner, `shape`, `rate`, `iterations` or `evidence` is not one of these.

    Cost: `iterations` updates of `learner`. A variational approximation; evidence and forecast are exact
    where the belief is certain (H P H' = 0) and approximate elsewhere.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.adapt.robust_noise import GammaWeight
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = GammaWeight(credo.extended_kalman(model), shape=2.0, rate=1.0)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1e6)
        >>> bool(jnp.max(jnp.abs(belief.mean)) < 1e-3)
        True
    """

    learner: RecursiveLearner
    shape: Any = 1.0
    rate: Any = 1.0
    iterations: int = static_field(default=2)
    evidence: str = static_field(default="predictive")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("shape", self.shape)
        require_positive("rate", self.rate)

    def _tail(self, size: int, like: jax.Array) -> tuple[jax.Array, jax.Array]:
        shape = as_like(self.shape, like)
        return 2.0 * shape, as_like(self.rate, like) / shape

    def _weigh(self, seen: Residual, last: Trust | None) -> Trust:
        return _gamma_trust(seen, last, as_like(self.shape, seen.gap), as_like(self.rate, seen.gap))


@record
class StudentTNoise(_Tailed):
    """Student-t noise of scale matrix R, by variational iterations on the weight of every observation.

    y ~ N(H theta, R / w), w ~ Gamma(df / 2, df / 2); with D the posterior's expected squared residual in
    units of R (C outputs),

        w <- (df + C) / (df + D),    update with noise R / w.

    The first w is (df + C) / (df + e' inv(H P H' + R) e), its mean given y under the predictive. Sources:
    Lange, Little & Taylor 1989 (the weights); Huang, Zhang, Li, Wu & Chambers 2017 (IEEE TAES 53(3), the
    filter).

    Arguments:
        learner: a `RecursiveLearner` with a `Normal` likelihood of known variance R, here the squared scale.
        df: degrees of freedom, above 0; as it grows the learner inside is approached.
        iterations: how many updates an observation takes, at least 1.
        evidence: "predictive" or "bound": what is reported as `log_evidence`; see `credo.adapt.robust_noise`.

    `forecast` is t(df, yhat, H P H' + R), and `extras.weight` is w.

    Raises:
        CredoError: the learner, `df`, `iterations` or `evidence` is not one of these.

    Cost: `iterations` updates of `learner`. A variational approximation; evidence and forecast are exact
    where the belief is certain (H P H' = 0) and approximate elsewhere.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.adapt.robust_noise import StudentTNoise
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = StudentTNoise(credo.extended_kalman(model), df=4.0)
        >>> learner.forecast(learner.init(jnp.zeros(2)), jnp.ones(2))
        StudentTPredictive(df=4, loc=float32[1], shape=float32[1,1])
    """

    learner: RecursiveLearner
    df: Any = 4.0
    iterations: int = static_field(default=2)
    evidence: str = static_field(default="predictive")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("df", self.df)

    def _tail(self, size: int, like: jax.Array) -> tuple[jax.Array, jax.Array]:
        return as_like(self.df, like), jnp.ones((), like.dtype)

    def _weigh(self, seen: Residual, last: Trust | None) -> Trust:
        half = 0.5 * as_like(self.df, seen.gap)
        return _gamma_trust(seen, last, half, half)


@record
class InverseWishartNoise(_Tailed):
    """A noise covariance of its own for every observation, inverse-Wishart around R.

    Agamennoni, Nieto & Nebot 2012 (IEEE Transactions on Signal Processing 60(10)): R_t ~ IW(df R, df), in the
    parametrisation where E[inv(R_t)] = inv(R). With S = E[(y - H theta)(y - H theta)'] under the posterior,

        R_t <- (df R + S) / (df + 1),    update with noise R_t.

    The noise grows along the residual only: across it, where the observation agrees with the belief, it
    counts in full. The first S is e e' times e' inv(H P H' + R) e / e' inv(R) e, the share that noise
    explains under the predictive. With one output it is `StudentTNoise`.

    Arguments:
        learner: a `RecursiveLearner` with a `Normal` likelihood of known variance R.
        df: above C - 1, for C outputs; as it grows the learner inside is approached. Where C is
            known only with the data, a smaller one gives `ok=False`.
        iterations: how many updates an observation takes, at least 1.
        evidence: "predictive" or "bound": what is reported as `log_evidence`; see `credo.adapt.robust_noise`.

    `forecast` is t(k, yhat, H P H' + R df / k) with k = df - C + 1, and `extras.weight` is
    tr(R inv(R_t)) / C.

    Raises:
        CredoError: the learner, `df`, `iterations` or `evidence` is not one of these.

    Cost: `iterations` updates of `learner`, and C^3. A variational approximation; evidence and forecast are
    exact where the belief is certain (H P H' = 0) and approximate elsewhere.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.adapt.robust_noise import InverseWishartNoise
        >>> model = credo.Model(lambda w, x: w, credo.Normal(jnp.ones(2)))
        >>> learner = InverseWishartNoise(credo.extended_kalman(model), df=4.0)
        >>> belief, _ = learner.step(learner.init(jnp.zeros(2)), None, jnp.array([1e4, 0.0]))
        >>> bool(belief.var[0] > 0.99), bool(belief.var[1] < 0.5)
        (True, True)
    """

    learner: RecursiveLearner
    df: Any = 4.0
    iterations: int = static_field(default=2)
    evidence: str = static_field(default="predictive")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("df", self.df)
        shape = np.shape(self.learner.model.likelihood.var)
        if shape and not isinstance(self.df, jax.core.Tracer) and np.any(np.asarray(self.df) <= shape[0] - 1):
            raise CredoError(
                f"df must be above C - 1 = {shape[0] - 1} for {shape[0]} outputs; got {self.df}."
            )

    def _tail(self, size: int, like: jax.Array) -> tuple[jax.Array, jax.Array]:
        df = as_like(self.df, like)
        left = df - (size - 1)
        return left, df / left

    def _log_tail(self, gap: jax.Array, spread: jax.Array) -> jax.Array:
        base = jnp.eye(gap.shape[0], dtype=gap.dtype) + spread / as_like(self.df, gap)
        along = gap @ jnp.linalg.solve(base, gap) / as_like(self.df, gap)
        return jnp.linalg.slogdet(base)[1] + jnp.log1p(along)

    def _weigh(self, seen: Residual, last: Trust | None) -> Trust:
        # inv((df I + V + g g') / (df + 1)) = B B' by B = sqrt(df + 1) inv(L)' (I - u u' / (q (q + 1))), where
        # L L' = df I + V, u = inv(L) g and q^2 = 1 + u' u: the large number g g' is never added to I.
        df = as_like(self.df, seen.gap)
        eye = jnp.eye(seen.size, dtype=seen.gap.dtype)
        gap, base = seen.gap, df * eye
        if last is None:
            apart = seen.distance > 0
            share = seen.predicted() / jnp.where(apart, seen.distance, 1.0)
            gap = jnp.sqrt(jnp.where(apart, share, 1.0)) * gap
        else:
            base = base + seen.spread
        lower = jnp.linalg.cholesky(base)
        unit = jax.scipy.linalg.solve_triangular(lower, gap, lower=True)
        long = jnp.sqrt(1.0 + unit @ unit)
        bent = eye - jnp.outer(unit / long, unit / (long + 1.0))
        root = jnp.sqrt(df + 1.0) * jax.scipy.linalg.solve_triangular(lower, bent, lower=True, trans=1)
        return Trust(jnp.sum(root**2) / seen.size, root)
