"""The default agent: a few unlike learners of rewards, of which the one that predicts best is trusted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from credo.adapt import Each, Experts
from credo.bandits.agent import Agent, AgentBelief
from credo.bandits.designs import ArmsDesign, DesignName, OutputsDesign
from credo.bandits.policies import UCB, Policy
from credo.core.errors import require_choice, require_integer
from credo.core.keys import as_key
from credo.core.types import Array, Key, PyTree
from credo.covariances import LowRank
from credo.learners import Learner, bong, extended_kalman
from credo.likelihoods import Normal
from credo.models import MLP, Linear, Model, RandomFeatures

__all__ = ["DefaultAgent", "default_agent"]

NOISE_VAR = 0.1
"""The noise of rewards, whose variance is taken to be of the order of 1/4, as that of a fair coin."""

FULL_INPUTS = 150
"""Up to how many inputs each arm has a full covariance over them."""

FEATURES, WIDTH, RANK, NETWORKS = 200, 50, 10, 2
"""The sizes of the learners: random features, hidden units, directions, and networks."""


@dataclass(frozen=True)
class DefaultAgent:
    """An agent, and what its `init` needs.

    Attributes:
        agent: the agent.
        params: the prior mean as a function of a key, which draws the networks.
        var: the prior variances.

    Example:
        >>> from credo import bandits
        >>> start = bandits.default_agent(arms=3, inputs=4)
        >>> belief = start.init(key=0)
        >>> start.agent.decide(belief, np.ones(4, np.float32), key=1).pmf.shape
        (3,)
    """

    agent: Agent
    params: Callable[[Array], PyTree]
    var: PyTree

    def init(self, key: Key = 0) -> AgentBelief[Any]:
        """The belief before any reward.

        Arguments:
            key: the key that draws the networks.
        """
        example = np.zeros(self._inputs, np.float32)
        options = {} if self.agent.scale is None else {"context": example}
        return self.agent.init(self.params(as_key(key)), var=self.var, **options)

    @property
    def _inputs(self) -> int:
        first = self.params(jax.random.key(0))
        return int(np.shape(first.values[0][0]["w"])[0])


def default_agent(
    arms: int,
    inputs: int,
    *,
    design: DesignName = "outputs",
    policy: Policy | None = None,
    scale: bool = True,
    key: Key = 0,
) -> DefaultAgent:
    """An agent that needs no settings, for rewards of the order of 1 and contexts of numbers.

    Four kinds of learners are weighed by how they predicted the rewards so far, and the best may change
    (`Experts`): a linear model, two networks of one hidden layer with a low-rank covariance, and random
    Fourier features. What they say apart adds to the uncertainty by which arms are
    explored. The policy is `UCB(0.7)`. Nothing is tuned to a data set; the settings were chosen on other
    seeds of statlog, covertype, MNIST and the wheel.

    Arguments:
        arms: the number K of arms.
        inputs: the length d of a context; or with design "actions" of the row of an arm.
        design: "outputs" where a context describes the situation, "actions" where it has a row for each arm.
        policy: the policy; None for the default.
        scale: whether contexts are standardised as they come. Leave it out for images.
        key: the key that draws the random features.

    Returns:
        The agent, with its prior.

    Raises:
        CredoError: a number is below 1, or the design is another one.

    Cost: that of all members: K (d + 1)^2 for the linear one (d P / K with more than 150 inputs), 200^2 K for
    the features, and (10 + 1)^2 P for each network of P weights.
    """
    require_integer("arms", arms, 2)
    require_integer("inputs", inputs, 1)
    require_choice("design", design, ("outputs", "actions"))
    length = _length(inputs, scale)
    if design == "actions":
        members = _for_actions(inputs, length, key)
    else:
        members = _for_contexts(arms, inputs, length, key)
    learners = [learner for learner, _, _ in members]
    experts: Learner[Any] = Experts(learners, switching=1e-3)

    def params(one: Array) -> PyTree:
        keys = jax.random.split(as_key(one), len(members))
        return Each([start(own) for (_, start, _), own in zip(members, keys, strict=True)])

    chosen = UCB(0.7) if policy is None else policy
    agent = Agent(
        experts, arms, "actions" if design == "actions" else "pairs", chosen, "online" if scale else None
    )
    return DefaultAgent(agent, params, Each([var for _, _, var in members]))


Member = tuple[Learner[Any], Callable[[Array], PyTree], PyTree]
"""A learner, its prior mean as a function of a key, and its prior variances."""


def _for_contexts(arms: int, inputs: int, length: float, key: Key) -> list[Member]:
    members = []
    noise = Normal(NOISE_VAR)
    if inputs <= FULL_INPUTS:
        line = Linear()
        learner = ArmsDesign(extended_kalman(Model(line, noise)), arms)
        members.append(_member(learner, line, inputs, 0.01))
    else:
        lines = Linear(outputs=arms)
        shared = OutputsDesign(bong(Model(lines, noise), LowRank(RANK)), arms)
        members.append(_member(shared, lines, inputs, None))
    net = MLP(outputs=arms, hidden=(WIDTH,))
    networks = OutputsDesign(bong(Model(net, noise), LowRank(RANK)), arms)
    members += [_member(networks, net, inputs, None)] * NETWORKS
    waves = RandomFeatures.draw(key, inputs, FEATURES, length)
    smooth = ArmsDesign(extended_kalman(Model(waves, noise)), arms)
    members.append((smooth, lambda _: waves.init(), 0.3))
    return members


def _for_actions(inputs: int, length: float, key: Key) -> list[Member]:
    members = []
    noise, line, net = Normal(NOISE_VAR), Linear(), MLP(outputs=1, hidden=(WIDTH,))
    family = (
        bong(Model(line, noise), LowRank(RANK))
        if inputs > FULL_INPUTS
        else extended_kalman(Model(line, noise))
    )
    members.append(_member(family, line, inputs, 0.1))
    members += [_member(bong(Model(net, noise), LowRank(RANK)), net, inputs, None)] * NETWORKS
    waves = RandomFeatures.draw(key, inputs, FEATURES, length)
    members.append((extended_kalman(Model(waves, noise)), lambda _: waves.init(), 0.3))
    return members


def _member(learner: Learner[Any], net: Linear | MLP, inputs: int, var: float | None) -> Member:
    start = net.init(0, (inputs,))
    return learner, lambda key: net.init(key, (inputs,)), net.prior_var(start) if var is None else var


def _length(inputs: int, scaled: bool) -> float:
    """The length scale of random features.

    Points of standardised inputs are about sqrt(2 d) apart, and images with pixels from 0 to 1 a fifth of it.
    """
    if inputs < 4:
        return 0.6
    return math.sqrt(inputs) * (1.0 if scaled else 0.2)
