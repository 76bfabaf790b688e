"""The table of methods. Another method is another entry."""

from __future__ import annotations

import credo
from credo.experiments.engine.any_learner import AnyLearner
from credo.experiments.pfbr.pfbr_problem import Method, Problem

__all__ = ["METHODS", "select"]


def _kalman(problem: Problem, particles: int) -> AnyLearner:
    return credo.extended_kalman(problem.model, dynamics=problem.dynamics)


def _enkf(problem: Problem, particles: int) -> AnyLearner:
    return credo.enkf(problem.model, particles, dynamics=problem.dynamics)


def _etkf(problem: Problem, particles: int) -> AnyLearner:
    return credo.etkf(problem.model, particles, dynamics=problem.dynamics)


_TABLE = (
    Method("exact draws", _kalman, note="from the Kalman posterior"),
    Method("stochastic EnKF", _enkf),
    Method("square-root EnKF", _etkf),
)

METHODS: dict[str, Method] = {method.name: method for method in _TABLE}
"""Every method by its name."""


def select(*names: str) -> tuple[Method, ...]:
    """Return some methods of the table.

    Arguments:
        names: of the methods.
    """
    return tuple(METHODS[name] for name in names)
