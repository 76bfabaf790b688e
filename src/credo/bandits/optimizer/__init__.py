"""Bayesian optimisation: ask for a point, tell its value, around any learner."""

from credo.bandits.optimizer.conditions import Given, given
from credo.bandits.optimizer.minimise import minimize
from credo.bandits.optimizer.optimizer import Optimizer
from credo.bandits.optimizer.optuna_face import optuna_sampler
from credo.bandits.optimizer.search import GoalName, RuleName, Search
from credo.bandits.optimizer.space import AnyBounds, Point, Space
from credo.bandits.optimizer.trials import Trials
from credo.bandits.optimizer.units import Units

__all__ = [
    "AnyBounds",
    "Given",
    "GoalName",
    "Optimizer",
    "Point",
    "RuleName",
    "Search",
    "Space",
    "Trials",
    "Units",
    "given",
    "minimize",
    "optuna_sampler",
]
