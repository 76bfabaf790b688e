"""Baselines of the field, made of the same parts as every other agent: learners, wrappers and policies."""

from credo_papers.baselines.bootstrap import Bootstrap, Members, ResamplingName
from credo_papers.baselines.dropout import Dropout, DropoutBelief, DropoutNetwork
from credo_papers.baselines.matching import match_predictions
from credo_papers.baselines.neural_linear import NeuralLinear, NeuralLinearBelief
from credo_papers.baselines.recipe import Recipe
from credo_papers.baselines.recipes import (
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
