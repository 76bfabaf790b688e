"""Training of a learned proposal on the filter's own estimate of the log evidence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import optax

from credo.beliefs import Particles
from credo.beliefs.particles import LEARN
from credo.core.errors import CredoError, require_integer, require_positive
from credo.core.keys import as_key
from credo.core.records import record, replace, static_field
from credo.core.trees import all_finite, select
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.core.verbs import verb
from credo.learners.rules.base import Rate, as_rate, rate_at
from credo.particles.filter import ParticleFilter
from credo.particles.kernel_bayes import simulate
from credo.particles.learned.proposal import LearnedProposal, seen_features

__all__ = ["ProposalTraining", "Sequences", "train_proposal"]

Sequences: TypeAlias = "Callable[[Array], tuple[PyTree, PyTree]] | tuple[PyTree, PyTree]"
"""The data to train on: a function of a key to one sequence (xs, ys), or sequences with a leading axis."""

_ADAM = optax.scale_by_adam()


@record
class ProposalTraining:
    """A trained proposal, with all that its training needs to go on.

    Attributes:
        learner: the particle filter with the proposal as it is now.
        optimizer: the state of Adam.
        step: how many steps were taken.
        key: the key data of the training; step i folds in i.
        losses: the negative log evidence estimates per observation, one a step (steps,).

    Example:
        >>> import credo
        >>> credo.particles.ProposalTraining.__name__
        'ProposalTraining'
    """

    learner: ParticleFilter
    optimizer: PyTree
    step: Array
    key: Array
    losses: Array


@record
class _Plan:
    """The part of training that stays the same from step to step."""

    prior: Particles
    data: tuple[PyTree, PyTree] | None
    function: Callable[[Array], tuple[PyTree, PyTree]] | None = static_field()
    learning_rate: Any
    clip: ArrayLike
    length: int = static_field()
    batch: int = static_field()


def train_proposal(  # noqa: PLR0913 - settings, each by its name
    learner: ParticleFilter,
    prior: Particles,
    *,
    sequences: Sequences | None = None,
    steps: int = 1000,
    length: int = 25,
    batch: int = 4,
    learning_rate: Rate = 1e-3,
    clip: ArrayLike = 10.0,
    key: Key = 0,
    resume: ProposalTraining | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> ProposalTraining:
    """Train the proposal of a particle filter to raise its estimate of the log evidence (AESMC, FIVO).

    A step filters a batch of sequences from fresh particles of the prior, resampling at every observation,
    and follows the gradient of sum_t log sum_n W_n w_n by Adam. Few particles give the clearer gradient:
    train with 8, say, in larger batches, and filter with more by `credo.replace(learner, particles=256)`. See
    `credo.particles.learned`.

    Arguments:
        learner: a particle filter with a `LearnedProposal`, from `learned_filter`.
        prior: its belief before any data, from `learner.init`; its `source` starts every sequence.
        sequences: a function of a key that gives one sequence (xs, ys), or sequences as arrays with two
            leading axes, of which a batch is drawn in every step. None simulates them from the prior, the
            dynamics and the likelihood, with x = None.
        steps: how many steps the training has when it ends, those of `resume` included.
        length: the length of simulated sequences.
        batch: how many sequences a step sees.
        learning_rate: of Adam, above 0, or a function of the number of the step.
        clip: the largest norm of a gradient; a longer one is shortened.
        key: the key of data and draws; step i folds in i.
        resume: an earlier training of this learner, which goes on where it was, to the same bits as one
            training without a break. `learner` and `key` are then its own.
        progress: called after every step with its number and its loss.

    Returns:
        The training, whose `learner` filters with the trained proposal. A step with a gradient that is not
        finite changes nothing but its number; its loss is NaN.

    Raises:
        CredoError: the learner has no learned proposal, or a number is out of range.

    Cost of a step: about three times that of filtering `batch` sequences.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda z, x: z, credo.Normal(0.01))
        >>> walk = credo.Decay(0.9, 1.0)
        >>> learner = credo.particles.learned_filter(
        ...     model, walk, example=(None, jnp.zeros(1)), size=1, particles=8, hidden=(4,)
        ... )
        >>> training = train_proposal(
        ...     learner, learner.init(jnp.zeros(1)), steps=30, length=5, learning_rate=0.03
        ... )
        >>> bool(training.losses[-5:].mean() < training.losses[:5].mean())
        True
    """
    if not isinstance(learner.proposal, LearnedProposal):
        raise CredoError(
            f"learner must have a LearnedProposal, as credo.particles.learned_filter makes it; got "
            f"{learner.proposal!r}.",
            field="learner",
        )
    for field, number in (("steps", steps), ("length", length), ("batch", batch)):
        require_integer(field, number, 1)
    require_positive("clip", clip)
    data = sequences if isinstance(sequences, tuple) else None
    plan = _Plan(
        prior,
        None if data is None else jax.tree.map(jnp.asarray, data),
        sequences if callable(sequences) else None,
        as_rate("learning_rate", learning_rate),
        clip,
        length,
        batch,
    )
    state = _begin(learner, plan, as_key(key)) if resume is None else resume
    losses = list(np.asarray(state.losses))
    for number in range(int(state.step), steps):
        state, loss = _step(state, plan)
        losses.append(float(loss))
        if progress is not None:
            progress(number, float(loss))
    return replace(state, losses=jnp.asarray(np.array(losses), prior.values.dtype))


def _begin(learner: ParticleFilter, plan: _Plan, key: Array) -> ProposalTraining:
    """The training before its first step, with features scaled by the first sequences."""
    first, second = jax.random.split(key)
    like = plan.prior.values
    xs, ys = jax.vmap(lambda one: _sequence(learner, plan, one))(jax.random.split(first, max(16, plan.batch)))
    rows = jax.vmap(jax.vmap(lambda x, y: seen_features(x, y, like)))(xs, ys)
    rows = rows.reshape(-1, rows.shape[-1])
    spread = jnp.std(rows, axis=0)
    proposal = learner.proposal
    assert isinstance(proposal, LearnedProposal)
    if rows.shape[1] != proposal.network.seen:
        raise CredoError(
            f"sequences must have rows of {proposal.network.seen} features, as the example of the learner; "
            f"got {rows.shape[1]}.",
            field="sequences",
        )
    params = jax.tree.map(lambda leaf: leaf.astype(like.dtype), proposal.params)
    proposal = replace(
        proposal, params=params, shift=jnp.mean(rows, axis=0), scale=jnp.where(spread > 0, spread, 1.0)
    )
    with jax.numpy_dtype_promotion("standard"):  # optax mixes Python numbers with its step count
        optimizer = _ADAM.init(params)
    empty = jnp.zeros(0, like.dtype)
    count = jnp.zeros((), jnp.int32)
    return ProposalTraining(
        replace(learner, proposal=proposal), optimizer, count, jax.random.key_data(second), empty
    )


def _sequence(learner: ParticleFilter, plan: _Plan, key: Array) -> tuple[PyTree, PyTree]:
    """One sequence (xs, ys)."""
    if plan.function is not None:
        return plan.function(key)
    if plan.data is not None:
        count = jnp.shape(jax.tree.leaves(plan.data)[0])[0]
        which = jax.random.randint(key, (), 0, count)
        chosen: tuple[PyTree, PyTree] = jax.tree.map(lambda leaf: leaf[which], plan.data)
        return chosen
    prior = plan.prior
    dynamics = learner.dynamics
    one = jnp.zeros(1, plan.prior.values.dtype)
    assert prior.source is not None
    first, second = jax.random.split(key)

    def advance(values: Array, t: Array) -> tuple[Array, PyTree]:
        left, right = jax.random.split(jax.random.fold_in(second, t))
        moved = dynamics.propagate(values, one, left, prior.anchor, t, None, prior.unravel)
        ys = simulate(learner.model, moved, prior.unravel, None, right)
        return moved, jax.tree.map(lambda leaf: leaf[0], ys)

    start = prior.source.draw(first, 1).astype(one.dtype)
    return None, jax.lax.scan(advance, start, jnp.arange(plan.length))[1]


def _loss(proposal: LearnedProposal, learner: ParticleFilter, plan: _Plan, key: Array) -> Array:
    """The mean negative log evidence per observation, over a batch of sequences."""
    filtering = replace(learner, proposal=proposal, threshold=1.0)
    source = plan.prior.source
    assert source is not None

    def one(own: Array) -> Array:
        first, second, third = jax.random.split(own, 3)
        xs, ys = _sequence(learner, plan, first)
        values = source.draw(second, plan.prior.values.shape[0]).astype(plan.prior.values.dtype)
        start = replace(plan.prior.equal(values), parents=values, key=jax.random.key_data(third))

        def body(belief: Particles, row: tuple[PyTree, PyTree]) -> tuple[Particles, Array]:
            predicted = filtering.time_update(belief, None)
            weight = jnp.ones((), values.dtype)
            return filtering.assimilate(predicted, *row, weight, predicted.step_key(LEARN))

        return -jnp.mean(jax.lax.scan(body, start, (xs, ys))[1])

    return jnp.mean(jax.vmap(one)(jax.random.split(key, plan.batch)))


@verb
def _step(state: ProposalTraining, plan: _Plan) -> tuple[ProposalTraining, Array]:
    """One step of Adam on a clipped gradient."""
    proposal = state.learner.proposal
    assert isinstance(proposal, LearnedProposal)
    key = jax.random.fold_in(as_key(state.key), state.step)

    def loss_of(params: PyTree) -> Array:
        trial = replace(proposal, params=params)
        assert isinstance(trial, LearnedProposal)
        return _loss(trial, state.learner, plan, key)

    loss: Array
    loss, slope = jax.value_and_grad(loss_of)(proposal.params)
    norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(slope)))
    share = jnp.minimum(1.0, jnp.asarray(plan.clip).astype(loss.dtype) / norm)
    finite = all_finite(slope) & jnp.isfinite(loss)
    slope = jax.tree.map(lambda leaf: jnp.where(finite, leaf * share, 0.0), slope)
    with jax.numpy_dtype_promotion("standard"):  # optax mixes Python numbers with its step count
        direction, optimizer = _ADAM.update(slope, state.optimizer)
    rate = rate_at(plan.learning_rate, state.step + 1, loss.dtype)
    params = jax.tree.map(lambda value, move: value - rate * move, proposal.params, direction)
    new = (replace(proposal, params=params), optimizer)
    proposal, optimizer = select(finite, new, (proposal, state.optimizer))
    learner = replace(state.learner, proposal=proposal)
    advanced = replace(state, learner=learner, optimizer=optimizer, step=state.step + 1)
    return replace(advanced, losses=jnp.zeros(0, loss.dtype)), jnp.where(finite, loss, jnp.nan)
