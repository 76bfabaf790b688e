"""The base of learners whose belief is a set of weighted particles, and what those of whole streams share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from credo.beliefs import FunctionSource, NormalSource, Particles, Source, ValuesSource
from credo.beliefs.particles import LEARN, MOVE
from credo.core.errors import CredoError, require_choice, require_integer
from credo.core.keys import as_key, step_key
from credo.core.names import ForecastName
from credo.core.records import replace, static_field
from credo.core.trees import Unravel, as_like, ravel
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.covariances import Diagonal, Full
from credo.dynamics import Dynamics, Static
from credo.learners.acceptance import Info, accept, clean, legible, usable
from credo.learners.base import OutputLearner, SampledFunction
from credo.learners.extensible import prior_covariance
from credo.likelihoods import (
    DrawnExpectation,
    Expectation,
    MixturePredictive,
    Predictive,
    PredictiveRows,
    Rows,
)
from credo.linalg.matrices import cholesky, solve_lower
from credo.models.model import Model, as_model
from credo.models.partial import start

__all__ = ["ParticleLearner", "Prior", "row_scale", "separated", "standardized", "whole_evidence"]

Prior: TypeAlias = "Source | Callable[[Array], PyTree] | tuple[Callable[..., Any], Callable[..., Any]]"
"""A prior of particles: a record, `draw(key)`, or the pair of it and `log_prob(params)`."""

METHODS = ("mc", "linearized", "plugin")


class ParticleLearner(OutputLearner[Particles]):
    """A learner that believes in N weighted values of the parameters.

    A subclass is a record. It declares the fields `model`, `particles` and `dynamics` (they are here for
    type checkers), and writes `assimilate`: how the particles and their weights become those after an
    observation. The base class draws the particles of the prior, moves them by the dynamics, forecasts with
    the mixture of all particles, and accepts or refuses an update.

    Arguments:
        model: a `Model`; `joint(model)` for mini-batches. Only `log_prob` of its likelihood is needed.
        particles: the number N, at least 2.
        dynamics: how a particle moves between observations: a `Transition`, or any other dynamics.

    Raises:
        CredoError: there are fewer than 2 particles.

    Example:
        Importance weights and nothing else:

        >>> import credo, jax, jax.numpy as jnp
        >>> from credo.particles import ParticleLearner
        >>> @credo.record
        ... class Weighted(ParticleLearner):
        ...     model: credo.Model
        ...     particles: int = credo.static_field(default=100)
        ...     dynamics: credo.Dynamics = credo.Static()
        ...
        ...     def assimilate(self, belief, x, y, weight, key):
        ...         logs = self.log_likelihood(belief.values, belief.unravel, x, y, weight)
        ...         logs = belief.log_weights + logs
        ...         total = jax.nn.logsumexp(logs)
        ...         return credo.replace(belief, log_weights=logs - total), total
        >>> learner = Weighted(credo.Model(lambda z, x: z, credo.Normal(1.0)), particles=2000)
        >>> belief, info = learner.step(learner.init(jnp.zeros(1)), None, 2.0)
        >>> round(float(belief.mean[0])), round(float(belief.var[0]), 1)
        (1, 0.5)
    """

    model: Model
    particles: int = static_field(default=256)
    dynamics: Dynamics = Static()

    looks_back = False
    """Whether an update needs the particles before the latest move."""

    def __post_init__(self) -> None:
        require_integer("particles", self.particles, 2)

    def init(
        self,
        params: PyTree = None,
        *,
        var: PyTree = 1.0,
        cov: ArrayLike | None = None,
        values: PyTree = None,
        prior: Source
        | Callable[[Array], PyTree]
        | tuple[Callable[..., Any], Callable[..., Any]]
        | None = None,
        key: Key = 0,
    ) -> Particles:
        """Particles drawn from the prior, which is N(params, var) unless it is given otherwise.

        Arguments:
            params: the prior mean, a pytree of floating-point arrays; P numbers in all. It also says how a
                vector becomes the parameter tree.
            var: prior variances, above 0: a number, an array (P,), or a tree like `params`.
            cov: a dense prior covariance (P, P) in place of `var`.
            values: the particles themselves, a tree like `params` whose arrays have a leading axis N.
            prior: another prior: `draw(key) -> params` for one particle, a pair (`draw`, `log_prob(params)`),
                or a record with `draw(key, count)` and `log_prob(vector)`.
            key: the key of the particles, and of all draws of later steps.

        Raises:
            CredoError: a variance is not above 0, a shape does not fit, or the noise variance is to be
                learned.
        """
        as_model(self.model)
        mean, unravel = ravel(start(self.model, params))
        if self.model.likelihood.init_noise(mean.dtype) is not None:
            raise CredoError(
                "particles do not learn a noise variance: give the Normal a number, or make the variance one "
                "of the parameters.",
                field="likelihood",
            )
        first, second = jax.random.split(as_key(key))
        prior_cov = prior_covariance(unravel, mean.dtype, var, cov, Diagonal().init, Full().from_dense)
        source: Source = NormalSource(mean, prior_cov)
        if values is not None:
            if prior is not None:
                raise CredoError("init takes values or a prior; got both.", field="values")
            source = ValuesSource(_rows(values, unravel, self.particles, mean))
            drawn = source.values
        else:
            source = source if prior is None else _source(prior, unravel)
            drawn = jnp.asarray(source.draw(first, self.particles), mean.dtype)
            if drawn.shape != (self.particles, unravel.size):
                raise CredoError(
                    f"prior must draw {(self.particles, unravel.size)} numbers, one row a particle; got "
                    f"shape {drawn.shape}.",
                    field="prior",
                )
        anchor = None
        if self.dynamics.anchored:
            spread_of = source if isinstance(source, NormalSource) else _fit(drawn)
            anchor = self.dynamics.anchor(spread_of.mean, spread_of.cov)
        blank = Particles(
            drawn,
            jnp.zeros(self.particles, mean.dtype),
            jax.random.key_data(second),
            jnp.zeros((), jnp.int32),
            unravel,
            source,
            anchor,
            drawn if self.looks_back else None,
            jnp.zeros((), mean.dtype) if self.looks_back else None,
        )
        return self.begin(blank.equal(drawn))

    def begin(self, belief: Particles) -> Particles:
        """The first belief with whatever else the method keeps: by default nothing."""
        return belief

    def time_update(self, belief: Particles, dt: ArrayLike | None) -> Particles:
        key = belief.step_key(MOVE)
        values = self.dynamics.propagate(
            belief.values, belief.log_weights, key, belief.anchor, belief.t, dt, belief.unravel
        )
        moved = replace(belief, values=values, t=belief.t + 1)
        if not self.looks_back:
            return moved
        step = jnp.ones((), values.dtype) if dt is None else jnp.asarray(dt, values.dtype)
        return replace(moved, parents=belief.values, step=step)

    @abstractmethod
    def assimilate(
        self, belief: Particles, x: PyTree, y: PyTree, weight: Array, key: Array
    ) -> tuple[Particles, Array]:
        """Take in an observation that is there.

        Arguments:
            belief: the predicted belief.
            x, y: one row, without NaN and infinities.
            weight: what multiplies the log-likelihood, a number or for a joint model one number a row (B,),
                as `log_likelihood` takes it.
            key: the key of this step.

        Returns:
            The belief after the observation, and log p(y | x, past) or its estimate. Where either is not
            finite, the observation is refused and the belief stays as it was; log weights of -inf are
            allowed.
        """

    def measurement_update(
        self, belief: Particles, x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> tuple[Particles, Info]:
        safe_y, there = legible(self.model.likelihood, y)
        observed, used = usable(there, weight, belief.values.dtype)
        passed = step_key(key, belief.t)
        own = belief.step_key(LEARN) if passed is None else passed
        new, log_evidence = self.assimilate(belief, clean(x), safe_y, used, own)
        log_evidence = jnp.where(jnp.any(used > 0), log_evidence, 0.0)
        witness = (new.values, new.weights, new.log_density, new.state)
        return accept(belief, new, log_evidence, jnp.any(observed), x, y, used, witness)

    def log_likelihood(
        self, values: Array, unravel: Unravel, x: PyTree, y: PyTree, weight: ArrayLike = 1.0
    ) -> Array:
        """weight log p(y | z, x) of every particle (N,); -inf if it cannot be evaluated.

        Arguments:
            values: particles (N, P).
            unravel: how a vector becomes the parameter tree.
            x, y: one row, or several for a joint model.
            weight: a number, or for a joint model one number a row (B,).
        """
        logs = jax.vmap(lambda value: self._log_prob(value, unravel, x, y, weight))(values)
        return jnp.where(jnp.isnan(logs), -jnp.inf, logs)

    def scores(self, values: Array, unravel: Unravel, x: PyTree, y: PyTree, weight: ArrayLike = 1.0) -> Array:
        """The gradient of weight log p(y | z, x) in z at every particle (N, P)."""
        slope = jax.grad(lambda value: self._log_prob(value, unravel, x, y, weight))
        gradients: Array = jax.vmap(slope)(values)
        return gradients

    def _log_prob(self, value: Array, unravel: Unravel, x: PyTree, y: PyTree, weight: ArrayLike) -> Array:
        eta = self.model.outputs(value, unravel, x)
        likelihood = self.model.likelihood
        height = jnp.asarray(weight, value.dtype)
        if not isinstance(likelihood, Rows):
            return height * likelihood.log_prob(eta, y)
        each = likelihood.each
        logs = jax.vmap(each.log_prob)(eta.reshape(likelihood.rows(y), -1), y)
        # A row without weight may hold anything.
        return jnp.sum(jnp.where(height == 0, 0.0, height * logs))

    def outputs(self, belief: Particles, x: PyTree) -> Array:
        """The outputs of the model at every particle (N, C)."""
        return jax.vmap(lambda value: self.model.outputs(value, belief.unravel, x))(belief.values)

    def output_moments(self, belief: Particles, x: PyTree) -> tuple[Array, Array]:
        """The weighted mean (C,) and covariance (C, C) of the outputs."""
        etas = self.outputs(belief, x)
        eta = belief.weights @ etas
        gaps = etas - eta[None, :]
        return eta, gaps.T @ (belief.weights[:, None] * gaps)

    def predictive(
        self, belief: Particles, x: PyTree, method: ForecastName | None, samples: int | None, key: Key | None
    ) -> Predictive:
        """The forecast of the particles, by one of three methods.

        "mc" (the default) is the weighted mixture over the particles, "linearized" takes the mean and
        covariance of their outputs, and "plugin" the particles' mean.

        Raises:
            CredoError: the method is unknown, or another number of samples is given.
        """
        method = "mc" if method is None else method
        require_choice("method", method, METHODS)
        if samples not in (None, self.particles):
            raise CredoError(
                f"samples must be None: the forecast is that of all {self.particles} particles; got "
                f"{samples!r}.",
                field="samples",
            )
        if self.model.batched:
            single = replace(self, model=self.model.each)
            return PredictiveRows(
                jax.vmap(lambda row: single.predictive(belief, row, method, samples, key))(x)
            )
        likelihood = self.model.likelihood
        if method == "plugin":
            return likelihood.plugin(self.model.outputs(belief.mean, belief.unravel, x))
        if method == "linearized":
            return likelihood.linearized(*self.output_moments(belief, x))
        return MixturePredictive(likelihood, self.outputs(belief, x), belief.log_weights)

    def scaled_predictive(self, belief: Particles, x: PyTree, scale: ArrayLike | None) -> Predictive:
        """The default forecast; a mixture over particles is narrower or wider in their outputs."""
        forecast = self.predictive(belief, x, None, None, None)
        if isinstance(forecast, MixturePredictive):
            return forecast.scaled(0.0 if scale is None else scale)
        return super().scaled_predictive(belief, x, scale)

    def expectation(self, belief: Particles, x: PyTree) -> Expectation:
        """The expected observations of the particles, with their weights."""

        def values(eta: Array) -> Array:
            likelihood, rows = self.model.rows_of(eta, x)
            return jax.vmap(likelihood.mean)(rows).reshape(-1)

        return DrawnExpectation(jax.vmap(values)(self.outputs(belief, x)), belief.log_weights)

    def function_draw(self, belief: Particles, key: Key) -> SampledFunction:
        """The function of one particle, drawn by its weight."""
        which = jax.random.categorical(as_key(key), belief.log_weights)
        return SampledFunction(self.model.each, belief.values[which], None, belief.unravel)

    def draws(self, belief: Particles, key: Key, shape: tuple[int, ...]) -> PyTree:
        which = jax.random.categorical(as_key(key), belief.log_weights, shape=shape)
        return belief.unravel(belief.values[which])


def _rows(values: PyTree, unravel: Unravel, count: int, like: Array) -> Array:
    """Particles of the user's as vectors (N, P)."""
    leaves = jax.tree.leaves(values)
    shapes = [(count, *shape) for shape in unravel.shapes]
    if jax.tree.structure(values) != unravel.treedef or [jnp.shape(leaf) for leaf in leaves] != shapes:
        raise CredoError(
            f"values must be a tree like params with a leading axis of {count} particles, of shapes "
            f"{shapes}; got {[jnp.shape(leaf) for leaf in leaves]}.",
            field="values",
        )
    return jnp.concatenate([jnp.asarray(leaf, like.dtype).reshape(count, -1) for leaf in leaves], axis=1)


