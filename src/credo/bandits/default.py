"""The default agent: random features and linear models side by side, of which the better is trusted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt import Each, Experts, LossRate, NoiseScaled
from credo.bandits.agent import Agent, AgentBelief, UnitsName
from credo.bandits.designs import ArmsDesign, DesignName
from credo.bandits.policies import UCB, Policy, Thompson
from credo.beliefs import InverseGamma
from credo.core.errors import CredoError, require_choice, require_integer
from credo.core.keys import as_key
from credo.core.records import named_function
from credo.core.types import Array, Key, PyTree
from credo.covariances import Full
from credo.covariances.full import Form
from credo.dynamics import RandomWalk
from credo.learners import Learner, bong, extended_kalman
from credo.likelihoods import Normal, Predictive
from credo.models import Linear, Model, RandomFeatures

__all__ = ["MEAN_VAR", "DefaultAgent", "agent_of", "agent_without_contexts", "default_agent"]

# Waves: how many at most and at least, the noise of rewards, and the factor of the inputs.
WAVES = 128
FEWEST = 32
WAVE_NOISE = 0.1
LINEAR = 0.5

# The prior variance of waves: at least, for each arm, and at most. The more arms there are, the fewer
# rewards has each, and the more tries it takes to find the right one.
WAVE_VAR = 0.3
ARM_VAR = 0.04
MOST_VAR = 1.0

NUMBERS = 300_000
"""The most numbers in the covariances of all arms' waves together, if this leaves `FEWEST` waves."""

LINES = ((0.1, 0.0), (0.01, 3e-4))
"""The linear members: the noise of rewards, and by which variance a step each one walks."""

LINE_VAR = 0.1
"""Their prior variance."""

JUDGED = LossRate(0.5, least=WAVE_NOISE, first=0.5, forgetting=0.995)
"""The weight of a squared error: as if the noise had the variance of the latest errors for every member."""

# The probabilities at a step that waves and lines take over from each other, and one line from the other.
APART = 1e-4
AMONG = 1e-3

WIDTH = 0.7
"""The number of standard deviations that the default policy adds."""

GROWTH = 1.5
"""The growth of its squared width for an arm that is little known."""

FLOOR = 1e-3
"""The least probability of an arm."""

FLOORS = 0.01
"""The least probability of all arms together, where this leaves less for each."""

AT_FIRST = 5.0
"""The mean squared error before any reward, in units of the noise that is assumed."""

MANY_INPUTS = 150
"""Above how many inputs features are rectified."""

MEAN_VAR = 10.0
"""The prior variance of the mean of an arm without contexts, in units of its noise."""

