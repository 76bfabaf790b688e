"""Proposals of particle filters that are networks, and their training.

A proposal q(z_t | z_{t-1}, y_t) is normal with a diagonal covariance. Its mean and standard deviations are a
network's answer to the parent and the observation ("mlp"), or also to a recurrent summary of all observations
so far ("gru"). It is trained to raise the filter's own estimate of the log evidence,

    E sum_t log sum_n W_n w_n,

which is a lower bound of the log evidence: AESMC (Le, Igl, Rainforth, Jin & Wood 2018), FIVO (Maddison et al.
2017), VSMC (Naesseth, Linderman, Ranganath & Blei 2018). Gradients go through the draws and the weights; the
score of the resampled ancestors, which has a large variance, is left out, as all three do. The weights
correct whatever the network says, so the filter stays consistent for any network.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from credo.beliefs import Particles
from credo.beliefs.particles import LEARN
from credo.core.errors import CredoError, require_choice, require_integer, require_positive
from credo.core.keys import as_key
from credo.core.records import record, replace, static_field
from credo.core.trees import all_finite, select
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.core.verbs import verb
from credo.dynamics import Dynamics
from credo.learners.rules.base import Rate, as_rate, rate_at
from credo.models.model import Model
from credo.models.networks import MLP
from credo.particles.base import ParticleLearner
from credo.particles.filter import ParticleFilter, particle_filter
from credo.particles.guided import Proposal
from credo.particles.kernel_bayes import simulate
from credo.particles.resampling import Resampling

if TYPE_CHECKING:
    import optax

__all__ = [
    "LearnedProposal",
    "ProposalNetwork",
    "ProposalTraining",
    "Sequences",
    "learned_filter",
    "seen_features",
    "train_proposal",
]

NetworkName: TypeAlias = Literal["mlp", "gru"]
"""The input of a proposal: the latest observation, or a memory of all."""

LIMIT = 4.0
"""The distance, in log standard deviations, that a proposal may go from the dynamics."""


@record
class ProposalNetwork:
    """A network from a parent and an observation to the mean and log sd of a proposal, both relative.

    With the distribution N(c, diag(r^2)) of the dynamics, the proposal is N(c + r m, diag(r e^l)^2), where
    (m, l) are the network's outputs. They start at 0, so an untrained proposal is the dynamics, as in the
    bootstrap filter. A linear path beside the dense layers makes the optimal proposal of a linear-Gaussian
    model easy.

    Arguments:
        kind: "mlp" sees the parent and the present observation; "gru" also a memory h_t = GRU(h_{t-1}, y_t)
            (Cho et al. 2014).
        size: the number P of parameters.
        seen: the number of features of an observation, with its inputs.
        hidden: the widths of the dense layers.
        memory: the width of h, for "gru".

    Raises:
        CredoError: a number is below 1, or there is no such kind.

    Example:
        >>> network = ProposalNetwork("mlp", 2, 3, hidden=(8,))
        >>> mean, log_sd = network(network.init(jax.random.key(0)), jnp.ones((5, 2)), jnp.ones(3), None)
        >>> mean.shape, float(jnp.abs(log_sd).max())
        ((5, 2), 0.0)
    """

    kind: NetworkName = static_field()
    size: int = static_field()
    seen: int = static_field()
    hidden: tuple[int, ...] = static_field(default=(64, 64))
    memory: int = static_field(default=32)

    def __post_init__(self) -> None:
        require_choice("network", self.kind, ["mlp", "gru"])
        require_integer("memory", self.memory, 1)
        for width in (self.size, self.seen, *self.hidden):
            require_integer("hidden", width, 1)

    @property
    def layers(self) -> MLP:
        """The dense layers."""
        return MLP(2 * self.size, self.hidden, "tanh")

    @property
    def inputs(self) -> int:
        """The number of inputs of the dense layers."""
        return self.size + self.seen + (self.memory if self.kind == "gru" else 0)

    def init(self, key: Array) -> dict[str, PyTree]:
        """Parameters, with outputs of 0."""
        first, second, third = jax.random.split(key, 3)
        layers = self.layers.init(first, (self.inputs,))
        layers[-1] = jax.tree.map(jnp.zeros_like, layers[-1])
        linear = jnp.zeros((self.inputs, 2 * self.size))
        params: dict[str, Any] = {"layers": layers, "linear": linear}
        if self.kind == "gru":
            scale = 1.0 / jnp.sqrt(float(self.memory))
            params["in"] = jax.random.normal(second, (self.seen, 3 * self.memory)) / jnp.sqrt(
                float(self.seen)
            )
            params["out"] = scale * jax.random.normal(third, (self.memory, 3 * self.memory))
            params["bias"] = jnp.zeros(3 * self.memory)
        return params

    def remember(self, params: dict[str, PyTree], memory: Array, seen: Array) -> Array:
        """The memory h (H,) after an observation with these features."""
        reset_in, update_in, new_in = jnp.split(seen @ params["in"] + params["bias"], 3)
        reset_out, update_out, new_out = jnp.split(memory @ params["out"], 3)
        reset = jax.nn.sigmoid(reset_in + reset_out)
        update = jax.nn.sigmoid(update_in + update_out)
        new: Array = (1.0 - update) * jnp.tanh(new_in + reset * new_out) + update * memory
        return new

    def __call__(
        self, params: dict[str, PyTree], parents: Array, seen: Array, memory: Array | None
    ) -> tuple[Array, Array]:
        """The relative means and log standard deviations (N, P) for parents (N, P)."""
        shared = seen if memory is None else jnp.concatenate([seen, memory])
        rows = jnp.broadcast_to(shared, (parents.shape[0], shared.shape[0]))
        inputs = jnp.concatenate([parents, rows], axis=1)
        layers = self.layers
        outputs = jax.vmap(lambda row: layers(params["layers"], row))(inputs) + inputs @ params["linear"]
        mean, log_sd = jnp.split(outputs, 2, axis=1)
        return mean, LIMIT * jnp.tanh(log_sd / LIMIT)


HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


@record
class LearnedProposal(Proposal):
    """Propose from the normal q(z_t | z_{t-1}, y_t) of a network, and weigh by p(y | z) p(z | z_{t-1}) / q.

    Make one with `learned_filter`, and train it with `train_proposal`. The dynamics must have a density.

    Attributes:
        network: the network.
        params: its parameters.
        shift, scale: what is subtracted from the features of an observation, and what divides them then.

    Cost of a step: N evaluations of the network, of the model and of the density of the dynamics.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda z, x: z, credo.Normal(0.1))
        >>> learner = learned_filter(model, credo.RandomWalk(1.0), example=(None, jnp.zeros(1)), size=1)
        >>> belief, info = learner.step(learner.init(jnp.zeros(1)), None, jnp.ones(1))
        >>> bool(info.ok)
        True
    """

    network: ProposalNetwork
    params: PyTree
    shift: Array
    scale: Array

    looks_back = True

    def begin(self, learner: ParticleLearner, belief: Particles) -> Particles:
        """The first belief, with an empty memory for "gru": one row a particle, and all rows are equal."""
        if self.network.size != belief.size:
            raise CredoError(
                f"proposal must be for the {belief.size} parameters of the belief; it is for "
                f"{self.network.size}.",
                field="proposal",
            )
        if self.network.kind == "mlp":
            return belief
        empty = jnp.zeros((belief.values.shape[0], self.network.memory), belief.values.dtype)
        return replace(belief, state=empty)

    def propose(
        self, learner: ParticleLearner, belief: Particles, x: PyTree, y: PyTree, weight: Array, key: Array
    ) -> tuple[Particles, Array, Array]:
        """Draws of the network's distribution, with the weights of importance sampling."""
        assert belief.parents is not None and belief.step is not None
        parents = belief.parents
        like = belief.values
        length = belief.step
        params = jax.tree.map(lambda leaf: leaf.astype(like.dtype), self.params)
        gap = seen_features(x, y, like) - self.shift.astype(like.dtype)
        seen = gap / self.scale.astype(like.dtype)
        memory = None
        if self.network.kind == "gru":
            memory = self.network.remember(params, belief.state[0], seen)
            belief = replace(belief, state=jnp.broadcast_to(memory, belief.state.shape))
        moved = length > 0
        centre, sd = jax.vmap(lambda parent: distribution_of(learner, belief, parent))(parents)
        mean, log_sd = self.network(params, parents, seen, memory)
        noise = jax.random.normal(key, like.shape, like.dtype)
        values = jnp.where(moved, centre + sd * (mean + jnp.exp(log_sd) * noise), like)
        log_proposal = jnp.sum(
            -0.5 * noise**2 - log_sd - jnp.log(jnp.where(sd > 0, sd, 1.0)) - HALF_LOG_TWO_PI, axis=1
        )
        before = jnp.maximum(belief.t - 1, 0)
        dt = None if learner.dynamics.timeless else length

        def density(later: Array, parent: Array) -> Array:
            return learner.dynamics.log_transition(later, parent, belief.anchor, before, dt, belief.unravel)

        log_move = jax.vmap(density)(values, parents)
        ratio = belief.log_weights + jnp.where(moved, log_move - log_proposal, 0.0)
        whole = (weight > 0).astype(like.dtype)
        log_joint = ratio + learner.log_likelihood(values, belief.unravel, x, y, weight)
        full = ratio + learner.log_likelihood(values, belief.unravel, x, y, whole)
        return replace(belief, values=values), log_joint, jnp.asarray(jax.nn.logsumexp(full))


