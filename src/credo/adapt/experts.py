"""Mixtures of experts: a bank of learners, one of which is right at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

import jax
import jax.numpy as jnp

from credo.adapt.log_weights import log_sum, normalized
from credo.adapt.moments import collapse
from credo.adapt.nested import B, Mixture, at_time, floating
from credo.adapt.questions import Answer, Question, weighted
from credo.adapt.wrapper import Proposal, Proposing
from credo.core.errors import CredoError, require_interval, require_positive
from credo.core.records import record, replace, static_field
from credo.core.trees import as_like, select
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.learners import Info, Learner
from credo.learners.base import require_learner
from credo.likelihoods import Predictive

__all__ = ["Bank", "Experts", "bank"]

L = TypeVar("L")


def bank(learners: Iterable[L]) -> L:
    """One learner whose hyper-parameters have a leading axis K, from K learners of equal structure.

    Arguments:
        learners: records that differ only in their numbers, such as rates, noises and priors of the dynamics.

    Returns:
        A learner of the same kind, for `jax.vmap`.

    Raises:
        CredoError: there are no learners, or they differ in more than numbers.

    Example:
        >>> import credo
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learners = [credo.vd_ekf(model, dynamics=credo.RandomWalk(var)) for var in (0.0, 1e-3, 1e-1)]
        >>> bank(learners).dynamics.var.shape
        (3,)
    """
    members = list(learners)
    for index, member in enumerate(members):
        require_learner(f"learners[{index}]", member)
    if not members:
        raise CredoError("learners must hold at least one learner; got none.")
    first = jax.tree.structure(members[0])
    for index, member in enumerate(members):
        structure: object = jax.tree.structure(member)
        if structure != first:
            raise CredoError(
                f"learners must differ in their numbers only; learner {index} is built otherwise."
            )

    def stacked(*leaves: ArrayLike) -> Array:
        return jnp.stack([jnp.asarray(leaf, float) for leaf in leaves])

    learner: L = jax.tree.map(stacked, *members)
    return learner


@record
class Bank(Mixture[B], Generic[B]):
    """The beliefs of K experts, as one belief whose arrays have a leading axis K.

    Attributes:
        log_weights: log P(expert k is right) (K,), of probabilities that sum to one.
        beliefs: the belief of each expert.
        priors: the belief of each expert before any data.
        t: how many times `predict` has been called.

    Example:
        >>> import credo
        >>> learner = Experts([credo.BetaBernoulli(forgetting=keep) for keep in (0.9, 1.0)])
        >>> learner.init().weights.tolist()
        [0.5, 0.5]
    """

    log_weights: Array
    beliefs: B
    priors: B
    t: Array


@record
class Experts(Proposing[Bank[B]], Generic[B]):
    """K learners side by side: each predicts and learns, and the mixture trusts those that predicted well.

    Before an observation, w <- M' w, where M[j, k] is the probability that expert k takes over from j. After
    the observation, log w_k += log p(y | x, expert k), normalised. Sources: Magill 1965; Chang & Athans 1978;
    with losses Chaer et al. 1997 and Abeles et al. 2024; BONE's ME-LSSM.

    Arguments:
        learners: a list of learners that differ only in their numbers, or the bank that `bank` makes of them.
        switching: the probability that the right expert changes at a step, shared equally by the others, or
            the matrix M (K, K), whose rows sum to one. 0 is model averaging.
        mixing: whether each expert starts a step from the matched moments of the experts that may have led to
            it (the interacting multiple model of Blom & Bar-Shalom 1988); only for Gaussian and conjugate
            beliefs.
        loss: `loss(predictive, y)`, a scalar that replaces minus the log density; None for Bayes.
        learning_rate: how much a loss counts (log w -= learning_rate * loss), above 0.

    Raises:
        CredoError: there are no learners, they differ in more than numbers, or a number or a shape does not
            fit.

    Without `mixing` and `loss`, the result is exact where every expert is and nothing switches between
    beliefs. An expert whose forecast is not finite has no part in the mixture's. One that cannot learn an
    observation, with a belief that is not finite or an impossible observation, gets weight 0 for this step
    and returns to its prior; its share of the evidence counts as lost. `Info.extras` are the weights.

    Cost: K inner updates, vmapped.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = Experts([credo.vd_ekf(model, dynamics=credo.RandomWalk(q)) for q in (0.0, 1e-2)])
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> belief.weights.shape
        (2,)
    """

    learners: Sequence[Learner[B]] | Learner[B]
    switching: ArrayLike = 0.01
    mixing: bool = static_field(default=False)
    loss: Callable[[Predictive, PyTree], Array] | None = static_field(default=None)
    learning_rate: ArrayLike = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.learners, list | tuple):
            object.__setattr__(self, "learners", bank(self.learners))
        require_interval("switching", self.switching, 0.0, 1.0)
        require_positive("learning_rate", self.learning_rate)

    @property
    def bank(self) -> Learner[B]:
        """The learners as one, whose hyper-parameters have a leading axis K.

        Raises:
            CredoError: `learners` is neither a list of learners nor a bank of them.
        """
        leaves = jax.tree.leaves(self.learners)
        if isinstance(self.learners, Learner) and leaves and all(jnp.ndim(leaf) > 0 for leaf in leaves):
            return self.learners
        raise CredoError("learners must be a list of learners, or a bank of them.")

    @property
    def size(self) -> int:
        """The number K of experts."""
        return jnp.shape(jax.tree.leaves(self.bank)[0])[0]

    def init(self, params: PyTree = None, *, var: PyTree = 1.0, **others: PyTree) -> Bank[B]:
        """The first belief of each expert, and equal weights.

        Arguments:
            params, var, others: as for each expert.
        """
        size = self.size
        priors = jax.vmap(lambda learner: learner.init(params, var=var, **others))(self.bank)
        kind = floating(priors)
        return Bank(jnp.full(size, -jnp.log(float(size)), kind), priors, priors, jnp.zeros((), jnp.int32))

    def _log_transition(self, like: Array) -> Array:
        """log M (K, K)."""
        size = like.shape[0]
        switching = as_like(self.switching, like)
        if switching.ndim == 2:
            if switching.shape != (size, size):
                raise CredoError(
                    f"switching must be a number or ({size}, {size}); got shape {switching.shape}."
                )
            return jnp.log(switching)
        eye = jnp.eye(size, dtype=like.dtype)
        if size == 1:
            return jnp.log(eye)
        return jnp.log((1.0 - switching) * eye + switching * (1.0 - eye) / (size - 1))

    def advance(self, belief: Bank[B], dt: ArrayLike | None) -> Bank[B]:
        """Let another expert take over, and let time pass for each."""
        joint = belief.log_weights[:, None] + self._log_transition(belief.log_weights)
        log_weights = log_sum(joint, axis=0)
        beliefs = belief.beliefs
        if self.mixing:
            beliefs = jax.vmap(collapse, in_axes=(1, None))(joint, beliefs)
        later = jax.vmap(lambda learner, one: learner.time_update(one, dt))(self.bank, beliefs)
        return replace(belief, log_weights=log_weights, beliefs=later)

    def ask(self, belief: Bank[B], x: PyTree, question: Question) -> Answer:
        answers = jax.vmap(lambda learner, inner: question(learner, inner, x))(self.bank, belief.beliefs)
        return weighted(answers, belief.log_weights)

    def pick(self, belief: Bank[B], key: Array) -> tuple[Learner[B], B]:
        which = jax.random.categorical(key, belief.log_weights)
        chosen: tuple[Learner[B], B] = jax.tree.map(lambda leaf: leaf[which], (self.bank, belief.beliefs))
        return chosen

    def propose(
        self, belief: Bank[B], x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> Proposal[Bank[B]]:
        """Weigh the experts by how they predicted, and let each learn."""

        def one(learner: Learner[B], inner: B) -> tuple[B, Info]:
            return learner.measurement_update(inner, x, y, weight, key)

        learned, infos = jax.vmap(one)(self.bank, belief.beliefs)
        evidence = jnp.where(infos.ok, infos.log_evidence, -jnp.inf).astype(belief.log_weights.dtype)
        scores = evidence
        loss = self.loss
        if loss is not None:

            def lost(learner: Learner[B], inner: B) -> Array:
                return loss(learner.predictive(inner, x, None, None, key), y)

            losses = jax.vmap(lost)(self.bank, belief.beliefs)
            rate = as_like(self.learning_rate, losses)
            scores = jnp.where(infos.ok & jnp.isfinite(losses), -rate * losses, -jnp.inf)
            scores = scores.astype(evidence.dtype)
        elif jnp.ndim(weight) == 0:
            scores = jnp.where(infos.ok, scores * as_like(weight, scores), scores)
        log_evidence = log_sum(belief.log_weights + evidence)
        log_weights, _ = normalized(belief.log_weights + scores)
        ok = jnp.any(infos.ok & (belief.log_weights > -jnp.inf)) & jnp.isfinite(log_evidence)
        # A failed expert starts again from its prior, at the time of the others.
        fresh = at_time(belief.priors, belief.beliefs.t)
        beliefs = jax.vmap(select)(infos.ok, learned, fresh)
        new = replace(belief, log_weights=log_weights, beliefs=beliefs)
        return Proposal(new, log_evidence, ok, jnp.exp(log_weights))

    def draws(self, belief: Bank[B], key: Key, shape: tuple[int, ...]) -> PyTree:
        def draw(index: Array, one_key: Array) -> PyTree:
            learner, inner = jax.tree.map(lambda leaf: leaf[index], (self.bank, belief.beliefs))
            return learner.draws(inner, one_key, ())

        return belief.draws(key, shape, draw)
