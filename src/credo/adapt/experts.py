"""Mixtures of experts: a bank of learners, of which one at a time is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from credo.adapt.hypotheses import floating, log_sum, normalized
from credo.adapt.priors import collapse
from credo.adapt.wrapped import Mixture
from credo.core.errors import CredoError, require_interval, require_positive
from credo.core.records import record, replace, static_field
from credo.core.trees import as_like, select
from credo.learners import Info, Learner
from credo.likelihoods import Predictive, WeightedPredictive

__all__ = ["Bank", "Experts", "bank"]


def bank(learners: Any) -> Any:
    """One learner whose hyper-parameters have a leading axis K, from K learners of equal structure.

    Arguments:
        learners: records that differ in their numbers only: rates, noises, priors of the dynamics.

    Raises:
        CredoError: there are none, or they differ in more than numbers.

    Example:
        >>> import credo
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learners = [credo.vd_ekf(model, dynamics=credo.RandomWalk(q)) for q in (0.0, 1e-3, 1e-1)]
        >>> bank(learners).dynamics.q.shape
        (3,)
    """
    members = list(learners)
    if not members:
        raise CredoError("learners must hold at least one learner; got none.")
    first: Any = jax.tree.structure(members[0])
    for index, member in enumerate(members):
        if jax.tree.structure(member) != first:
            raise CredoError(
                f"learners must differ in their numbers only; learner {index} is built otherwise."
            )
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf, float) for leaf in leaves]), *members)


@record
class Bank(Mixture):
    """The beliefs of K experts, as one belief whose arrays have a leading axis K.

    Attributes:
        log_weights: log P(expert k is right) (K,), of sum one.
        beliefs: what each believes.
        priors: what each believed before any data.
        t: how many times `predict` has been called.
    """

    log_weights: jax.Array
    beliefs: Any
    priors: Any
    t: jax.Array


@record
class Experts(Learner):
    """K learners side by side; each predicts and learns, and the mixture believes those that predicted well.

    Before an observation w <- M' w, where M[j, k] is the chance that expert k takes over from j; after it
    log w_k += log p(y | x, expert k), normalised. Sources: Magill 1965; Chang & Athans 1978; with losses
    Chaer et al. 1997 and Abeles et al. 2024; BONE's ME-LSSM.

    Arguments:
        learners: a list of learners that differ in their numbers only, or what `bank` makes of them.
        switching: the chance that the right expert changes at a step, to any of the others alike; or the
            matrix M (K, K), whose rows sum to one. 0 is model averaging.
        mixing: match the moments of the experts that may have led to each one before it goes on (the
            interacting multiple model of Blom & Bar-Shalom 1988); Gaussian and conjugate beliefs only.
        loss: `loss(predictive, y)`, a scalar to use in place of minus the log density; None for Bayes.
        rate: above 0; how much a loss counts (log w -= rate * loss).

    Exact, without `mixing` and `loss`, where every expert is and nothing switches between beliefs. An expert
    that fails (a belief that is not finite, an impossible observation) loses its weight for this step and
    goes back to its prior. Cost: K inner updates, vmapped.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = Experts([credo.vd_ekf(model, dynamics=credo.RandomWalk(q)) for q in (0.0, 1e-2)])
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> belief.weights.shape
        (2,)
    """

    learners: Any
    switching: Any = 0.01
    mixing: bool = static_field(default=False)
    loss: Callable | None = static_field(default=None)
    rate: Any = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.learners, list | tuple):
            object.__setattr__(self, "learners", bank(self.learners))
        require_interval("switching", self.switching, 0.0, 1.0)
        require_positive("rate", self.rate)

    @property
    def size(self) -> int:
        """The number K of experts."""
        leaves = jax.tree.leaves(self.learners)
        if not leaves or any(jnp.ndim(leaf) == 0 for leaf in leaves):
            raise CredoError("learners must be a list of learners, or a bank of them.")
        return leaves[0].shape[0]

    def init(self, params: Any = None, *, var: Any = 1.0, **given: Any) -> Bank:
        """The first belief of each expert, and equal weights."""
        size = self.size
        priors = jax.vmap(lambda learner: learner.init(params, var=var, **given))(self.learners)
        kind = floating(priors)
        return Bank(jnp.full(size, -jnp.log(float(size)), kind), priors, priors, jnp.zeros((), jnp.int32))

    def _log_transition(self, like: jax.Array) -> jax.Array:
        """log M (K, K)."""
        size = like.shape[0]
        given = as_like(self.switching, like)
        if given.ndim == 2:
            if given.shape != (size, size):
                raise CredoError(f"switching must be a number or ({size}, {size}); got shape {given.shape}.")
            return jnp.log(given)
        eye = jnp.eye(size, dtype=like.dtype)
        return (
            jnp.log((1.0 - given) * eye + given * (1.0 - eye) / max(size - 1, 1))
            if size > 1
            else jnp.log(eye)
        )

    def time_update(self, belief: Bank, dt: Any) -> Bank:
        joint = belief.log_weights[:, None] + self._log_transition(belief.log_weights)
        log_weights = log_sum(joint, axis=0)
        beliefs = belief.beliefs
        if self.mixing:
            beliefs = jax.vmap(collapse, in_axes=(1, None))(joint, beliefs)
        moved = jax.vmap(lambda learner, one: learner.time_update(one, dt))(self.learners, beliefs)
        return Bank(log_weights, moved, belief.priors, belief.t + 1)

    def predictive(
        self, belief: Bank, x: Any, method: str | None, samples: int | None, key: Any
    ) -> Predictive:
        return WeightedPredictive(self._parts(belief, x, method, samples, key), belief.log_weights)

    def _parts(self, belief: Bank, x: Any, method: str | None, samples: int | None, key: Any) -> Any:
        def one(learner: Learner, belief: Any) -> Predictive:
            return learner.predictive(belief, x, method, samples, key)

        return jax.vmap(one)(self.learners, belief.beliefs)

    def measurement_update(self, belief: Bank, x: Any, y: Any, weight: Any, key: Any) -> tuple[Bank, Info]:
        def one(learner: Learner, belief: Any) -> tuple[Any, Info]:
            return learner.measurement_update(belief, x, y, weight, key)

        learned, infos = jax.vmap(one)(self.learners, belief.beliefs)
        evidence = jnp.where(infos.ok, infos.log_evidence, -jnp.inf).astype(belief.log_weights.dtype)
        scores = evidence
        loss = self.loss
        if loss is not None:
            parts = self._parts(belief, x, None, None, key)
            losses = jax.vmap(lambda part: loss(part, y))(parts)
            scores = jnp.where(
                infos.ok & jnp.isfinite(losses), -as_like(self.rate, losses) * losses, -jnp.inf
            )
            scores = scores.astype(evidence.dtype)
        elif jnp.ndim(weight) == 0:
            scores = jnp.where(infos.ok, scores * as_like(weight, scores), scores)
        log_evidence = log_sum(belief.log_weights + evidence)
        log_weights, _ = normalized(belief.log_weights + scores)
        ok = jnp.any(infos.ok & (belief.log_weights > -jnp.inf)) & jnp.isfinite(log_evidence)
        # A failed expert starts anew, at the same time as the others.
        fresh = replace(belief.priors, t=belief.beliefs.t)
        beliefs = jax.vmap(select)(infos.ok, learned, fresh)
        new = Bank(log_weights, beliefs, belief.priors, belief.t)
        used = ok & jnp.any(jnp.asarray(weight) != 0)
        return select(used, new, belief), Info(jnp.where(used, log_evidence, 0.0), ok, jnp.exp(log_weights))

    def draws(self, belief: Bank, key: Any, shape: tuple[int, ...]) -> Any:
        def draw(index: jax.Array, one: jax.Array) -> Any:
            learner, chosen = jax.tree.map(lambda leaf: leaf[index], (self.learners, belief.beliefs))
            return learner.draws(chosen, one, ())

        return belief.draws(key, shape, draw)
