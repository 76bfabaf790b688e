"""Agents and policies by name, as the command line asks for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp

from credo.bandits import UCB, Agent, Thompson, default_agent
from credo.bandits.agent import UnitsName
from credo.bandits.default import MEAN_VAR, agent_without_contexts
from credo.bandits.environments import ContextDesign
from credo.bandits.policies import EpsilonGreedy, Greedy, Policy, SquareCB, Uniform
from credo.core.errors import CredoError, require_choice
from credo.core.types import Array, PyTree
from credo.covariances import LowRank
from credo.learners import BetaBernoulli, Learner, bong, extended_kalman
from credo.likelihoods import Normal
from credo.models import MLP, Linear, Model

__all__ = ["AGENTS", "BanditProblem", "PreparedAgent", "policy_of", "prepare"]

AGENTS = ("default", "linear", "network", "beta")
"""The names of agents."""

# The noise of rewards, the directions and hidden units of a network, and the most inputs of a covariance.
NOISE_VAR = 0.1
RANK = 10
HIDDEN = 50
FULL_INPUTS = 150

_POLICIES: Mapping[str, Callable[..., Policy]] = {
    "thompson": Thompson,
    "ucb": UCB,
    "egreedy": EpsilonGreedy,
    "squarecb": SquareCB,
    "greedy": Greedy,
    "uniform": Uniform,
}
_NUMBERED = ("ucb", "egreedy", "squarecb")


class BanditProblem(NamedTuple):
    """The properties of the world that an agent must know.

    `inputs` is the length of a context, or of the row of an arm, or None; `design` is "actions" where a
    context has a row for every arm; `binary` rewards are 0 or 1; `scale` asks for standardised contexts;
    `units` is "online" if the units of rewards are not known, or None if they are of the order of 1.
    """

    arms: int
    inputs: int | None
    binary: bool
    design: ContextDesign = "outputs"
    scale: bool = True
    units: UnitsName | None = None


class PreparedAgent(NamedTuple):
    """An agent with its prior: a mean, or a function of a key that draws it (see `play`), and a variance."""

    agent: Agent
    params: PyTree | Callable[[Array], PyTree]
    var: PyTree
    description: str


def policy_of(text: str | None) -> Policy | None:
    """A policy by its name and, for some, a number behind a colon."""
    if text is None:
        return None
    name, colon, number = text.partition(":")
    if name not in _POLICIES or (colon and name not in _NUMBERED):
        raise CredoError(
            "policy must be thompson, ucb, ucb:WIDTH, egreedy, egreedy:EPSILON, squarecb, squarecb:GAMMA, "
            f"greedy or uniform; got {text!r}.",
            field="policy",
        )
    if not colon:
        return _POLICIES[name]()
    try:
        value = float(number)
    except ValueError:
        raise CredoError(
            f"policy must have a number behind the colon, such as {name}:0.5; got {text!r}.", field="policy"
        ) from None
    try:
        return _POLICIES[name](value)
    except CredoError as error:
        raise CredoError(f"policy {text} is not allowed: {error}", field="policy") from None


def prepare(name: str, problem: BanditProblem, policy: Policy | None) -> PreparedAgent:
    """An agent by its name, with the given policy or its own, that fits the problem."""
    require_choice("agent", name, AGENTS)
    if name == "beta":
        return _of_chances(problem, policy)
    if problem.inputs is None:
        if name == "network":
            raise CredoError("agent network needs contexts, and there are none here.", field="agent")
        if name == "linear" or not problem.binary:
            return _of_means(problem, policy)
        return _of_chances(problem, policy)
    if name == "default":
        start = default_agent(
            problem.arms,
            problem.inputs,
            design=problem.design,
            policy=policy,
            scale=problem.scale,
            units=problem.units,
        )
        words = "random features and linear models of the inputs, weighed by how they predict"
        return PreparedAgent(start.agent, start.params, start.var, words)
    return _of_contexts(name, problem, policy)


def _of_chances(problem: BanditProblem, policy: Policy | None) -> PreparedAgent:
    """Each arm has an unknown chance; contexts are ignored."""
    if not problem.binary or problem.design == "actions":
        what = (
            "its arms are new at every step" if problem.design == "actions" else "here they have other values"
        )
        raise CredoError(f"agent beta is for rewards of 0 and 1 from the same arms; {what}.", field="agent")
    agent = Agent(BetaBernoulli(), problem.arms, "arms", policy or Thompson())
    return PreparedAgent(agent, None, 1.0, "a Beta distribution of the chance of each arm")


def _of_means(problem: BanditProblem, policy: Policy | None) -> PreparedAgent:
    """Each arm has an unknown mean and noise; there are no contexts."""
    agent = agent_without_contexts(problem.arms, policy, problem.units)
    return PreparedAgent(agent, jnp.zeros(1), MEAN_VAR, "a normal mean of each arm, with unknown noise")


def _of_contexts(name: str, problem: BanditProblem, policy: Policy | None) -> PreparedAgent:
    inputs = problem.inputs
    assert inputs is not None
    arms = problem.arms
    own = problem.design == "actions"
    scale: Literal["online"] | None = "online" if problem.scale else None
    noise = Normal(NOISE_VAR)
    learner: Learner[Any]
    if name == "linear" and (own or inputs <= FULL_INPUTS):
        line = Linear()
        learner = extended_kalman(Model(line, noise))
        agent = Agent(
            learner, arms, "actions" if own else "arms", policy or Thompson(), scale, units=problem.units
        )
        words = "a linear regression" + ("" if own else " of each arm")
        return PreparedAgent(agent, line.init(0, (inputs,)), NOISE_VAR, f"{words}, with all covariances")
    outputs = 1 if own else arms
    net = Linear(outputs=outputs) if name == "linear" else MLP(outputs=outputs, hidden=(HIDDEN,))
    learner = bong(Model(net, noise), LowRank(RANK))
    agent = Agent(
        learner, arms, "actions" if own else "outputs", policy or Thompson(), scale, units=problem.units
    )
    words = "a linear model" if name == "linear" else f"a network with {HIDDEN} hidden units"

    def params(key: Array) -> PyTree:
        return net.init(key, (inputs,))

    start = net.init(0, (inputs,))
    return PreparedAgent(agent, params, net.prior_var(start), f"{words}, {RANK} directions of covariance")
