"""Baselines of the field, made of the same parts as every other agent: learners, wrappers and policies."""

from credo.bandits.baselines.bootstrap import Bootstrap, Members, ResamplingName
from credo.bandits.baselines.dropout import Dropout, DropoutBelief, DropoutNetwork
from credo.bandits.baselines.matching import match_predictions
from credo.bandits.baselines.neural_linear import NeuralLinear, NeuralLinearBelief
from credo.bandits.baselines.recipe import Recipe
from credo.bandits.baselines.recipes import (
    BasisName,
    bootstrap_agent,
    dropout_agent,
    gradient_agent,
    neural_linear_agent,
    subspace_agent,
)

__all__ = [
    "BasisName",
    "Bootstrap",
    "Dropout",
    "DropoutBelief",
    "DropoutNetwork",
    "Members",
    "NeuralLinear",
    "NeuralLinearBelief",
    "Recipe",
    "ResamplingName",
    "bootstrap_agent",
    "dropout_agent",
    "gradient_agent",
    "match_predictions",
    "neural_linear_agent",
    "subspace_agent",
]