def _source(prior: object, unravel: Unravel) -> Source:
    """The prior that the user described, as a source."""
    if isinstance(prior, Source):
        return prior
    if isinstance(prior, tuple) and len(prior) == 2 and all(callable(part) for part in prior):
        return FunctionSource(prior[0], prior[1], unravel)
    if callable(prior):
        return FunctionSource(prior, None, unravel)
    raise CredoError(
        "prior must be a function draw(key), a pair (draw, log_prob), or a record with draw(key, count) and "
        f"log_prob(vector); got {prior!r}.",
        field="prior",
    )


def _fit(values: Array) -> NormalSource:
    """The normal distribution with the moments of a set of particles."""
    return NormalSource(jnp.mean(values, axis=0), Diagonal().init(jnp.var(values, axis=0)))


def row_scale(total: ArrayLike, model: Model, y: PyTree, like: Array) -> Array:
    """n / B: how many times the rows of y the whole stream of n rows has, as a scalar."""
    return as_like(total, like) / (model.likelihood.rows(y) if model.batched else 1)


def whole_evidence(learner: ParticleLearner, belief: Particles, x: PyTree, y: PyTree, weight: Array) -> Array:
    """log sum_i w_i p(y | z_i, x) of the rows that have any weight, a scalar."""
    whole = (weight > 0).astype(belief.values.dtype)
    logs = learner.log_likelihood(belief.values, belief.unravel, x, y, whole)
    return jnp.asarray(jax.nn.logsumexp(belief.log_weights + logs))


def standardized(draws: Array) -> Array:
    """Draws (N, P) of a standard normal, shifted and stretched to mean 0 and covariance I exactly.

    Moments that are estimated from such draws have no error of their own. Where N - 1 < P no stretch can give
    the covariance I, and the draws are only centred.
    """
    count, size = draws.shape
    gaps = draws - jnp.mean(draws, axis=0)[None, :]
    if count - 1 < size:
        return gaps
    root = cholesky(gaps.T @ gaps / (count - 1))
    return solve_lower(root, gaps.T).T


def separated(draws: Array, others: Array) -> Array:
    """Standardised draws (N, P) without any sample correlation with other columns (N, Q).

    Sums of the two then have the moments that theory says, without an error of the sample. Where N - 1 is
    below P + Q the draws are only standardised.
    """
    count, size = draws.shape
    if count - 1 < size + others.shape[1]:
        return standardized(draws)
    basis, _ = jnp.linalg.qr(jnp.concatenate([jnp.ones((count, 1), draws.dtype), others], axis=1))
    return standardized(draws - basis @ (basis.T @ draws))
