"""The ensemble Kalman filter, whose members move by what they predict, without derivatives of the model."""

from __future__ import annotations

from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp

from credo.beliefs import Ensemble
from credo.core.errors import CredoError, require_choice, require_integer
from credo.core.keys import as_key, step_key
from credo.core.names import ForecastName
from credo.core.records import record, replace, static_field
from credo.core.trees import ravel
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.covariances import Diagonal, EnsembleCovariance, Full
from credo.covariances.ensemble import centred
from credo.dynamics import Dynamics, Static, Transition
from credo.learners.acceptance import legible
from credo.learners.base import Info, OutputLearner, SampledFunction, accept, clean, usable
from credo.learners.curvatures.base import Local, Objective
from credo.learners.extensible import prior_covariance
from credo.likelihoods import DrawnExpectation, Expectation, Predictive, PredictiveRows, Rows
from credo.linalg.jacobians import DenseRows
from credo.linalg.matrices import column_sums, kalman_weights, solve
from credo.models.model import Model, as_model
from credo.models.partial import start

__all__ = ["EnsembleLearner"]

Analysis: TypeAlias = Literal["perturbed", "etkf"]
"""The way in which the deviations follow the mean."""

METHODS = ("linearized", "plugin", "mc")


@record
class EnsembleLearner(OutputLearner[Ensemble]):
    """The ensemble Kalman filter (Evensen 1994), with M members theta_m = mean + d_m.

    Let eta be the mean of the members' outputs eta_m, e the score and V = A A' the Fisher information of the
    likelihood at eta. The log-likelihood is approximated by e' z - z' V z / 2 in z = eta_m - eta. With the
    covariances over the members, C = Cov(theta, eta) (P, C) and H = Cov(eta, eta), the mean moves by

        mean <- mean + C inv(I + V H) e,

    which for normal noise is the Kalman gain. No noise is inverted, so any likelihood can be used, even with
    a singular V. The deviations follow by one of two analyses:

    - "perturbed" (Burgers, van Leeuwen & Evensen 1998): d_m + C inv(I + V H) (A x_m - V (eta_m - eta)), each
      with its own x_m ~ N(0, I), whose mean is subtracted;
    - "etkf" (Bishop, Etherton & Majumdar 2001): the symmetric square-root transform, which draws nothing.

    The posterior covariance is Kalman's for the sample covariance of the members, exactly for "etkf" and in
    expectation for "perturbed". Moves stay in the span of the members, so M should exceed the number of
    directions that the data can tell apart. There is no localisation. `Inflation(alpha, "simple")` as the
    dynamics is the usual multiplicative inflation.

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches.
        members: the number M, at least 2.
        analysis: "perturbed" or "etkf".
        dynamics: how parameters move between observations; noise is drawn member by member. A `Transition`
            moves every member by its function.

    Raises:
        CredoError: there are fewer than 2 members, or `analysis` has another value.

    Cost of a step: M evaluations of the model, M C P, and C^3. Exact in the limit of many members on
    linear-Gaussian models.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = EnsembleLearner(model, members=20, analysis="etkf")
        >>> belief, info = learner.step(learner.init(jnp.zeros(2), key=1), jnp.ones(2), 1.0)
        >>> belief.members.shape
        (20, 2)
    """

    model: Model
    members: int = static_field(default=100)
    analysis: Analysis = static_field(default="perturbed")
    dynamics: Dynamics = Static()

    def __post_init__(self) -> None:
        require_integer("members", self.members, 2)
        require_choice("analysis", self.analysis, ["perturbed", "etkf"])

    def init(
        self, params: PyTree = None, *, var: PyTree = 1.0, cov: ArrayLike | None = None, key: Key = 0
    ) -> Ensemble:
        """Members drawn from the prior N(params, var), then shifted to have the mean `params`.

        Arguments:
            params: the prior mean, a pytree of floating-point arrays; P numbers in all.
            var: prior variances, above 0: a number, an array (P,), or a tree like `params`.
            cov: a dense prior covariance (P, P) in place of `var`.
            key: the key of the members, and of all draws of later steps.

        Raises:
            CredoError: a variance is not above 0, a shape does not fit, or the noise variance is to be
                learned.
        """
        as_model(self.model)
        mean, unravel = ravel(start(self.model, params))
        if self.model.likelihood.init_noise(mean.dtype) is not None:
            raise CredoError("an ensemble does not learn a noise variance: give the Normal a number.")
        prior = prior_covariance(unravel, mean.dtype, var, cov, Diagonal().init, Full().from_dense)
        first, second = jax.random.split(as_key(key))
        deviations = centred(prior.sample(first, (self.members,)))
        anchor = self.dynamics.anchor(mean, prior)
        data = jax.random.key_data(second)
        return Ensemble(mean, deviations, data, jnp.zeros((), jnp.int32), unravel, anchor)

    def time_update(self, belief: Ensemble, dt: ArrayLike | None) -> Ensemble:
        if isinstance(self.dynamics, Transition):
            return self._moved(belief, self.dynamics, dt)
        draws = jax.random.fold_in(_key(belief), 0)
        before = EnsembleCovariance(belief.deviations, jax.random.key_data(draws))
        mean, cov = self.dynamics.move(belief.mean, before, belief.anchor, belief.t, dt)
        assert isinstance(cov, EnsembleCovariance)
        return replace(belief, mean=mean, deviations=cov.deviations, t=belief.t + 1)

    def _moved(self, belief: Ensemble, dynamics: Transition, dt: ArrayLike | None) -> Ensemble:
        """The members after a move of their own, with noise whose mean is not subtracted."""
        key = jax.random.fold_in(_key(belief), 0)
        weights = jnp.zeros(self.members, belief.mean.dtype)
        members = dynamics.propagate(
            belief.members, weights, key, belief.anchor, belief.t, dt, belief.unravel
        )
        mean = column_sums(members) / members.shape[0]
        return replace(belief, mean=mean, deviations=members - mean[None, :], t=belief.t + 1)

    def output_moments(self, belief: Ensemble, x: PyTree) -> tuple[Array, Array]:
        """The mean and covariance of the members' outputs."""
        _, eta, rows = self._outputs(belief, x)
        return eta, rows @ rows.T

    def _outputs(self, belief: Ensemble, x: PyTree) -> tuple[Array, Array, Array]:
        """The members' outputs (M, C), their mean (C,), and (M - 1)^-1/2 times their deviations (C, M)."""
        etas = jax.vmap(lambda vector: self.model.outputs(vector, belief.unravel, x))(belief.members)
        eta = column_sums(etas) / etas.shape[0]
        return etas, eta, (etas - eta[None, :]).T / jnp.sqrt(etas.shape[0] - 1).astype(etas.dtype)

    def measurement_update(
        self, belief: Ensemble, x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> tuple[Ensemble, Info]:
        likelihood = self.model.likelihood
        safe_y, there = legible(likelihood, y)
        observed, used = usable(there, weight, belief.mean.dtype)
        safe_x = clean(x)
        _, eta, rows = self._outputs(belief, safe_x)
        # in coordinates w of theta = mean + w D / sqrt(M - 1), w ~ N(0, I)
        local = Objective(likelihood, safe_y, used).local(eta, DenseRows(rows))
        outputs = local.rows.dense()
        inner = outputs @ outputs.T
        if local.information is not None:
            local = local.counted(inner)
        cov = belief.cov
        move = kalman_weights(local.root, local.residual, inner) @ outputs
        mean = belief.mean + move @ cov.unit
        if self.analysis == "etkf":
            deviations = cov.contract(local.factor.dense()).deviations
        else:
            passed = step_key(key, belief.t)
            own = jax.random.fold_in(_key(belief), 1) if passed is None else passed
            deviations = self._perturbed(local, inner, cov, own)
        predictive = likelihood.linearized(eta, inner)
        if used.ndim:
            assert isinstance(likelihood, Rows)
            log_evidence = likelihood.log_evidence(predictive, eta, safe_y, used > 0, None)
        else:
            log_evidence = predictive.log_prob(safe_y)
        log_evidence = jnp.where(jnp.any(used > 0), log_evidence, 0.0)
        new = replace(belief, mean=mean, deviations=deviations)
        return accept(belief, new, log_evidence, jnp.any(observed), x, y, used)

    def _perturbed(self, local: Local, inner: Array, cov: EnsembleCovariance, key: Array) -> Array:
        """The deviations after every member has seen the observation with noise of its own."""
        count = self.members
        rows = local.rows.dense()
        draws = centred(jax.random.normal(key, (count, local.root.shape[-1]), inner.dtype)).T
        noise = local.root[:, None] * draws if local.root.ndim == 1 else local.root @ draws
        residuals = noise - jnp.sqrt(count - 1).astype(inner.dtype) * local.bend(rows)
        system = jnp.eye(inner.shape[0], dtype=inner.dtype) + local.bend(inner)
        return cov.deviations + solve(system, residuals).T @ (rows @ cov.unit)

    def predictive(
        self, belief: Ensemble, x: PyTree, method: ForecastName | None, samples: int | None, key: Key | None
    ) -> Predictive:
        """The forecast of the members, by one of three methods.

        "linearized" takes the mean and covariance of the members' outputs, "mc" their equal mixture, and
        "plugin" the mean of the members.

        Raises:
            CredoError: the method is unknown, or a number of samples is given.
        """
        method = "linearized" if method is None else method
        require_choice("method", method, METHODS)
        if samples not in (None, self.members):
            raise CredoError(
                f"samples must be None: an ensemble forecasts by its {self.members} members; got {samples!r}."
            )
        if self.model.batched:
            single = replace(self, model=self.model.each)
            return PredictiveRows(
                jax.vmap(lambda row: single.predictive(belief, row, method, samples, key))(x)
            )
        likelihood = self.model.likelihood
        if method == "plugin":
            return likelihood.plugin(self.model.outputs(belief.mean, belief.unravel, x))
        etas, eta, rows = self._outputs(belief, x)
        if method == "mc":
            return likelihood.mixture(etas)
        return likelihood.linearized(eta, rows @ rows.T)

    def expectation(self, belief: Ensemble, x: PyTree) -> Expectation:
        """The expected observations of the members, which are weighed equally."""
        etas, _, _ = self._outputs(belief, x)

        def values(eta: Array) -> Array:
            likelihood, rows = self.model.rows_of(eta, x)
            return jax.vmap(likelihood.mean)(rows).reshape(-1)

        log_weights = jnp.full(etas.shape[0], -jnp.log(float(etas.shape[0])), etas.dtype)
        return DrawnExpectation(jax.vmap(values)(etas), log_weights)

    def function_draw(self, belief: Ensemble, key: Key) -> SampledFunction:
        """The function of one member."""
        which = jax.random.randint(as_key(key), (), 0, self.members)
        return SampledFunction(self.model.each, belief.members[which], None, belief.unravel)

    def draws(self, belief: Ensemble, key: Key, shape: tuple[int, ...]) -> PyTree:
        draws = belief.cov.sample(as_key(key), shape)
        return belief.unravel(draws + jnp.broadcast_to(belief.mean, draws.shape))


def _key(belief: Ensemble) -> Array:
    """The key of the current step."""
    return jax.random.fold_in(as_key(belief.key), belief.t)
