"""Robust updates: choose how far to trust an observation, then one weighted update of the learner inside.

A method says how much of the noise precision inv(R) an observation keeps, once before the update and, where
it iterates, again after a trial update, from the residual that is left. With A A' = inv(R) everything is
measured in units of the noise,

    g = A' (y - yhat),    V = A' H P H' A,    D = g' g + tr V = E[(y - H theta)' inv(R) (y - H theta)],

so that a method is a few lines without a matrix of its own. Nothing is ever divided by a weight, so a
weight of 0 leaves an observation out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from credo.beliefs import Gaussian, InverseGamma
from credo.core.errors import CredoError, require_integer
from credo.core.records import record, replace
from credo.learners import Info, Learner, RecursiveLearner
from credo.learners.base import accept, clean, usable
from credo.likelihoods import Normal, NormalPredictive, Predictive
from credo.likelihoods.base import LikelihoodBase
from credo.models import Model

__all__ = ["Residual", "RobustLearner", "Trust", "WhiteNormal", "log_peak", "white_log_prob"]


@dataclass(frozen=True)
class Residual:
    """What a belief leaves unexplained of an observation, in units of the noise.

    Attributes:
        error: y - yhat (C,), in the units of y.
        gap: g = A' (y - yhat) (C,), with A A' = inv(R).
        spread: V = A' H P H' A (C, C): the belief's own uncertainty.
        root: A (C, C).
    """

    error: jax.Array
    gap: jax.Array
    spread: jax.Array
    root: jax.Array

    @property
    def size(self) -> int:
        """The number C of outputs."""
        return self.gap.shape[0]

    @property
    def distance(self) -> jax.Array:
        """g' g = (y - yhat)' inv(R) (y - yhat), the squared Mahalanobis distance by the noise alone."""
        return self.gap @ self.gap

    @property
    def expected(self) -> jax.Array:
        """D = g' g + tr V, the expected squared residual under the belief."""
        return self.distance + jnp.trace(self.spread)

    def predicted(self, level: Any = 1.0) -> jax.Array:
        """level g' inv(V + level I) g: the share of the squared residual that noise of covariance level R
        explains.
        """
        total = self.spread + level * jnp.eye(self.size, dtype=self.gap.dtype)
        return level * (self.gap @ jnp.linalg.solve(total, self.gap))

    def log_prob(self, weight: jax.Array) -> jax.Array:
        """log N(y | yhat, H P H' + R / weight), for a weight above 0."""
        eye = jnp.eye(self.size, dtype=self.gap.dtype)
        return white_log_prob(self.gap, self.spread, jnp.sqrt(weight) * eye) + self.log_scale

    @property
    def log_scale(self) -> jax.Array:
        """log |det A|: what a log density in units of the noise lacks in the units of y."""
        return jnp.linalg.slogdet(self.root)[1]


@record
class Trust:
    """How much of the noise precision an observation keeps.

    Attributes:
        weight: w, at least 0: the effective noise is R / w.
        root: B (C, C) where a method chooses a whole precision B B' in units of the noise; `weight` is then
            tr(B B') / C, for the report.
    """

    weight: jax.Array
    root: jax.Array | None = None


@record
class WhiteNormal(LikelihoodBase):
    """y ~ N(eta, inv(A A')), known by the root A (C, C) of its precision, which may be near singular."""

    root: jax.Array

    def log_prob(self, eta: jax.Array, y: Any) -> jax.Array:
        """log N(y | eta, inv(A A'))."""
        return self.linearized(eta, jnp.zeros_like(self.root)).log_prob(y)

    def score(self, eta: jax.Array, y: Any) -> jax.Array:
        """A A' (y - eta)."""
        return self.root @ (self.root.T @ (jnp.asarray(y, eta.dtype).reshape(-1) - eta))

    def fisher_root(self, eta: jax.Array, y: Any) -> jax.Array:
        """A."""
        return self.root

    def linearized(self, eta: jax.Array, cov: jax.Array, noise: Any = None) -> Predictive:
        """N(eta, cov + inv(A A')), by its density only."""
        return _WhitePredictive(eta, cov, self.root)


@record
class _WhitePredictive(Predictive):
    """The density of N(loc, cov + inv(A A'))."""

    loc: jax.Array
    cov: jax.Array
    root: jax.Array

    def log_prob(self, y: Any) -> jax.Array:
        """The log density, without an inverse of A."""
        return white_log_prob(jnp.asarray(y, self.loc.dtype).reshape(-1) - self.loc, self.cov, self.root)


def white_log_prob(gap: jax.Array, spread: jax.Array, root: jax.Array) -> jax.Array:
    """log N(gap | 0, spread + inv(B B')) for the root B (C, C) of a precision, without an inverse of B."""
    inner = root.T @ spread @ root + jnp.eye(gap.shape[0], dtype=gap.dtype)
    return NormalPredictive(jnp.zeros_like(gap), inner).log_prob(root.T @ gap) + jnp.linalg.slogdet(root)[1]


