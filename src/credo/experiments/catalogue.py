"""All experiments by name: one line about each, and where it is written."""

from __future__ import annotations

import importlib

from credo.core.errors import require_choice
from credo.experiments.records import Experiment

__all__ = ["find", "names"]

_BACKGROUND = "background experiments"

# name -> (module, one line, source). The modules import JAX, so they are loaded when they are run.
_CATALOGUE: dict[str, tuple[str, str, str]] = {
    "kf-tracking": (
        "kf_tracking",
        "Track an object in the plane with a Kalman filter",
        f"{_BACKGROUND}: Kalman filter tracking",
    ),
    "kf-linreg": (
        "kf_linreg",
        "Linear regression one row at a time meets ridge regression at the end",
        f"{_BACKGROUND}: recursive linear regression",
    ),
    "moons": (
        "moons",
        "A small neural classifier learns two moons from 200 labels, in one pass",
        f"{_BACKGROUND}: extended Kalman filter classification",
    ),
    "lofi-uci": (
        "lofi_uci",
        "Regressions of UCI in one pass: low-rank filters between diagonal and full",
        "Chang et al. 2023 (LOFI, arXiv 2305.19535)",
    ),
    "lofi-fashion": (
        "lofi_fashion",
        "Fashion-MNIST row by row, standing still and drifting: filters against gradient descent",
        "Chang et al. 2023 (LOFI, arXiv 2305.19535)",
    ),
    "bong-linreg": (
        "bong_linreg",
        "Online linear regression: the grid's divergence from the exact posterior",
        "Jones, Chang & Murphy 2024 (arXiv 2405.19681): linear regression",
    ),
    "bong-logreg": (
        "bong_logreg",
        "Online logistic regression: the grid's divergence from the exact posterior",
        "Jones, Chang & Murphy 2024 (arXiv 2405.19681): logistic regression",
    ),
    "bong-mnist": (
        "bong_mnist",
        "MNIST, one digit at a time: four rules, three curvatures, a low-rank belief",
        "Jones, Chang & Murphy 2024 (arXiv 2405.19681): MNIST",
    ),
    "bong-sarcos": (
        "bong_sarcos",
        "Inverse dynamics of a robot arm: a network with a low-rank posterior, rule by rule",
        "Jones, Chang & Murphy 2024 (arXiv 2405.19681): SARCOS",
    ),
    "bong-timing": (
        "bong_timing",
        "What a step costs against P, R, M, I and C, for every rule, curvature and family",
        "Jones, Chang & Murphy 2024 (arXiv 2405.19681): complexities",
    ),
}


def names() -> dict[str, str]:
    """Every experiment's name, and one line about it.

    >>> list(names())[:2]
    ['kf-tracking', 'kf-linreg']
    """
    return {name: line for name, (_, line, _) in _CATALOGUE.items()}


def find(name: str) -> Experiment:
    """Load an experiment.

    Raises:
        CredoError: no experiment has this name.
    """
    require_choice("experiment", name, _CATALOGUE)
    module, title, source = _CATALOGUE[name]
    return Experiment(name, title, source, importlib.import_module(f"credo.experiments.{module}").run)
