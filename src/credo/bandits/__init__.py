"""Decisions: bandits and Bayesian optimisation around any learner.

An `Agent` is a learner of rewards, a design (how arms share the learner) and a policy (how an arm is chosen).
"""

from credo.bandits.agent import Agent, AgentBelief
from credo.bandits.choice import Choice
from credo.bandits.environments import (
    AnyEnvironment,
    ArmsByChance,
    ArmsByPlan,
    BernoulliArms,
    Classification,
    ConstantArm,
    Context,
    ContextDesign,
    ContextualArms,
    ContextualState,
    Drift,
    Environment,
    GaussianArms,
    Intercept,
    Jumps,
    KnownRewards,
    LogColumns,
    LoggedReplay,
    MaskedState,
    Motion,
    Products,
    ProductsState,
    RewardUnit,
    RowsState,
    Still,
    Wheel,
    arm_key,
    environment_names,
    every_arm,
    load,
)
from credo.bandits.play import play
from credo.bandits.policies import Policy, Thompson
from credo.bandits.report import Report
from credo.bandits.scaling import Scaler

__all__ = [
    "Agent",
    "AgentBelief",
    "AnyEnvironment",
    "ArmsByChance",
    "ArmsByPlan",
    "BernoulliArms",
    "Choice",
    "Classification",
    "ConstantArm",
    "Context",
    "ContextDesign",
    "ContextualArms",
    "ContextualState",
    "Drift",
    "Environment",
    "GaussianArms",
    "Intercept",
    "Jumps",
    "KnownRewards",
    "LogColumns",
    "LoggedReplay",
    "MaskedState",
    "Motion",
    "Policy",
    "Products",
    "ProductsState",
    "Report",
    "RewardUnit",
    "RowsState",
    "Scaler",
    "Still",
    "Thompson",
    "Wheel",
    "arm_key",
    "environment_names",
    "every_arm",
    "load",
    "play",
]
