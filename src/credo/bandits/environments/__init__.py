"""Environments: the worlds in which bandits play, as pure functions of a state and a key.

In step t an environment shows a context x_t and which arms are allowed; an agent chooses an arm a_t, and sees
the reward r_t of this arm alone. The pseudo-regret of the step is max_a E[r | x_t, a] - E[r | x_t, a_t], over
the allowed arms.
"""

from credo.bandits.environments.arms import (
    BernoulliArms,
    ContextualArms,
    ContextualState,
    GaussianArms,
    Products,
    ProductsState,
    Wheel,
)
from credo.bandits.environments.base import (
    ConstantArm,
    Context,
    ContextDesign,
    Environment,
    arm_key,
    every_arm,
)
from credo.bandits.environments.catalogue import AnyEnvironment, environment_names, load_environment
from credo.bandits.environments.motion import Drifts, Jumps, Motion, Still
from credo.bandits.environments.rows import Classification, KnownRewards, LogColumns, LoggedReplay, RowsState
from credo.bandits.environments.wrapped import ArmsByChance, ArmsByPlan, Intercept, MaskedState, RewardUnit

__all__ = [
    "AnyEnvironment",
    "ArmsByChance",
    "ArmsByPlan",
    "BernoulliArms",
    "Classification",
    "ConstantArm",
    "Context",
    "ContextDesign",
    "ContextualArms",
    "ContextualState",
    "Drifts",
    "Environment",
    "GaussianArms",
    "Intercept",
    "Jumps",
    "KnownRewards",
    "LogColumns",
    "LoggedReplay",
    "MaskedState",
    "Motion",
    "Products",
    "ProductsState",
    "RewardUnit",
    "RowsState",
    "Still",
    "Wheel",
    "arm_key",
    "environment_names",
    "every_arm",
    "load_environment",
]
