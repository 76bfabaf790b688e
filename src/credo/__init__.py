"""credo: online Bayesian learning and sequential decision making.

See one observation, predict the next with honest uncertainty, learn from it in constant time and memory.

    learner = model of the data x dynamics of the parameters x belief family x update rule

Everything is reached from here (`credo.bong`, `credo.Model`, `credo.Normal`, ...); names load when they are
first used, so `import credo` is quick.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_ROOMS = {
    "credo.core.records": ["record", "replace", "static_field"],
    "credo.core.errors": ["CredoError", "DataError", "FormatError"],
    "credo.covariances": ["Diagonal", "Full", "LowRank"],
    "credo.beliefs": ["Beta", "Dirichlet", "Ensemble", "Gamma", "Gaussian", "InverseGamma", "Point"],
    "credo.likelihoods": [
        "Bernoulli",
        "Categorical",
        "Likelihood",
        "Normal",
        "Poisson",
        "Predictive",
        "StudentT",
    ],
    "credo.dynamics": [
        "Decay",
        "Dynamics",
        "Inflation",
        "LinearGaussian",
        "OrnsteinUhlenbeck",
        "RandomWalk",
        "ShrinkPerturb",
        "Static",
    ],
    "credo.models": [
        "CNN",
        "MLP",
        "Linear",
        "Model",
        "freeze",
        "from_equinox",
        "from_flax",
        "joint",
        "last_layer",
        "random_basis",
        "subspace",
        "svd_basis",
    ],
    "credo.learners": [
        "BBBRule",
        "BLRRule",
        "BOGRule",
        "BONGRule",
        "BetaBernoulli",
        "DirichletCategorical",
        "EnsembleLearner",
        "GammaPoisson",
        "GradientLearner",
        "Info",
        "Learner",
        "LinearizedEmpiricalFisher",
        "LinearizedGaussNewton",
        "MonteCarloEmpiricalFisher",
        "MonteCarloHessian",
        "RecursiveLearner",
        "Schedule",
        "adam",
        "bbb",
        "blr",
        "bog",
        "bong",
        "decide",
        "enkf",
        "etkf",
        "extended_kalman",
        "fd_ekf",
        "iterated_ekf",
        "ivon",
        "kalman",
        "last_layer_ekf",
        "lofi",
        "lofi_spherical",
        "lrvga",
        "normal_inverse_gamma",
        "ogd",
        "replay",
        "rvga",
        "sgd",
        "slang",
        "subspace_ekf",
        "vd_ekf",
        "vogn",
        "von",
    ],
    "credo.adapt": [
        "ChangeProbability",
        "ChangeTimes",
        "Experts",
        "GammaWeight",
        "InverseWishartNoise",
        "LearnedHazard",
        "OutlierIndicator",
        "PriorReset",
        "RunLength",
        "SoftReset",
        "StudentTNoise",
        "WeightedPast",
        "WoLF",
        "alarms",
        "segmentation",
    ],
    "credo.streams": ["Report", "Selection", "evaluate", "load", "run", "save", "select"],
}
_SUBMODULES = [
    "adapt",
    "beliefs",
    "core",
    "covariances",
    "datasets",
    "dynamics",
    "ekf",
    "learners",
    "likelihoods",
    "metrics",
    "models",
    "streams",
    "tables",
]
_WHERE = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = sorted([*_WHERE, *_SUBMODULES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(importlib.import_module(_WHERE[name]), name)
        globals()[name] = value
        return value
    if name in _SUBMODULES:
        return importlib.import_module(f"credo.{name}")
    raise AttributeError(f"module 'credo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
