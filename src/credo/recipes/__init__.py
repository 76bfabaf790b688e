"""Recipes, which turn options into a learner: its network, its prior, its members and their names.

`Options` hold what a user chooses, and `Settings` what is resolved from it. Choices with numbers are
records, `Network`, `Posterior` and `Drift`, which are also written as text, such as `mlp:50,50`. All have
defaults (`credo.recipes.defaults`).
"""

from credo.recipes.language import Drift, DriftKind, Network, NetworkKind, Posterior, PosteriorKind
from credo.recipes.options import METHODS, BudgetName, MethodName, Options, TaskName
from credo.recipes.settings import Settings

__all__ = [
    "METHODS",
    "BudgetName",
    "Drift",
    "DriftKind",
    "MethodName",
    "Network",
    "NetworkKind",
    "Options",
    "Posterior",
    "PosteriorKind",
    "Settings",
    "TaskName",
]
