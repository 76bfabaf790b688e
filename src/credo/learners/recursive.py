"""The recursive variational learner: any model, dynamics, family, curvature and rule."""

from __future__ import annotations

import functools
from typing import get_args

import jax
import jax.numpy as jnp

from credo.beliefs import Gaussian
from credo.core.errors import CredoError, require_choice, require_integer
from credo.core.keys import as_key, require_key, step_key
from credo.core.names import ForecastName
from credo.core.records import record, replace, static_field
from credo.core.trees import ravel
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.covariances import Family, Full, LowRank, Readable, RootCovariance
from credo.dynamics import Dynamics, Static
from credo.learners.acceptance import legible
from credo.learners.base import Info, OutputLearner, SampledFunction, accept, clean, usable
from credo.learners.curvatures import Curvature, LinearizedGaussNewton, Local, Site
from credo.learners.extensible import prior_covariance
from credo.learners.rules import BONGRule, Rule
from credo.likelihoods import Expectation, LatentExpectation, Predictive, PredictiveRows, Rows
from credo.likelihoods.base import LikelihoodBase
from credo.likelihoods.elliptical import only_observed
from credo.linalg.jacobians import as_rows
from credo.linalg.matrices import psd_root, rows_times
from credo.models.model import Model, as_model
from credo.models.partial import start

__all__ = ["RecursiveLearner"]

METHODS: tuple[ForecastName, ...] = get_args(ForecastName)


