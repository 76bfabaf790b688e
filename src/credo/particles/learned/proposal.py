"""A network as the proposal of a particle filter: dense layers, a linear path beside them, a gated memory."""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp

from credo.beliefs import Particles
from credo.core.errors import CredoError, require_choice, require_integer
from credo.core.keys import as_key
from credo.core.records import record, replace, static_field
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.dynamics import Dynamics
from credo.models.model import Model
from credo.models.networks import MLP
from credo.particles.base import ParticleLearner
from credo.particles.filter import ParticleFilter, particle_filter
from credo.particles.guided import Proposal
from credo.particles.resampling import Resampling

__all__ = ["LearnedProposal", "ProposalNetwork", "learned_filter", "seen_features"]

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
        centre, sd = jax.vmap(lambda parent: law_of(learner, belief, parent))(parents)
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


def law_of(learner: ParticleLearner, belief: Particles, parent: Array) -> tuple[Array, Array]:
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
