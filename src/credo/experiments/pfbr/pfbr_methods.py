"""The table of methods. Another method is another entry."""

from __future__ import annotations

import credo
from credo.experiments.engine.any_learner import AnyLearner
from credo.experiments.pfbr.pfbr_problem import Method, Problem

__all__ = ["LOGISTIC", "METHODS", "NONLINEAR", "NONLINEAR_STATIC", "STATIC", "select"]


def _kalman(problem: Problem, particles: int) -> AnyLearner:
    return credo.extended_kalman(problem.model, dynamics=problem.dynamics)


def _enkf(problem: Problem, particles: int) -> AnyLearner:
    return credo.enkf(problem.model, particles, dynamics=problem.dynamics)


def _etkf(problem: Problem, particles: int) -> AnyLearner:
    return credo.etkf(problem.model, particles, dynamics=problem.dynamics)


def _bootstrap(problem: Problem, particles: int) -> AnyLearner:
    return credo.particle_filter(
        problem.model, particles, problem.dynamics, resampling="multinomial", threshold=1.0
    )


def _systematic(problem: Problem, particles: int) -> AnyLearner:
    return credo.particle_filter(problem.model, particles, problem.dynamics)


_TABLE = (
    Method("exact draws", _kalman, note="from the Kalman posterior"),
    Method("EKF", _kalman),
    Method("stochastic EnKF", _enkf),
    Method("square-root EnKF", _etkf),
    Method("bootstrap", _bootstrap, note="resampled always, multinomially, as published"),
    Method("bootstrap, 8192", _bootstrap, 8192),
    Method("bootstrap, systematic", _systematic, note="resampled where the effective size is below N / 2"),
)

STATIC = ("exact draws", "stochastic EnKF", "square-root EnKF", "bootstrap")
"""Methods for unknowns that stand still, with normal noise."""

NONLINEAR_STATIC = ("bootstrap, systematic",)
"""Methods for unknowns that stand still, with any likelihood."""

LOGISTIC = ("EKF", "bootstrap, systematic")
"""Methods for the weights of a classifier."""

NONLINEAR = ("bootstrap, systematic", "stochastic EnKF", "square-root EnKF")
"""Methods for nonlinear dynamics."""

METHODS: dict[str, Method] = {method.name: method for method in _TABLE}
"""Every method by its name."""


def select(*names: str) -> tuple[Method, ...]:
    """Return some methods of the table.

    Arguments:
        names: of the methods.
    """
    return tuple(METHODS[name] for name in names)
