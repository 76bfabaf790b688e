"""The agents that the bandit experiments compare: each knows the number of arms and inputs, no data set."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

import credo
from credo.bandits import UCB, Agent, Thompson, default_agent
from credo.bandits.policies import Policy, Uniform
from credo.core.types import Array, PyTree
from credo.covariances import LowRank
from credo.models import MLP, Linear, RandomFeatures

__all__ = [
    "Build",
    "Player",
    "default",
    "linear",
    "linear_outputs",
    "network",
    "normal_inverse_gamma",
    "random_features",
    "uniform",
]


class Player(NamedTuple):
    """The arguments of `play`: agent, prior mean for each seed, prior variances, and other options."""

    agent: Agent
    params: Callable[[Array], PyTree]
    var: PyTree
    options: Mapping[str, PyTree] = MappingProxyType({})


Build: TypeAlias = Callable[[int, int], Player]
"""Makes an agent for K arms and d inputs."""


def default(arms: int, inputs: int, scale: bool = True) -> Player:
    """The default agent, for rewards of the order of 1, as those of all these worlds are."""
    start = default_agent(arms, inputs, scale=scale, units=None)
    return Player(start.agent, start.params, start.var)


def linear(arms: int, inputs: int, policy: Policy | None = None) -> Player:
    """A linear regression for each arm, with known noise; by default explored by UCB ("LinUCB")."""
    return _linear(arms, inputs, credo.Normal(0.1), 0.01, UCB(1.0) if policy is None else policy)


def normal_inverse_gamma(arms: int, inputs: int) -> Player:
    """A linear regression for each arm whose noise is unknown too, and Thompson sampling.

    The prior is that of `linear`: a typical noise variance of 0.1, and weights of variance 0.01.
    """
    return _linear(arms, inputs, credo.Normal(credo.InverseGamma(2.0, 0.2)), 0.1, Thompson())


def uniform(arms: int, inputs: int) -> Player:
    """Arms at random."""
    return linear(arms, inputs, Uniform())


def network(arms: int, inputs: int, rank: int = 20, scale: bool = True) -> Player:
    """A network of 50 hidden units with K outputs, a belief of some rank, and Thompson sampling."""
    net = MLP(outputs=arms, hidden=(50,))
    learner = credo.bong(credo.Model(net, credo.Normal(0.02)), LowRank(rank))
    agent = Agent(learner, arms, "outputs", Thompson(draws=64), "online" if scale else None)
    return Player(agent, lambda key: net.init(key, (inputs,)), net.prior_var(net.init(0, (inputs,))))


def linear_outputs(arms: int, inputs: int) -> Player:
    """A linear model with K outputs and a belief of rank 10, for many inputs, which are not scaled."""
    net = Linear(outputs=arms)
    learner = credo.bong(credo.Model(net, credo.Normal(0.02)), LowRank(10))
    start = net.init(0, (inputs,))  # zeros
    return Player(Agent(learner, arms, "outputs", UCB(1.0)), lambda _: start, net.prior_var(start))


def random_features(  # noqa: PLR0913 - settings, each by its name
    arms: int,
    inputs: int,
    *,
    features: int = 200,
    length: float | None = None,
    linear: float | None = None,
    activation: Literal["cos", "relu"] = "cos",
    var: float = 0.3,
    noise_var: float = 0.1,
    width: float = 0.7,
    scale: bool = True,
) -> Player:
    """A linear regression on random features for each arm, explored by UCB.

    Arguments:
        arms, inputs: the numbers of arms and inputs.
        features: how many.
        length: their length scale; None for sqrt(inputs).
        linear: the factor of the inputs among them; None for none.
        activation: "cos" for waves and "relu" for a hidden layer.
        var: the prior variance of their weights.
        noise_var: the variance of the noise.
        width: of UCB.
        scale: whether contexts are standardised as they come.
    """
    length = math.sqrt(inputs) if length is None else length
    net = RandomFeatures.draw(7, inputs, features, length, linear=linear, activation=activation)
    learner = credo.extended_kalman(credo.Model(net, credo.Normal(noise_var)))
    agent = Agent(learner, arms, "arms", UCB(width), "online" if scale else None)
    return Player(agent, lambda _: net.init(), var)


def _linear(arms: int, inputs: int, noise: credo.Normal, var: float, policy: Policy) -> Player:
    net = Linear()
    learner = credo.extended_kalman(credo.Model(net, noise))
    start = net.init(0, (inputs,))  # zeros
    return Player(Agent(learner, arms, "arms", policy, "online"), lambda _: start, var)
