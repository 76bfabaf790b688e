"""Mixtures of experts: learners side by side, one of which is right at a time.

How the right one changes is said by one rate, a matrix, or several rates that are weighed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple

import jax
import jax.numpy as jnp

from credo.adapt.banks import banks, first_beliefs
from credo.adapt.loss_rates import LossRate, LossSums
from credo.adapt.moments import collapse, log_sum, normalized
from credo.adapt.nested import B, Mixture, floating, renewed
from credo.adapt.questions import Answer, ChosenFunction, Question, weighted
from credo.adapt.wrapper import Proposal, Proposing
from credo.core.errors import CredoError, require_interval, require_positive
from credo.core.fields import field
from credo.core.groups import Groups, choose, each, in_order
from credo.core.keys import as_key
from credo.core.records import record, replace, static_field
from credo.core.trees import as_like, select
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.learners import Learner
from credo.likelihoods import Predictive

__all__ = ["Bank", "Experts"]


def log_transition(switching: ArrayLike, like: Array) -> Array:
    """log M (K, K), M[j, k] that k takes over from j; one probability is shared equally by the others."""
    size = like.shape[-1]
    rate = as_like(switching, like)
    if rate.ndim == 2:
        if rate.shape != (size, size):
            raise CredoError(f"switching must be a number or ({size}, {size}); got shape {rate.shape}.")
        return jnp.log(rate)
    eye = jnp.eye(size, dtype=like.dtype)
    if size == 1:
        return jnp.log(eye)
    return jnp.log((1.0 - rate) * eye + rate * (1.0 - eye) / (size - 1))


def share(rates: Array, log_joint: Array) -> Array:
    """The joint log weights (R, K) of R rates and K learners after one step of each rate's fixed share.

    w_rk <- (1 - s_r) w_rk + s_r (sum_j w_rj - w_rk) / (K - 1), of which every rate keeps its sum. A rate of 0
    leaves its own bit by bit.
    """
    size = log_joint.shape[1]
    if size == 1:
        return log_joint
    enter = rates[:, None] / (size - 1)
    top = jnp.max(log_joint, axis=1, keepdims=True)
    top = jnp.where(top > -jnp.inf, top, 0.0)
    weights = jnp.exp(log_joint - top)
    moved = (1.0 - size * enter) * weights + enter * jnp.sum(weights, axis=1, keepdims=True)
    return jnp.where(enter > 0, top + jnp.log(jnp.maximum(moved, 0.0)), log_joint)


def _partly_missing(y: PyTree) -> Array:
    """Whether some numbers of an observation are NaN and others are not.

    A loss may know no such observation: then the learners learn from it, and their weights stay.
    """
    floats = [
        leaf for leaf in map(jnp.asarray, jax.tree.leaves(y)) if jnp.issubdtype(leaf.dtype, jnp.floating)
    ]
    if not floats:
        return jnp.asarray(False)
    missing = jnp.concatenate([jnp.isnan(leaf).reshape(-1) for leaf in floats])
    return jnp.any(missing) & ~jnp.all(missing)


@record
class Bank(Mixture[B], Generic[B]):
    """The beliefs of K experts, as one belief whose arrays have a leading axis K.

    Attributes:
        log_weights: log P(expert k is right) (K,), of probabilities that sum to one.
        beliefs: the belief of each expert; `Groups` of them where experts are built in several ways.
        priors: the belief of each expert before any data.
        t: how many times `predict` has been called.
        log_joint: log P(rate r and expert k are right) (R, K), where several rates of switching are weighed;
            otherwise None.
        losses: how large losses have been, where `LossRate` follows them; otherwise None.

    Example:
        >>> import credo
        >>> learner = Experts([credo.BetaBernoulli(forgetting=keep) for keep in (0.9, 1.0)])
        >>> learner.init().weights.tolist()
        [0.5, 0.5]
    """

    log_weights: Array = field("log weights", weighs="beliefs")
    beliefs: B
    priors: B
    t: Array
    log_joint: Array | None = field("log probabilities", default=None)
    losses: LossSums | None = None

    @property
    def rate_weights(self) -> Array:
        """The probabilities of the rates of switching (R,), where several are weighed; otherwise 1."""
        if self.log_joint is None:
            return jnp.ones(1, self.log_weights.dtype)
        return jnp.sum(jnp.exp(self.log_joint), axis=-1)


def _mean_loss(log_weights: Array, losses: Array) -> Array:
    """The mean of finite losses by the weights of their experts; not finite where none has weight."""
    weights = jnp.where(losses < jnp.inf, jnp.exp(log_weights), 0.0)
    return jnp.sum(weights * jnp.where(losses < jnp.inf, losses, 0.0)) / jnp.sum(weights)


class _Learned(NamedTuple, Generic[B]):
    """The result of an observation for one expert."""

    belief: B
    log_evidence: Array
    ok: Array


@record
class Experts(Proposing[Bank[B]], Generic[B]):
    """K learners side by side: each predicts and learns, and the mixture trusts those that predicted well.

    Before an observation, w <- M' w, where M[j, k] is the probability that expert k takes over from j. After
    the observation, log w_k += log p(y | x, expert k), normalised. Sources: Magill 1965; Chang & Athans 1978;
    with losses Chaer et al. 1997 and Abeles et al. 2024; BONE's ME-LSSM.

    Arguments:
        learners: a list of learners that forecast the same kind of y. They may differ in anything: family,
            model, likelihood, wrapper. Those that differ only in their numbers are computed at once, and one
            kind after another, in one program. The bank that `bank` makes is taken, too.
        switching: the probability that the right expert changes at a step, shared equally by the others, or
            the matrix M (K, K), whose rows sum to one. 0 is model averaging. Of several probabilities (R,)
            the right one is learned, too: rates and experts have joint weights, each rate with its own
            changes, and a mixture over rates forecasts.
        mixing: whether each expert starts a step from the matched moments of the experts that may have led to
            it (the interacting multiple model of Blom & Bar-Shalom 1988); only for Gaussian and conjugate
            beliefs, of learners that differ only in their numbers.
        loss: `loss(predictive, y)`, a scalar that replaces minus the log density; None for Bayes.
        learning_rate: how much a loss counts (log w -= learning_rate * loss), above 0; or a `LossRate`, which
            counts losses in units of their running mean.

    Raises:
        CredoError: there are no learners, they differ in more than numbers where beliefs are mixed, or a
            number or a shape does not fit.

    Without `mixing` and `loss`, the result is exact where every expert is and nothing switches between
    beliefs. An expert whose forecast is not finite has no part in the mixture's. One that cannot learn an
    observation, with a belief that is not finite or an impossible observation, gets weight 0 for this step
    and returns to its prior; its share of the evidence counts as lost. `Info.extras` are the weights.

    Cost: K inner updates, vmapped over those that differ only in their numbers. A draw costs one a kind.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = Experts([credo.vd_ekf(model, dynamics=credo.RandomWalk(q)) for q in (0.0, 1e-2)])
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> belief.weights.shape
        (2,)

        A full and a diagonal covariance, and the first of them with changes:

        >>> full, diagonal = credo.extended_kalman(model), credo.vd_ekf(model)
        >>> learner = Experts([full, diagonal, credo.RunLength(full, 0.01, 2)], switching=0.0)
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> info.extras.shape, [type(part).__name__ for part in belief.beliefs.parts]
        ((3,), ['Gaussian', 'Gaussian', 'Hypotheses'])
    """

    learners: Sequence[Learner[B]] | Learner[B] | Groups[Learner[B]]
    switching: ArrayLike | Sequence[float] = 0.01
    mixing: bool = static_field(default=False)
    loss: Callable[[Predictive, PyTree], Array] | None = static_field(default=None)
    learning_rate: ArrayLike | LossRate = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.learners, list | tuple):
            object.__setattr__(self, "learners", banks(self.learners))
        if self.mixing and isinstance(self.learners, Groups):
            odd = self.learners.places[1][0]
            raise CredoError(
                f"mixing needs learners of the same structure; learner {odd} has another one.",
                field="mixing",
            )
        require_interval("switching", self.switching, 0.0, 1.0)
        if isinstance(self.switching, list | tuple):
            rates = self.switching[0] if len(self.switching) == 1 else jnp.asarray(self.switching, float)
            if jnp.size(rates) == 0:
                raise CredoError("switching must hold at least one rate; got none.", field="switching")
            object.__setattr__(self, "switching", rates)
        if not isinstance(self.learning_rate, LossRate):
            require_positive("learning_rate", self.learning_rate)
        elif self.loss is None:
            raise CredoError("a LossRate as learning_rate needs a loss; loss is None.", field="learning_rate")

    @property
    def bank(self) -> Any:
        """The learners as one, whose hyper-parameters have a leading axis K; or `Groups` of such.

        Raises:
            CredoError: `learners` is neither a list of learners nor a bank of them.
        """
        leaves = jax.tree.leaves(self.learners)
        if isinstance(self.learners, Groups):
            return self.learners
        if isinstance(self.learners, Learner) and leaves and all(jnp.ndim(leaf) > 0 for leaf in leaves):
            return self.learners
        raise CredoError("learners must be a list of learners, or a bank of them.")

    @property
    def size(self) -> int:
        """The number K of experts."""
        learners = self.bank
        if isinstance(learners, Groups):
            return learners.size
        return jnp.shape(jax.tree.leaves(learners)[0])[0]

    @property
    def takes_missing(self) -> bool:
        learners = self.bank
        kinds = learners.parts if isinstance(learners, Groups) else (learners,)
        return any(kind.takes_missing for kind in kinds)

    def init(self, params: PyTree = None, *, var: PyTree = 1.0, **others: PyTree) -> Bank[B]:
        """The first belief of each expert, and equal weights.

        Arguments:
            params, var, others: as for each expert: one value for all of them, or an `Each` with one value
                an expert, as where their parameters have other shapes.

        Raises:
            CredoError: an `Each` has another number of values than there are experts.
        """
        size = self.size
        priors: B = first_beliefs(self.bank, size, params, var, others)
        kind = floating(priors)
        log_weights = jnp.full(size, -jnp.log(float(size)), kind)
        joint = None
        rates = jnp.asarray(self.switching)
        if rates.ndim == 1:
            count = rates.shape[0]
            joint = jnp.broadcast_to(log_weights - jnp.log(float(count)).astype(kind), (count, size))
        rate = self.learning_rate
        losses = rate.begin(kind) if isinstance(rate, LossRate) else None
        return Bank(log_weights, priors, priors, jnp.zeros((), jnp.int32), joint, losses)

    def advance(self, belief: Bank[B], dt: ArrayLike | None) -> Bank[B]:
        """Advance each expert by a step of time, in which another one may take over."""
        log_joint = belief.log_joint
        logs = belief.log_weights
        switching = jnp.asarray(self.switching).astype(logs.dtype)
        pairs = logs[:, None]  # the joint weights of members before and after, where beliefs are mixed
        if log_joint is None:
            pairs = logs[:, None] + log_transition(switching, logs)
            log_weights = log_sum(pairs, axis=0)
        else:
            if self.mixing:
                each_rate = jax.vmap(lambda rate: log_transition(rate, logs))(switching)
                pairs = log_sum(log_joint[:, :, None] + each_rate, axis=0)
            log_joint = share(switching, log_joint)
            log_weights = log_sum(log_joint, axis=0)
        beliefs = belief.beliefs
        if self.mixing:
            beliefs = jax.vmap(collapse, in_axes=(1, None))(pairs, beliefs)
        later = each(lambda learner, one: learner.time_update(one, dt), self.bank, beliefs)
        return replace(belief, log_weights=log_weights, beliefs=later, log_joint=log_joint)

    def ask(self, belief: Bank[B], x: PyTree, question: Question) -> Answer:
        answers = each(lambda learner, inner: question(learner, inner, x), self.bank, belief.beliefs)
        return weighted(answers, belief.log_weights)

    def pick(self, belief: Bank[B], key: Array) -> tuple[Learner[B], B]:
        """Draw one of the experts by their weights.

        Raises:
            CredoError: experts are built in several ways, so that one drawn at random has no type.
        """
        learners = self.bank
        if isinstance(learners, Groups):
            raise CredoError(
                "an expert cannot be drawn in a compiled program if the experts have different structures."
            )
        which = jax.random.categorical(key, belief.log_weights)
        chosen: tuple[Learner[B], B] = jax.tree.map(lambda leaf: leaf[which], (learners, belief.beliefs))
        return chosen

    def function_draw(self, belief: Bank[B], key: Key) -> Callable[[PyTree], Array]:
        """A function of one expert, drawn by their weights."""
        if not isinstance(self.bank, Groups):
            return super().function_draw(belief, key)
        first, second = jax.random.split(as_key(key))
        which = jax.random.categorical(first, belief.log_weights)
        pairs: Any = each(lambda learner, inner: (learner, inner), self.bank, belief.beliefs)
        return ChosenFunction.draw(pairs, which, lambda pair: pair[0].function_draw(pair[1], second))

    def propose(
        self, belief: Bank[B], x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> Proposal[Bank[B]]:
        """Weigh the experts by how they predicted, and let each learn."""

        def one(learner: Learner[B], inner: B) -> _Learned[B]:
            learned, info = learner.measurement_update(inner, x, y, weight, key)
            return _Learned(learned, info.log_evidence, info.ok)

        results = each(one, self.bank, belief.beliefs)
        good = in_order(each(lambda result: result.ok, results))
        evidence: Array = in_order(each(lambda result: result.log_evidence, results))
        evidence = jnp.where(good, evidence, -jnp.inf).astype(belief.log_weights.dtype)
        scores = evidence
        sums = belief.losses
        told = jnp.asarray(True)
        if self.loss is not None:
            losses = self._losses(belief, x, y, key)
            told = jnp.any(good & jnp.isfinite(losses))  # else the row weighs nobody
            losses = jnp.where(good & jnp.isfinite(losses), losses, jnp.inf)
            counts = as_like(weight, losses) if jnp.ndim(weight) == 0 else jnp.ones((), losses.dtype)
            rate = self.learning_rate
            if isinstance(rate, LossRate):
                assert sums is not None
                eta = rate.at(sums)
                sums = rate.after(sums, _mean_loss(belief.log_weights, losses), counts)
            else:
                eta = as_like(rate, losses)
            scores = jnp.where(losses < jnp.inf, -eta * counts * losses, -jnp.inf)
            scores = jnp.where(told, scores, 0.0).astype(evidence.dtype)
        elif jnp.ndim(weight) == 0:
            scores = jnp.where(good, scores * as_like(weight, scores), scores)
        log_evidence = log_sum(belief.log_weights + evidence)
        joint = belief.log_joint
        if joint is None:
            log_weights, _ = normalized(belief.log_weights + scores)
        else:
            joint, _ = normalized(joint + scores[None, :])
            log_weights = log_sum(joint, axis=0)
        ok = jnp.any(good & (belief.log_weights > -jnp.inf)) & jnp.isfinite(log_evidence)
        ok = ok & (told | _partly_missing(y))

        # A failed expert starts again from its prior, at the time of the others.
        def keep(result: _Learned[B], before: B, prior: B) -> B:
            return select(result.ok, result.belief, renewed(prior, before.t))

        beliefs = each(keep, results, belief.beliefs, belief.priors)
        new = replace(belief, log_weights=log_weights, beliefs=beliefs, log_joint=joint, losses=sums)
        return Proposal(new, log_evidence, ok, jnp.exp(log_weights))

    def _losses(self, belief: Bank[B], x: PyTree, y: PyTree, key: Key | None) -> Array:
        """The loss of each expert's forecast."""
        loss = self.loss
        assert loss is not None

        def lost(learner: Learner[B], inner: B) -> Array:
            return loss(learner.predictive(inner, x, None, None, key), y)

        losses: Array = in_order(each(lost, self.bank, belief.beliefs))
        return losses

    def draws(self, belief: Bank[B], key: Key, shape: tuple[int, ...]) -> PyTree:
        def draw(index: Array, one_key: Array) -> PyTree:
            pairs = each(lambda learner, inner: (learner, inner), self.bank, belief.beliefs)
            return choose(pairs, index, lambda pair, key: pair[0].draws(pair[1], key, ()), one_key)

        return belief.draws(key, shape, draw)