class RobustLearner(Learner):
    """The base of the robust learners: the loop around `learner`.

    A subclass is a record with a field `learner` and writes `_weigh` and `_evidence`; it may write
    `predictive`. Beliefs, dynamics and draws are those of `learner`.

    Cost: `iterations` updates of `learner`, and as many Jacobians.
    """

    learner: RecursiveLearner
    iterations: int = 1

    def __post_init__(self) -> None:
        _require_normal(type(self).__name__, self.learner)
        require_integer("iterations", self.iterations, 1)

    def init(self, params: Any = None, *, var: Any = 1.0, cov: Any = None) -> Gaussian:
        """The prior N(params, var), or N(params, cov): see `RecursiveLearner.init`."""
        return self.learner.init(params, var=var, cov=cov)

    def _weigh(self, seen: Residual, last: Trust | None) -> Trust:
        """How far to trust the observation.

        Arguments:
            seen: its residual: of the belief before the update where `last` is None, later of the trial.
            last: the trust with which the trial update was made.
        """
        raise NotImplementedError

    def _evidence(self, seen: Residual, trust: Trust) -> jax.Array:
        """log p(y | past), from the residual before the update and the trust that was chosen."""
        raise NotImplementedError

    def time_update(self, belief: Gaussian, dt: Any) -> Gaussian:
        return self.learner.time_update(belief, dt)

    def predictive(
        self, belief: Gaussian, x: Any, method: str | None, samples: int | None, key: Any
    ) -> Predictive:
        return self.learner.predictive(belief, x, method, samples, key)

    def draws(self, belief: Gaussian, key: Any, shape: tuple[int, ...]) -> Any:
        return self.learner.draws(belief, key, shape)

    def measurement_update(
        self, belief: Gaussian, x: Any, y: Any, weight: Any, key: Any
    ) -> tuple[Gaussian, Info]:
        likelihood = self.learner.model.likelihood
        observed, used = usable(likelihood.observed(y), weight, belief.mean.dtype)
        seen = self._residual(belief, x, y)

        def attempt(trust: Trust) -> tuple[Trust, Gaussian, Info]:
            if trust.root is None:
                return trust, *self.learner.measurement_update(belief, x, y, used * trust.weight, key)
            noise = WhiteNormal(seen.root @ trust.root)
            inner = self._with(noise)
            return trust, *inner.measurement_update(belief, x, y, used, key)

        def again(_: Any, state: tuple[Trust, Gaussian, Info]) -> tuple[Trust, Gaussian, Info]:
            trust, trial, _ = state
            return attempt(self._weigh(self._residual(trial, x, y), trust))

        state = attempt(self._weigh(seen, None))
        if self.iterations > 1:
            state = jax.lax.fori_loop(1, self.iterations, again, state)
        trust, new, inside = state
        log_evidence = jnp.where(used > 0, self._evidence(seen, trust), 0.0)
        kept, info = accept(belief, new, log_evidence, observed, x, y, used)
        ok = info.ok & inside.ok
        report = Trust(jnp.where(ok, trust.weight, 0.0))
        return kept, Info(jnp.where(ok, info.log_evidence, 0.0), ok, report)

    def _residual(self, belief: Gaussian, x: Any, y: Any) -> Residual:
        model, safe_y = self.learner.model, clean(y)
        eta, rows = model.linearize(belief.mean, belief.unravel, clean(x))
        root = model.likelihood.fisher_root(eta, safe_y)
        error = jnp.asarray(safe_y, eta.dtype).reshape(eta.shape) - eta
        return Residual(error, root.T @ error, root.T @ belief.cov.push(belief.cov.admit(rows)) @ root, root)

    def _with(self, likelihood: LikelihoodBase) -> RecursiveLearner:
        """The learner inside, with another noise."""
        return replace(self.learner, model=Model(self.learner.model.apply, likelihood))


def _require_normal(name: str, learner: Any) -> None:
    """Refuse what is no recursive learner of one observation a step, with normal noise that is known."""
    if not isinstance(learner, RecursiveLearner):
        raise CredoError(
            f"learner must be a RecursiveLearner, such as extended_kalman(model) or lofi(model), for {name}; "
            f"got {type(learner).__name__}."
        )
    likelihood = getattr(learner.model, "likelihood", None)
    if getattr(learner.model, "batched", False):
        raise CredoError(
            f"{name} weighs one observation a step: learner.model must not be joint; step through its rows."
        )
    if not isinstance(likelihood, Normal):
        raise CredoError(
            f"learner.model.likelihood must be a Normal with a known variance for {name}; got {likelihood!r}."
        )
    if isinstance(likelihood.var, InverseGamma):
        raise CredoError(
            f"learner.model.likelihood must have a known variance for {name}: a number, (C,) or (C, C); got "
            "an InverseGamma prior."
        )


def log_peak(size: int) -> float:
    """log N(0 | 0, I) in C dimensions."""
    return -0.5 * size * math.log(2 * math.pi)
