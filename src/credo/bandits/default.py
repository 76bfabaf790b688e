"""The default agent: random features with a small and a large prior, of which the better is trusted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from credo.adapt import Each, Experts
from credo.bandits.agent import Agent, AgentBelief, UnitsName
from credo.bandits.designs import ArmsDesign, DesignName
from credo.bandits.policies import UCB, Policy
from credo.core.errors import CredoError, require_choice, require_integer
from credo.core.keys import as_key
from credo.core.types import Array, Key, PyTree
from credo.learners import Learner, extended_kalman
from credo.likelihoods import Normal
from credo.models import Model, RandomFeatures

__all__ = ["DefaultAgent", "agent_of", "default_agent"]

WAVES, WAVE_VARS, WAVE_NOISE, LINEAR = 200, (0.3, 1.0), 0.1, 0.5
"""Waves: how many, the prior variances of the members, the noise of rewards, and the factor of the inputs."""

MANY_INPUTS = 150
"""Above how many inputs features are rectified."""

UNITS, UNIT_VARS, UNIT_NOISE = 400, (0.004,), 0.02
"""Rectified features: how many, the prior variances, and the noise of rewards."""


@dataclass(frozen=True)
class DefaultAgent:
    """An agent, and what its `init` needs. `play` and `Bandit` take it as it is, and start at its prior.

    Attributes:
        agent: the agent.
        params: the prior mean, as a function of a key that does not matter here: it is zero.
        var: the prior variances.
        inputs: the length d of a context, or of the row of an arm.

    Example:
        >>> from credo import bandits
        >>> start = bandits.default_agent(arms=3, inputs=4)
        >>> belief = start.init(key=0)
        >>> start.agent.decide(belief, jnp.ones(4), key=1).pmf.shape
        (3,)
    """

    agent: Agent
    params: Callable[[Array], PyTree]
    var: PyTree
    inputs: int

    def init(self, key: Key = 0) -> AgentBelief[Any]:
        """The belief before any reward.

        Arguments:
            key: a key, for agents that draw their prior mean.
        """
        shape = (self.agent.arms, self.inputs) if self.agent.design == "actions" else (self.inputs,)
        options = {"context": jnp.zeros(shape)} if self.agent.takes_example else {}
        return self.agent.init(self.params(as_key(key)), var=self.var, **options)


def agent_of(agent: Agent | DefaultAgent) -> Agent:
    """An agent, taken out of one that comes with its prior; a CredoError where there is none."""
    inner = agent.agent if isinstance(agent, DefaultAgent) else agent
    if not isinstance(inner, Agent):
        raise CredoError(
            f"agent must be a bandits.Agent, or what bandits.default_agent gives; got {agent!r}.",
            field="agent",
        )
    return inner


def default_agent(
    arms: int,
    inputs: int,
    *,
    design: DesignName = "outputs",
    policy: Policy | None = None,
    scale: bool = True,
    units: UnitsName | None = "online",
    key: Key = 0,
) -> DefaultAgent:
    """An agent that needs no settings, for rewards in any units and contexts of numbers.

    The reward of each arm is a linear function of the inputs plus 200 random waves, with a full covariance.
    Two such learners, with a small and a large prior variance, are weighed by how they predicted the rewards
    so far, and the better one may change (`Experts`): the small prior learns noisy rewards sooner, and the
    large one goes on to explore where rewards are rare and large. With more than 150 inputs, as in images,
    one learner of 400 random rectified features takes their place. The policy is `UCB(0.7)`. Nothing is tuned
    to a data set; the settings were chosen on other seeds of statlog, covertype, MNIST and the wheel, with
    rewards as they come.

    Arguments:
        arms: the number K of arms.
        inputs: the length d of a context; or with design "actions" of the row of an arm.
        design: "outputs" where a context describes the situation, "actions" where it has a row for each arm.
        policy: the policy; None for the default, whose propensities are 0 and 1. Where the log is to be
            evaluated for other policies, choose `Thompson(floor=0.01)`.
        scale: whether contexts are standardised as they come. Leave it out for images.
        units: "online" lets the first ten rewards say in which units rewards are; see `Agent`. None is for
            rewards that are known to be of the order of 1. It explores more where a rare reward may be fifty
            times as large as the others, which "online" takes for one that is eight times their spread.
        key: the key that draws the random features.

    Returns:
        The agent, with its prior.

    Raises:
        CredoError: a number is below 1, or the design is another one.

    Cost: 2 K (200 + d)^2, and with more than 150 inputs 400 (400 K + d).
    """
    require_integer("arms", arms, 2)
    require_integer("inputs", inputs, 1)
    require_choice("design", design, ("outputs", "actions"))
    many = inputs > MANY_INPUTS
    net = _rectified(inputs, scale, key) if many else _waves(inputs, scale, key)
    variances, noise = (UNIT_VARS, UNIT_NOISE) if many else (WAVE_VARS, WAVE_NOISE)
    regression = extended_kalman(Model(net, Normal(noise)))
    one = regression if design == "actions" else ArmsDesign(regression, arms)
    learners: list[Learner[Any]] = [one] * len(variances)
    experts: Learner[Any] = Experts(learners, switching=1e-3)
    agent = Agent(
        experts,
        arms,
        "actions" if design == "actions" else "pairs",
        UCB(0.7) if policy is None else policy,
        "online" if scale else None,
        units=units,
    )
    start = net.init()
    return DefaultAgent(agent, lambda _: start, Each(list(variances)), inputs)


def _waves(inputs: int, scaled: bool, key: Key) -> RandomFeatures:
    """Smooth functions. Standardised inputs are sqrt(2 d) apart; others are taken to be closer."""
    length = math.sqrt(inputs) * (1.0 if scaled else 0.2)
    return RandomFeatures.draw(key, inputs, WAVES, length, linear=LINEAR)


def _rectified(inputs: int, scaled: bool, key: Key) -> RandomFeatures:
    """A hidden layer as it was drawn, with biases that are small beside what comes from the inputs."""
    length = math.sqrt(inputs) * (0.1 if scaled else 0.03)
    return RandomFeatures.draw(key, inputs, UNITS, length, activation="relu")
