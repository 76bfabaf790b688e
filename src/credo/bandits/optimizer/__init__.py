"""Bayesian optimisation: ask for a point, tell its value, around any learner."""

from credo.bandits.optimizer.optimizer import Optimizer
from credo.bandits.optimizer.search import GoalName, RuleName, Search
from credo.bandits.optimizer.space import AnyBounds, Point, Space
from credo.bandits.optimizer.trials import Trials, Units

__all__ = ["AnyBounds", "GoalName", "Optimizer", "Point", "RuleName", "Search", "Space", "Trials", "Units"]