def distribution_of(learner: ParticleLearner, belief: Particles, parent: Array) -> tuple[Array, Array]:
    """The mean and standard deviations (P,) that the dynamics give a parent's child.

    If they are not known, because a `Transition` is a function of a key, the parent and 1 stand for them.
    """
    dynamics = learner.dynamics
    if not dynamics.gaussian:
        return parent, jnp.ones_like(parent)
    before = jnp.maximum(belief.t - 1, 0)
    dt = None if dynamics.timeless else belief.step
    mean, cov = dynamics.conditional(parent, belief.anchor, before, dt, belief.unravel)
    return mean, jnp.sqrt(cov.diag())


def seen_features(x: PyTree, y: PyTree, like: Array) -> Array:
    """An observation and its inputs as one vector, without NaN."""
    leaves = [jnp.asarray(leaf).astype(like.dtype).reshape(-1) for leaf in jax.tree.leaves((x, y))]
    features = jnp.concatenate(leaves)
    return jnp.where(jnp.isfinite(features), features, 0.0)


def learned_filter(  # noqa: PLR0913 - settings, each by its name
    model: Model,
    dynamics: Dynamics,
    *,
    example: tuple[PyTree, PyTree],
    size: int,
    particles: int = 256,
    network: NetworkName = "mlp",
    hidden: tuple[int, ...] = (64, 64),
    memory: int = 32,
    resampling: Resampling = "systematic",
    threshold: ArrayLike = 0.5,
    key: Key = 0,
) -> ParticleFilter:
    """A particle filter with a network as its proposal, which starts as the bootstrap filter.

    Arguments:
        model: a `Model`, of which only `log_prob` is needed; with `sample`, training can simulate its data.
        dynamics: how a particle moves between observations; its density must be known.
        example: one row (x, y), of which only the shapes count.
        size: the number P of parameters.
        particles: the number N, at least 2.
        network: "mlp" or "gru"; see `ProposalNetwork`.
        hidden, memory: the widths of the network.
        resampling, threshold: as for `ParticleFilter`.
        key: the key of the network's first parameters.

    Returns:
        The learner. Train it with `train_proposal`.

    Raises:
        CredoError: a setting is not allowed.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> model = credo.Model(lambda z, x: z[:1], credo.Normal(0.1))
        >>> learner = learned_filter(model, credo.RandomWalk(1.0), example=(None, jnp.zeros(1)), size=2)
        >>> learner.proposal.network.seen
        1
    """
    seen = seen_features(*example, jnp.zeros(1)).shape[0]
    net = ProposalNetwork(network, size, seen, hidden, memory)
    proposal = LearnedProposal(net, net.init(as_key(key)), jnp.zeros(seen), jnp.ones(seen))
    return particle_filter(
        model, particles, dynamics, proposal=proposal, resampling=resampling, threshold=threshold
    )


Sequences: TypeAlias = "Callable[[Array], tuple[PyTree, PyTree]] | tuple[PyTree, PyTree]"
"""The data to train on: a function of a key to one sequence (xs, ys), or sequences with a leading axis."""


def _adam() -> optax.GradientTransformation:
    """Adam, from optax, which only those wait for who train a proposal."""
    import optax

    return optax.scale_by_adam()


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
        optimizer = _adam().init(params)
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
        direction, optimizer = _adam().update(slope, state.optimizer)
    rate = rate_at(plan.learning_rate, state.step + 1, loss.dtype)
    params = jax.tree.map(lambda value, move: value - rate * move, proposal.params, direction)
    new = (replace(proposal, params=params), optimizer)
    proposal, optimizer = select(finite, new, (proposal, state.optimizer))
    learner = replace(state.learner, proposal=proposal)
    advanced = replace(state, learner=learner, optimizer=optimizer, step=state.step + 1)
    return replace(advanced, losses=jnp.zeros(0, loss.dtype)), jnp.where(finite, loss, jnp.nan)
