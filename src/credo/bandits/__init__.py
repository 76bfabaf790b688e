"""Decisions: bandits and Bayesian optimisation around any learner.

An `Agent` is a learner of rewards, a design (how arms share the learner) and a policy (how an arm is chosen).
A `Bandit` keeps one, and what waits for its reward. What is needed less often lies in the rooms: `policies`,
`designs`, `environments` (worlds to play in), `evaluation` (of a policy on the log of another), `optimize`,
`logs` and `service` (what a `Bandit` gives).
"""

from typing import TYPE_CHECKING

from credo.bandits import designs, environments, evaluation, logs, optimize, policies, service
from credo.bandits.agent import Agent, AgentBelief, Choice
from credo.bandits.best import probability_best
from credo.bandits.default import DefaultAgent, default_agent
from credo.bandits.environments import load_environment
from credo.bandits.evaluation import evaluate_policy
from credo.bandits.logs import Log
from credo.bandits.optimize import Optimizer, Space, minimize
from credo.bandits.play import play
from credo.bandits.play_report import PlayReport
from credo.bandits.policies import UCB, Thompson
from credo.bandits.service import ArmDecision, Bandit, Features

__all__ = [
    "UCB",
    "Agent",
    "AgentBelief",
    "ArmDecision",
    "Bandit",
    "Choice",
    "DefaultAgent",
    "Features",
    "Log",
    "Optimizer",
    "PlayReport",
    "Space",
    "Thompson",
    "default_agent",
    "designs",
    "environments",
    "evaluate_policy",
    "evaluation",
    "load_environment",
    "logs",
    "minimize",
    "optimize",
    "play",
    "policies",
    "probability_best",
    "service",
]


_ROOMS = (designs, environments, evaluation, logs, optimize, policies, service)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        rooms = [room for room in _ROOMS if name in room.__all__]
        place = f"; it is {rooms[0].__name__}.{name}" if rooms else ""
        raise AttributeError(f"module 'credo.bandits' has no attribute {name!r}{place}")