# Rectified features: how many, the prior variance, and the noise of rewards.
UNITS = 400
UNIT_VAR = 0.004
UNIT_NOISE = 0.02


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

    Three learners of each arm's reward are weighed by their squared errors so far (`Experts`), in units of
    the mean of the latest ones, and the best one may change. One is a linear function of the inputs plus 128
    random waves, with a full covariance, and two are linear: one stands still, and the other has a tenth of
    the noise and walks, so that it follows a world that moves. With more than 18 arms there are fewer waves,
    down to 32, so that a decision does not take longer and longer: each arm then has fewer rewards to learn
    from. Their prior variance grows with the number of arms, from 0.3 to 1, so that more arms are tried. With
    more than 150 inputs, as in images, one learner of 400 random rectified features takes the place of all.
    What is expected of an arm is as uncertain as if the noise were as large as the latest errors, or as it is
    assumed to be if that is less (`NoiseScaled`), so that little is tried where rewards have little noise.
    Nothing is tuned to a data set; the settings were chosen on other seeds of statlog, covertype, MNIST, the
    wheel and simulated worlds that stand still, jump, lie on a sphere, have rewards of 0 and 1 or heavy
    tails, and those for many arms on vowel, texture and letter.

    The policy is `UCB(0.7, growth=1.5, slack=d)` with a floor of 0.001 under the probability of each arm, or
    of 0.01 / K if that is less. So an arm that was unlucky is tried again, every arm is tried from time to
    time, and any other policy can be evaluated on the log.

    Without contexts (`inputs=0`) each arm has a normal mean with unknown noise, and the policy is
    `Thompson()`. With the first ten rewards as its units, its choices are the same in euros and in cents.

    Arguments:
        arms: the number K of arms.
        inputs: the length d of a context, 0 if there are none; or with design "actions" of the row of an arm.
        design: "outputs" where a context describes the situation, "actions" where it has a row for each arm.
        policy: the policy; None for the default. A log says more about other policies if this one explores
            more, as `Thompson(floor=0.01)` does.
        scale: whether contexts are standardised as they come. Leave it out for images.
        units: "online" lets the first ten rewards say in which units rewards are; see `Agent`. None is for
            rewards that are known to be of the order of 1. It explores more where a rare reward may be fifty
            times as large as the others, which "online" takes for one that is eight times their spread.
        key: the key that draws the random features.

    Returns:
        The agent, with its prior.

    Raises:
        CredoError: a number is below 1, or the design is another one.

    Cost: K (128 + d)^2, with more than 18 arms (sqrt(300,000) + d sqrt(K))^2, and with more than 150 inputs
    400 (400 K + d).
    """
    require_integer("arms", arms, 2)
    require_choice("design", design, ("outputs", "actions"))
    require_integer("inputs", inputs, 1 if design == "actions" else 0)
    if not inputs:
        agent = agent_without_contexts(arms, policy, units)
        return DefaultAgent(agent, lambda _: jnp.zeros(1), MEAN_VAR, 0)
    kinds = 1 if design == "actions" else arms
    members = _wide(inputs, scale, key) if inputs > MANY_INPUTS else _narrow(kinds, inputs, scale, key)
    learners = [
        regression if design == "actions" else ArmsDesign(regression, arms) for regression in members.learners
    ]
    experts = Experts(learners, _switching(len(learners)), loss=squared_error, learning_rate=JUDGED)
    agent = Agent(
        NoiseScaled(experts, members.noise, AT_FIRST),
        arms,
        "actions" if design == "actions" else "pairs",
        UCB(WIDTH, GROWTH, float(inputs), floor=min(FLOOR, FLOORS / arms)) if policy is None else policy,
        "online" if scale else None,
        units=units,
    )
    return DefaultAgent(agent, lambda _: members.params, Each(members.variances), inputs)


@named_function
def constant_mean(params: Array, x: PyTree) -> Array:
    """The mean of an arm whatever the context."""
    return params[0]


def agent_without_contexts(arms: int, policy: Policy | None, units: UnitsName | None) -> Agent:
    """An agent that knows each arm by a normal mean with unknown noise; its prior variance is `MEAN_VAR`."""
    learner = bong(Model(constant_mean, Normal(InverseGamma(2.0, 1.0))), Full())
    return Agent(learner, arms, "arms", policy or Thompson(), units=units)


class _Members(NamedTuple):
    """Regressions, the prior mean of all or of each, the prior variance of each, and the noise of rewards."""

    learners: list[Learner[Any]]
    params: PyTree
    variances: list[float]
    noise: float


def _narrow(arms: int, inputs: int, scaled: bool, key: Key) -> _Members:
    """Waves, and linear models of which one stands still and one walks."""
    net = _waves(arms, inputs, scaled, key)
    line = Linear()
    waves: Learner[Any] = extended_kalman(Model(net, Normal(WAVE_NOISE)))
    form: Form = (
        "root" if arms == 1 else "dense"
    )  # P + q I needs no QR for each arm; W answers many rows at once
    lines = [
        extended_kalman(Model(line, Normal(noise)), dynamics=RandomWalk(walk), form=form)
        for noise, walk in LINES
    ]
    flat = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, jnp.result_type(float)), line.init(0, (inputs,)))
    starts = [net.init(), *(flat for _ in LINES)]
    wave_var = min(max(WAVE_VAR, ARM_VAR * arms), MOST_VAR)
    return _Members([waves, *lines], Each(starts), [wave_var, *(LINE_VAR for _ in LINES)], WAVE_NOISE)


def _wide(inputs: int, scaled: bool, key: Key) -> _Members:
    """Rectified features, whose covariance does not grow with the inputs."""
    net = _rectified(inputs, scaled, key)
    return _Members([extended_kalman(Model(net, Normal(UNIT_NOISE)))], net.init(), [UNIT_VAR], UNIT_NOISE)


@named_function
def squared_error(predictive: Predictive, y: PyTree) -> Array:
    """The squared error of a forecast's mean, by which the members are weighed.

    Their densities would not do: on a table the arm that is chosen is nearly always right, so that whoever
    says little noise gains on most rows, whichever arms it would choose.
    """
    mean = predictive.mean
    error = mean - jnp.asarray(y, mean.dtype)
    if not error.ndim:
        return error**2
    return jnp.sum(jnp.where(jnp.isnan(error), 0.0, error) ** 2)  # of the outputs that were observed


def _switching(members: int) -> Array:
    """The probabilities that one member takes over from another; the first are waves, the others lines."""
    lines = max(members - 1, 1)
    rates = np.full((members, members), AMONG / max(lines - 1, 1))
    rates[0, :] = APART / lines
    rates[:, 0] = APART
    np.fill_diagonal(rates, 0.0)
    np.fill_diagonal(rates, 1.0 - rates.sum(axis=1))
    return jnp.asarray(rates, jnp.result_type(float))


def _waves(arms: int, inputs: int, scaled: bool, key: Key) -> RandomFeatures:
    """Smooth functions. Standardised inputs are sqrt(2 d) apart; others are taken to be closer."""
    length = math.sqrt(inputs) * (1.0 if scaled else 0.2)
    count = int(min(max(math.sqrt(NUMBERS / arms), FEWEST), WAVES))
    return RandomFeatures.draw(key, inputs, count, length, linear=LINEAR)


def _rectified(inputs: int, scaled: bool, key: Key) -> RandomFeatures:
    """A hidden layer as it was drawn, with biases that are small beside what comes from the inputs."""
    length = math.sqrt(inputs) * (0.1 if scaled else 0.03)
    return RandomFeatures.draw(key, inputs, UNITS, length, activation="relu")
