"""Baselines for bandits, each a learner, a design and a policy that exist apart."""

from __future__ import annotations

from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt import Each
from credo.bandits.agent import Agent, ScaleName
from credo.bandits.policies import EpsilonGreedy, Policy, Thompson
from credo.beliefs import Point
from credo.core.errors import CredoError, require_choice, require_integer
from credo.core.keys import as_key
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.learners import GradientLearner, adam, replay, subspace_ekf
from credo.likelihoods import Normal
from credo.models import MLP, Model, Picked, random_basis, svd_basis
from credo_papers.baselines.bootstrap import Bootstrap, ResamplingName
from credo_papers.baselines.dropout import Dropout, DropoutNetwork
from credo_papers.baselines.neural_linear import NeuralLinear
from credo_papers.baselines.recipe import Recipe

__all__ = [
    "bootstrap_agent",
    "dropout_agent",
    "gradient_agent",
    "neural_linear_agent",
    "subspace_agent",
]

BasisName: TypeAlias = Literal["random", "svd"]
"""The source of the directions of a subspace."""

NOISE_VAR = 0.1
"""The noise of rewards of the order of 1, as in the default agent."""


def gradient_agent(
    arms: int,
    inputs: int,
    *,
    memory: int = 1,
    learning_rate: ArrayLike = 3e-3,
    hidden: tuple[int, ...] = (50,),
    policy: Policy | None = None,
    scale: bool = True,
) -> Recipe:
    """Epsilon-greedy on a network with an output for each arm: online Adam, or replay from a memory.

    Arguments:
        arms, inputs: the numbers of arms and inputs.
        memory: how many of the latest rewards each gradient averages over; 1 is online.
        learning_rate: of Adam.
        hidden: the widths of the hidden layers.
        policy: the policy; None for `EpsilonGreedy(0.05)`.
        scale: whether contexts are standardised as they come.

    Returns:
        The agent and how it starts.

    Raises:
        CredoError: a number is out of range.

    Example:
        >>> gradient_agent(arms=3, inputs=4, memory=10).agent.learner.capacity
        10
    """
    net = MLP(arms, hidden)
    learner = _trained(Model(net, Normal(NOISE_VAR)), memory, learning_rate)
    agent = Agent(learner, arms, "outputs", EpsilonGreedy(0.05) if policy is None else policy, _scaled(scale))
    return Recipe(agent, inputs, lambda key: net.init(key, (inputs,)), options=_example(memory, inputs))


def bootstrap_agent(  # noqa: PLR0913 - settings, each by its name
    arms: int,
    inputs: int,
    *,
    members: int = 10,
    resampling: ResamplingName = "double",
    memory: int = 1,
    learning_rate: ArrayLike = 3e-3,
    hidden: tuple[int, ...] = (50,),
    policy: Policy | None = None,
    scale: bool = True,
) -> Recipe:
    """An ensemble of networks on bootstrapped rewards, of which one is asked at random (`Bootstrap`).

    Arguments:
        arms, inputs: the numbers of arms and inputs.
        members: how many networks, each with starting weights of its own.
        resampling: "double" or "poisson".
        memory, learning_rate, hidden, scale: as for `gradient_agent`.
        policy: the policy; None for Thompson sampling, which is asking one member at random.

    Returns:
        The agent and how it starts.

    Raises:
        CredoError: a number is out of range.

    Example:
        >>> bootstrap_agent(arms=3, inputs=4, members=5).init(0).belief.beliefs.mean.shape[0]
        5
    """
    net = MLP(arms, hidden)
    learner = Bootstrap(_trained(Model(net, Normal(NOISE_VAR)), memory, learning_rate), members, resampling)

    def params(key: Array) -> PyTree:
        return Each([net.init(own, (inputs,)) for own in jax.random.split(key, members)])

    agent = Agent(learner, arms, "outputs", Thompson() if policy is None else policy, _scaled(scale))
    return Recipe(agent, inputs, params, options=_example(memory, inputs))


def dropout_agent(  # noqa: PLR0913 - settings, each by its name
    arms: int,
    inputs: int,
    *,
    rate: ArrayLike = 0.1,
    masks: int = 16,
    memory: int = 1,
    learning_rate: ArrayLike = 3e-3,
    hidden: tuple[int, ...] = (50,),
    policy: Policy | None = None,
    scale: bool = True,
) -> Recipe:
    """A network that is trained with dropout, of which a thinned one is asked at random (`Dropout`).

    Arguments:
        arms, inputs: the numbers of arms and inputs.
        rate: the probability of leaving out a hidden unit.
        masks: how many thinned networks stand for the belief.
        memory, learning_rate, hidden, scale: as for `gradient_agent`.
        policy: the policy; None for Thompson sampling, which is asking one thinned network at random.

    Returns:
        The agent and how it starts.

    Raises:
        CredoError: a number is out of range.

    Example:
        >>> dropout_agent(arms=3, inputs=4, masks=8).agent.learner.masks
        8
    """
    net = DropoutNetwork(MLP(arms, hidden), rate)
    learner = Dropout(_trained(Model(net, Normal(NOISE_VAR)), memory, learning_rate), masks)
    agent = Agent(learner, arms, "outputs", Thompson() if policy is None else policy, _scaled(scale))
    return Recipe(
        agent, inputs, lambda key: net.network.init(key, (inputs,)), options=_example(memory, inputs)
    )


