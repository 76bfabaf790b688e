"""Robust updates: choose how far to trust an observation, then make one weighted update.

A method says how much of the noise precision inv(R) an observation keeps, once before the update and, where
it iterates, again after a trial update, from the residual that is left. Nothing is ever divided by a weight,
so a weight of 0 leaves an observation out. With A A' = inv(R), everything is measured in units of the noise,

    g = A' (y - yhat),    V = A' H P H' A,    D = g' g + tr V = E[(y - H theta)' inv(R) (y - H theta)],

so that a method is a few lines without a matrix of its own.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Generic

import jax
import jax.numpy as jnp

from credo.adapt.nested import B, floating
from credo.adapt.wrapper import Proposal, Wrapper
from credo.beliefs import InverseGamma
from credo.core.errors import CredoError, require_integer
from credo.core.records import record, replace
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.learners import Info
from credo.learners.acceptance import legible
from credo.learners.base import OutputLearner, clean, sound, usable
from credo.likelihoods import Normal, NormalPredictive, Predictive
from credo.likelihoods.base import LikelihoodBase
from credo.linalg.matrices import log_det, solve
from credo.models import Model

__all__ = ["Residual", "RobustLearner", "Trust", "log_peak"]


@dataclass(frozen=True)
class Residual:
    """The part of an observation that a belief leaves unexplained, in units of the noise.

    `error` is y - yhat (C,) in the units of y, `gap` is g = A' (y - yhat) (C,) with A A' = inv(R), and
    `spread` is V = A' H P H' A (C, C): the belief's own uncertainty. `root` is A. Outputs that were not
    observed, as `seen` (C,) says, have rows and columns of 0 in all of them, and A A' is the precision of the
    others alone.
    """

    error: Array
    gap: Array
    spread: Array
    root: Array
    seen: Array

    @property
    def size(self) -> Array:
        """The number of outputs that were observed."""
        return jnp.sum(self.seen.astype(self.gap.dtype))

    @property
    def distance(self) -> Array:
        """g' g = (y - yhat)' inv(R) (y - yhat), the squared Mahalanobis distance by the noise alone."""
        return self.gap @ self.gap

    @property
    def expected(self) -> Array:
        """D = g' g + tr V, the expected squared residual under the belief."""
        return self.distance + jnp.trace(self.spread)

    def predicted(self, level: ArrayLike = 1.0) -> Array:
        """The share level g' inv(V + level I) g of the squared residual, explained by noise level R."""
        total = self.spread + level * jnp.eye(self.gap.shape[0], dtype=self.gap.dtype)
        share: Array = (self.gap @ solve(total, self.gap)) * level
        return share

    def log_prob(self, weight: Array) -> Array:
        """log N(y | yhat, H P H' + R / weight), for a weight above 0."""
        eye = jnp.eye(self.gap.shape[0], dtype=self.gap.dtype)
        density = white_log_prob(self.gap, self.spread, jnp.sqrt(weight) * eye, self.seen)
        return density + self.log_scale

    @property
    def log_scale(self) -> Array:
        """log |det A|, which turns a log density in units of the noise into one in the units of y."""
        return log_det(whole(self.root, self.seen))


def whole(root: Array, seen: Array) -> Array:
    """A root (C, C) with 1 on the diagonal for outputs that were not observed, whose rows are 0."""
    return jnp.where(seen[:, None], root, jnp.eye(root.shape[0], dtype=root.dtype))


@record
class WhiteNormal(LikelihoodBase):
    """y ~ N(eta, inv(A A')), given by the root A (C, C) of its precision, which may be near singular.

    Outputs that were not observed, as `observable` (C,) says, have rows of 0 in A, so that they say nothing.
    """

    root: Array
    observable: Array

    def log_prob(self, eta: Array, y: PyTree) -> Array:
        """log N(y | eta, inv(A A'))."""
        return self.linearized(eta, jnp.zeros_like(self.root)).log_prob(y)

    def score(self, eta: Array, y: PyTree) -> Array:
        """A A' (y - eta)."""
        return self.root @ (self.root.T @ (jnp.asarray(y, eta.dtype).reshape(-1) - eta))

    def fisher_root(self, eta: Array, y: PyTree) -> Array:
        """A."""
        return self.root

    def linearized(self, eta: Array, cov: Array, noise: PyTree = None) -> Predictive:
        """N(eta, cov + inv(A A')), by its density only."""
        return _WhitePredictive(eta, cov, self.root, self.observable)


@record
class _WhitePredictive(Predictive):
    """The density of N(loc, cov + inv(A A')), of the outputs that were observed."""

    loc: Array
    cov: Array
    root: Array
    observable: Array

    def log_prob(self, y: PyTree) -> Array:
        """The log density, without an inverse of A."""
        gap = jnp.asarray(y, self.loc.dtype).reshape(-1) - self.loc
        return white_log_prob(gap, self.cov, self.root, self.observable)