@record
class RecursiveLearner(OutputLearner[Gaussian]):
    """A Gaussian belief over the parameters of a model, updated one observation at a time.

    Arguments:
        model: a `Model`.
        family: what is kept of the covariance: `Full()`, `Diagonal()`, `LowRank(rank)`.
        curvature: what is measured at an observation.
        rule: how far the belief moves.
        dynamics: how parameters move between observations.
        forecasting: the default method of `forecast`.

    Raises:
        CredoError: `forecasting` names no method.

    Cost of a step with P parameters, C outputs, rank R and LIN-HESS: C P^2 for a full, C^2 P for a diagonal
    and (R + C)^2 P for a low-rank family, and the cost of the dynamics. The learner is exact for
    linear-Gaussian models with `Full`, and with `LowRank` while R suffices.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = RecursiveLearner(model, credo.LowRank(1), dynamics=credo.RandomWalk(1e-3))
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> belief.mean.shape, belief.cov.factor.shape
        ((2,), (1, 2))
    """

    model: Model
    family: Family = static_field(default=Full())
    curvature: Curvature = LinearizedGaussNewton()
    rule: Rule = BONGRule()
    dynamics: Dynamics = Static()
    forecasting: ForecastName = static_field(default="linearized")

    def output_moments(self, belief: Gaussian, x: PyTree) -> tuple[Array, Array]:
        """The outputs at the mean, and their covariance by linearisation there."""
        eta, rows = self.model.linearize(belief.mean, belief.unravel, x, layered=belief.cov.layered)
        return eta, belief.cov.push(belief.cov.admit(rows))

    def __post_init__(self) -> None:
        if isinstance(self.forecasting, str):
            require_choice("forecasting", self.forecasting, METHODS)

    def init(self, params: PyTree = None, *, var: PyTree = 1.0, cov: ArrayLike | None = None) -> Gaussian:
        """The prior N(params, var).

        Arguments:
            params: the prior mean, a pytree of floating-point arrays; P numbers in all. None if the model
                has a start of its own (`freeze`, `subspace`).
            var: prior variances, above 0: a number, an array (P,), or a tree like `params` whose leaves
                broadcast.
            cov: a dense prior covariance (P, P) in place of `var`, where the family can hold it.

        Raises:
            CredoError: a variance is not above 0, a shape does not fit, or rank exceeds P.
        """
        as_model(self.model)
        if not isinstance(self.dynamics, Dynamics):
            raise CredoError(
                f"dynamics must be credo.Dynamics, such as credo.Static(); got {self.dynamics!r}."
            )
        mean, unravel = ravel(start(self.model, params))
        family = self.family.over(unravel)
        start_at = functools.partial(family.init, random=self.rule.random_start)
        prior = prior_covariance(unravel, mean.dtype, var, cov, start_at, family.from_dense)
        anchor = self.dynamics.anchor(mean, prior)
        noise = self.model.likelihood.init_noise(mean.dtype)
        if noise is not None and not self.curvature.linear:
            raise CredoError(
                "a noise variance can be learned with curvature 'lin-hess' only: the empirical Fisher says "
                "nothing of the outputs' uncertainty; give the Normal a number."
            )
        return Gaussian(mean, prior, jnp.zeros((), jnp.int32), unravel, anchor, noise)

    def time_update(self, belief: Gaussian, dt: ArrayLike | None) -> Gaussian:
        mean, cov = self.dynamics.move(belief.mean, belief.cov, belief.anchor, belief.t, dt)
        assert cov is not None
        return Gaussian(mean, cov, belief.t + 1, belief.unravel, belief.anchor, belief.noise)

    def measurement_update(
        self, belief: Gaussian, x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> tuple[Gaussian, Info]:
        likelihood = self.model.likelihood
        known = likelihood.given_noise(belief.noise)
        safe_y, there = legible(likelihood, y)
        observed, used = usable(there, weight, belief.mean.dtype)
        safe_x = clean(x)
        one_key = step_key(key, belief.t)
        site = Site(self.model, known, belief.unravel, safe_x, safe_y, used, one_key)

        def measure(mean: Array, cov: Readable, iteration: Array | int) -> Local:
            return self.curvature.local(site, mean, cov, iteration)

        step = self.rule.update(belief.mean, belief.cov, measure, belief.t)
        local = step.local
        count = step.local.eta.shape[-1]
        output_cov = step.inner if self.curvature.linear else jnp.zeros((count, count), step.mean.dtype)
        noise = belief.noise
        if noise is not None:
            each = jnp.repeat(used.reshape(-1), count // used.size)
            seen = likelihood.seen(y)
            if seen is not None:
                each = jnp.where(seen, each, 0.0)
            gap = jnp.where(each > 0, known.score(local.eta, safe_y), 0.0)
            unit = output_cov + jnp.diag(jnp.where(each > 0, 1.0 / jnp.where(each > 0, each, 1.0), 1.0))
            unit = unit if seen is None else only_observed(unit, each > 0)
            noise = noise.observe(gap, unit, jnp.sum(each))
        new = Gaussian(step.mean, step.cov, belief.t, belief.unravel, belief.anchor, noise)
        scored = None
        if self.curvature.sampled:
            log_evidence = _sampled_evidence(likelihood, local.eta, safe_y, used)
        else:
            predictive = likelihood.linearized(local.eta, output_cov, belief.noise)
            if used.ndim:
                assert isinstance(likelihood, Rows)
                log_evidence = likelihood.log_evidence(predictive, local.eta, safe_y, used > 0, belief.noise)
            else:
                log_evidence = predictive.log_prob(safe_y)
                scored = predictive.has_log_prob(safe_y)
                scored = None if scored is None else scored | (used == 0)
        log_evidence = jnp.where(jnp.any(used > 0), log_evidence, 0.0)
        witness = (step.mean, noise) if step.vouched else new
        return accept(belief, new, log_evidence, jnp.any(observed), x, y, used, witness, scored)

    def predictive(
        self, belief: Gaussian, x: PyTree, method: ForecastName | None, samples: int | None, key: Key | None
    ) -> Predictive:
        method = self.forecasting if method is None else method
        require_choice("method", method, METHODS)
        if self.model.batched:
            single = replace(self, model=self.model.each)
            return PredictiveRows(
                jax.vmap(lambda row: single.predictive(belief, row, method, samples, key))(x)
            )
        likelihood = self.model.likelihood
        unravel = belief.unravel
        noise = belief.noise
        if method == "plugin":
            return likelihood.plugin(self.model.outputs(belief.mean, unravel, x), noise)
        if method == "mc":
            count = _draws(samples)
            draws = self._vectors(belief, require_key(key, "forecast(method='mc')"), (count,))
            return likelihood.mixture(jax.vmap(lambda v: self.model.outputs(v, unravel, x))(draws), noise)
        eta, rows = self.model.linearize(belief.mean, unravel, x, layered=belief.cov.layered)
        cov = belief.cov.push(belief.cov.admit(rows))
        if method == "linearized":
            return likelihood.linearized(eta, cov, noise)
        one_key = require_key(key, "forecast(method='linearized-mc')")
        first, second = jax.random.split(one_key)
        deviations = jax.random.normal(first, (_draws(samples), eta.shape[0]), eta.dtype) @ psd_root(cov).T
        return likelihood.mixture(
            eta[None, :] + deviations * _noise_sd(belief, second, (_draws(samples),)), noise
        )

    def expectation(self, belief: Gaussian, x: PyTree) -> Expectation:
        eta, rows = self.model.linearize(belief.mean, belief.unravel, x, layered=belief.cov.layered)
        cov = belief.cov.push(belief.cov.admit(rows))
        likelihood, etas = self.model.rows_of(eta, x)
        correlated = isinstance(self.family, LowRank) and etas.shape[0] > 1
        factor = None
        if isinstance(belief.cov, RootCovariance) and eta.shape[0] > belief.cov.size:
            factor = rows_times(as_rows(rows).dense(), belief.cov.root)
        return LatentExpectation(likelihood, etas, cov, belief.noise, correlated, factor)

    def function_draw(self, belief: Gaussian, key: Key) -> SampledFunction:
        step = self._vectors(belief, as_key(key), ()) - belief.mean
        return SampledFunction(self.model.each, belief.mean, step, belief.unravel)

    def _vectors(self, belief: Gaussian, key: Array, shape: tuple[int, ...]) -> Array:
        first, second = jax.random.split(key)
        deviations = belief.cov.sample(first, shape) * _noise_sd(belief, second, shape)
        return deviations + jnp.broadcast_to(belief.mean, deviations.shape)

    def draws(self, belief: Gaussian, key: Key, shape: tuple[int, ...]) -> PyTree:
        return belief.unravel(self._vectors(belief, as_key(key), shape))


def _sampled_evidence(likelihood: LikelihoodBase, etas: Array, y: PyTree, used: Array) -> Array:
    """The evidence log mean_m p(y | eta_m) over draws (M, C), without the rows of weight 0."""
    if not used.ndim:
        return likelihood.mixture(etas).log_prob(y)
    assert isinstance(likelihood, Rows)
    row = likelihood.each

    def one(eta: Array) -> Array:
        values = jax.vmap(row.log_prob)(eta.reshape(used.shape[0], -1), y)
        return jnp.sum(jnp.where(used > 0, values, 0.0))

    return jax.nn.logsumexp(jax.vmap(one)(etas)) - jnp.log(etas.shape[0]).astype(etas.dtype)


def _noise_sd(belief: Gaussian, key: Array, shape: tuple[int, ...]) -> Array:
    """Draws of the standard deviation of the noise, the unit of the covariance; 1 for known noise."""
    if belief.noise is None:
        return jnp.ones((*shape, 1), belief.mean.dtype)
    gamma = jax.random.gamma(key, belief.noise.shape, (*shape, 1), belief.mean.dtype)
    return jnp.sqrt(belief.noise.scale / gamma)


def _draws(samples: int | None) -> int:
    count = 100 if samples is None else samples
    require_integer("samples", count, 1)
    return count
