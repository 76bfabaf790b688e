"""Recipes, which turn options into a learner: its network, its prior, its members and their names.

`Options` hold what a user chooses, and `Settings` what `resolve` makes of it. Choices with numbers are
records, `Network`, `Posterior` and `Drift`, which are also written as text, such as `mlp:50,50`. All have
defaults (`credo.recipes.defaults`).
"""

from credo.recipes.architecture import Network, NetworkKind
from credo.recipes.auto import Auto, auto
from credo.recipes.drift import Drift, DriftKind
from credo.recipes.posterior import Posterior, PosteriorKind
from credo.recipes.resolution import resolve
from credo.recipes.settings import METHODS, BudgetName, MethodName, Options, Settings, TaskName

__all__ = [
    "METHODS",
    "Auto",
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
    "auto",
    "resolve",
]
