"""Bayesian optimisation: ask for a point, tell its value, around any learner."""

from credo.bandits.optimize.conditions import Given, given
from credo.bandits.optimize.minimise import minimize
from credo.bandits.optimize.optimizer import Optimizer
from credo.bandits.optimize.optuna_face import optuna_sampler
from credo.bandits.optimize.ray_face import ray_searcher
from credo.bandits.optimize.search import AcquisitionName, GoalName, Search
from credo.bandits.optimize.space import AnyBounds, Candidate, Space
from credo.bandits.optimize.trials import Trials
from credo.bandits.optimize.units import Units

__all__ = [
    "AcquisitionName",
    "AnyBounds",
    "Candidate",
    "Given",
    "GoalName",
    "Optimizer",
    "Search",
    "Space",
    "Trials",
    "Units",
    "given",
    "minimize",
    "optuna_sampler",
    "ray_searcher",
]