def neural_linear_agent(  # noqa: PLR0913 - settings, each by its name
    arms: int,
    inputs: int,
    *,
    memory: int = 100,
    every: int = 50,
    learning_rate: ArrayLike = 3e-3,
    hidden: tuple[int, ...] = (50,),
    var: ArrayLike = 0.1,
    policy: Policy | None = None,
    scale: bool = True,
) -> Recipe:
    """Bayesian regression on the features of a network with a limited memory (`NeuralLinear`).

    Arguments:
        arms, inputs: the numbers of arms and inputs.
        memory: how many of the latest rewards are kept, at least 2.
        every: after how many rewards the features are renewed.
        learning_rate, hidden, scale: as for `gradient_agent`.
        var: the prior variance of the weights of the last layer.
        policy: the policy; None for Thompson sampling.

    Returns:
        The agent and how it starts.

    Raises:
        CredoError: a number is out of range.

    Example:
        >>> neural_linear_agent(arms=3, inputs=4, memory=20).agent.learner.network.capacity
        20
    """
    require_integer("memory", memory, 2)
    net = MLP(arms, hidden)
    learner = NeuralLinear(_trained(Model(net, Normal(NOISE_VAR)), memory, learning_rate), every)
    agent = Agent(learner, arms, "outputs", Thompson() if policy is None else policy, _scaled(scale))
    return Recipe(agent, inputs, lambda key: net.init(key, (inputs,)), var, _example(memory, inputs))


def subspace_agent(  # noqa: PLR0913 - settings, each by its name
    arms: int,
    inputs: int,
    *,
    dimension: int = 50,
    basis: BasisName = "random",
    log: tuple[Array, Array, Array] | None = None,
    hidden: tuple[int, ...] = (50,),
    var: ArrayLike = 1.0,
    policy: Policy | None = None,
    scale: bool = False,
    key: Key = 0,
) -> Recipe:
    """A Kalman filter in a subspace of a network's weights (Duran-Martin, Kara & Murphy 2022).

    The directions are random; or, with "svd", the leading ones of a run of online Adam over a log of rewards,
    which may come from another policy. Such a log has the rewards of chosen arms alone.

    Arguments:
        arms, inputs: the numbers of arms and inputs.
        dimension: how many directions D.
        basis: "random", or "svd", which needs a log.
        log: contexts (N, d), arms (N,) and rewards (N,), on which the network is trained first; None starts
            from a network as it was drawn.
        hidden: the widths of the hidden layers.
        var: the prior variance along each direction.
        policy: the policy; None for Thompson sampling.
        scale: whether contexts are standardised as they come; those of a log are taken as they are.
        key: the key that draws the network and the directions.

    Returns:
        The agent and how it starts.

    Raises:
        CredoError: there is no log for "svd", or a number is out of range.

    Cost of a step: D times the number of weights, and D^2.

    Example:
        >>> subspace_agent(arms=3, inputs=4, dimension=5).init(0).belief.mean.shape
        (5,)
    """
    require_choice("basis", basis, ("random", "svd"))
    if basis == "svd" and log is None:
        raise CredoError("log is missing: basis='svd' needs rewards to train the network on.", field="log")
    first, second = jax.random.split(as_key(key))
    net = MLP(arms, hidden)
    params: PyTree = net.init(first, (inputs,))
    directions = None
    if log is not None:
        params, iterates = _descend(net, params, log)
        directions = svd_basis(iterates, dimension) if basis == "svd" else None
    if directions is None:
        directions = random_basis(params, dimension, second)
    filtered = subspace_ekf(Model(net, Normal(NOISE_VAR)), params, directions)
    agent = Agent(filtered, arms, "outputs", Thompson() if policy is None else policy, _scaled(scale))
    return Recipe(agent, inputs, lambda _: None, var)


def _descend(net: MLP, params: PyTree, log: tuple[Array, Array, Array]) -> tuple[PyTree, Array]:
    """The parameters after online Adam over a log, and those of every step (N, P)."""
    learner = adam(Model(Picked(net), Normal(NOISE_VAR)), 3e-3)
    start = learner.init(params)

    def body(belief: Point, row: tuple[Array, Array, Array]) -> tuple[Point, Array]:
        x, arm, reward = row
        later, _ = learner.step(belief, (x, arm), reward)
        return later, later.mean

    last, means = jax.lax.scan(body, start, jax.tree.map(jnp.asarray, log))
    return start.unravel(last.mean), means


def _trained(model: Model, memory: int, learning_rate: ArrayLike) -> GradientLearner:
    require_integer("memory", memory, 1)
    return replay(model, learning_rate, optimizer="adam", capacity=memory)


def _scaled(scale: bool) -> ScaleName | None:
    if scale:
        return "online"
    return None


def _example(memory: int, inputs: int) -> dict[str, PyTree]:
    """One observation of the chosen arm, which gives a memory its shapes."""
    if memory == 1:
        return {}
    row = np.zeros(inputs, np.float32)
    return {"example": ((row, np.zeros((), np.int32)), np.zeros((), np.float32))}
