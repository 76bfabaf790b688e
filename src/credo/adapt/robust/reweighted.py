"""Robust updates: choose how far to trust an observation, then make one weighted update.

A method says how much of the noise precision inv(R) an observation keeps, once before the update and, where
it iterates, again after a trial update, from the residual that is left. Everything is in units of the noise
(see `credo.adapt.robust.residual`), so that a method is a few lines without a matrix of its own. Nothing is
ever divided by a weight, so a weight of 0 leaves an observation out.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic

import jax
import jax.numpy as jnp

from credo.adapt.nested import B, floating
from credo.adapt.robust.residual import Residual, WhiteNormal
from credo.adapt.wrapper import Proposal, Wrapper
from credo.beliefs import InverseGamma
from credo.core.errors import CredoError, require_integer
from credo.core.records import record, replace
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.learners import Info
from credo.learners.base import clean, sound, usable
from credo.learners.functions import OutputLearner
from credo.likelihoods import Normal
from credo.likelihoods.base import LikelihoodBase
from credo.models import Model

__all__ = ["RobustLearner", "Trust"]


@record
class Trust:
    """How much of the noise precision an observation keeps: with a weight w >= 0 the noise is R / w.

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
        """How far to trust the observation, by the residual of the belief before the update.

        Where the trust of the `last` trial update is given, the residual is that of the trial.
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
        observed, used = usable(likelihood.observed(y), weight, floating(belief))
        residual = self._residual(belief, x, y)

        def attempt(trust: Trust) -> tuple[Trust, B, Info]:
            if trust.root is None:
                return trust, *self.learner.measurement_update(belief, x, y, used * trust.weight, key)
            noise = WhiteNormal(residual.root @ trust.root)
            return trust, *self._with(noise).measurement_update(belief, x, y, used, key)

        def again(_: int, state: tuple[Trust, B, Info]) -> tuple[Trust, B, Info]:
            trust, trial, _info = state
            return attempt(self._weigh(self._residual(trial, x, y), trust))

        state = attempt(self._weigh(residual, None))
        if self.iterations > 1:
            state = jax.lax.fori_loop(1, self.iterations, again, state)
        trust, new, info = state
        log_evidence = jnp.where(used > 0, self._evidence(residual, trust), 0.0)
        ok = sound((), log_evidence, observed, x, y, used) & info.ok
        return Proposal(new, log_evidence, ok, Trust(jnp.where(ok, trust.weight, 0.0)))

    def _residual(self, belief: B, x: PyTree, y: PyTree) -> Residual:
        model, safe_y = self.learner.model, clean(y)
        eta, cov = self.learner.output_moments(belief, clean(x))
        root = model.likelihood.fisher_root(eta, safe_y)
        error = jnp.asarray(safe_y, eta.dtype).reshape(eta.shape) - eta
        return Residual(error, root.T @ error, root.T @ cov @ root, root)

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
