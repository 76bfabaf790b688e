"""Bayesian optimisation: ask for a point, tell its value, around any learner."""

from credo.bandits.optimize.optimizer import Optimizer, minimize
from credo.bandits.optimize.optuna_face import optuna_sampler
from credo.bandits.optimize.ray_face import ray_searcher
from credo.bandits.optimize.search import AcquisitionName, GoalName, Search
from credo.bandits.optimize.space import AnyBounds, Candidate, Space
from credo.bandits.optimize.trials import Trials, Units
from credo.bandits.optimize.variables import Given, given

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