def white_log_prob(gap: Array, spread: Array, root: Array, seen: Array) -> Array:
    """log N(gap | 0, spread + inv(B B')) of the outputs seen, by the root B (C, C) of a precision."""
    inner = root.T @ spread @ root + jnp.eye(gap.shape[0], dtype=gap.dtype)
    density = NormalPredictive(jnp.zeros_like(gap), inner).log_prob(root.T @ gap, seen)
    return density + log_det(whole(root, seen))


def log_peak(size: ArrayLike) -> ArrayLike:
    """log N(0 | 0, I) in so many dimensions."""
    return -0.5 * size * math.log(2 * math.pi)


@record
class Trust:
    """The noise precision that an observation keeps: with a weight w >= 0 the noise is R / w.

    `root` is B (C, C) where a method chooses a whole precision B B' in units of the noise; `weight` is then
    tr(B B') / C, for the report.
    """

    weight: Array
    root: Array | None = None


class RobustLearner(Wrapper[B, B], Generic[B]):
    """The base of the robust learners: a loop of `iterations` updates of `learner`, and as many Jacobians.

    A subclass is a record with a field `learner`. It writes `_weigh` and `_evidence`, and may write
    `predictive`. Beliefs, dynamics and draws are those of `learner`; its likelihood must be a `Normal`.
    """

    learner: OutputLearner[B]
    iterations: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_normal(type(self).__name__, self.learner)
        require_integer("iterations", self.iterations, 1)

    @abstractmethod
    def _weigh(self, residual: Residual, last: Trust | None) -> Trust:
        """The trust in the observation, by the residual of the belief before the update.

        If the trust of the `last` trial update is given, the residual is that of the trial.
        """

    @abstractmethod
    def _evidence(self, residual: Residual, trust: Trust) -> Array:
        """log p(y | past), from the residual before the update and the trust that was chosen."""

    def wrap(self, prior: B) -> B:
        """The learner's own first belief."""
        return prior

    def inner(self, belief: B) -> B:
        """The same belief."""
        return belief

    def outer(self, belief: B, inner: B) -> B:
        """The belief inside, which is the whole belief."""
        return inner

    def propose(self, belief: B, x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None) -> Proposal[B]:
        """Weigh the observation, learn it by its weight, and weigh it again by the remaining residual."""
        likelihood = self.learner.model.likelihood
        observed, used = usable(legible(likelihood, y)[1], weight, floating(belief))
        residual = self._residual(belief, x, y)

        def attempt(trust: Trust) -> tuple[Trust, B, Info]:
            if trust.root is None:
                return trust, *self.learner.measurement_update(belief, x, y, used * trust.weight, key)
            noise = WhiteNormal(residual.root @ trust.root, residual.seen)
            blank = jax.tree.map(lambda leaf: jnp.where(jnp.isnan(leaf), 0, leaf), y)
            return trust, *self._with(noise).measurement_update(belief, x, blank, used, key)

        def again(_: int, state: tuple[Trust, B, Info]) -> tuple[Trust, B, Info]:
            trust, trial, _info = state
            return attempt(self._weigh(self._residual(trial, x, y), trust))

        state = attempt(self._weigh(residual, None))
        if self.iterations > 1:
            state = jax.lax.fori_loop(1, self.iterations, again, state)
        trust, new, info = state
        log_evidence = jnp.where(used > 0, self._evidence(residual, trust), 0.0)
        ok = sound((), jnp.isfinite(log_evidence), observed, x, y, used) & info.ok
        return Proposal(new, log_evidence, ok, Trust(jnp.where(ok, trust.weight, 0.0)))

    def _residual(self, belief: B, x: PyTree, y: PyTree) -> Residual:
        likelihood = self.learner.model.likelihood
        readable, _ = legible(likelihood, y)
        eta, cov = self.learner.output_moments(belief, clean(x))
        root = likelihood.fisher_root(eta, readable)  # rows of 0 for outputs that are not observed
        error = jnp.asarray(readable, eta.dtype).reshape(eta.shape) - eta
        seen = ~jnp.isnan(error)
        error = jnp.where(seen, error, 0.0)
        return Residual(error, root.T @ error, root.T @ cov @ root, root, seen)

    def _with(self, likelihood: LikelihoodBase) -> OutputLearner[B]:
        """The learner inside, with another noise."""
        return replace(self.learner, model=Model(self.learner.model.apply, likelihood))


def _require_normal(name: str, learner: object) -> None:
    """Refuse anything but a learner of one observation a step with known normal noise."""
    if not isinstance(learner, OutputLearner):
        raise CredoError(
            "learner must be a learner whose outputs have a mean and a covariance, such as "
            f"extended_kalman(model), enkf(model) or particle_filter(model), for {name}; got "
            f"{type(learner).__name__}."
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
