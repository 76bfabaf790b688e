"""The names of methods and tasks, listed in one place that does not import JAX."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

__all__ = ["CURVATURES", "FORECASTS", "RULES", "TASKS", "CurvatureName", "ForecastName", "RuleName", "Task"]

RuleName: TypeAlias = Literal["bong", "blr", "bog", "bbb"]
"""The update rules by their names in the literature."""

CurvatureName: TypeAlias = Literal["lin-hess", "lin-ef", "mc-hess", "mc-ef"]
"""The curvatures by their names in the literature."""

RULES: tuple[RuleName, ...] = get_args(RuleName)
"""All update rules."""

CURVATURES: tuple[CurvatureName, ...] = get_args(CurvatureName)
"""All curvatures."""

ForecastName: TypeAlias = Literal["linearized", "plugin", "mc", "linearized-mc"]
"""The way in which a forecast integrates over the parameters; see `Learner.forecast`."""

FORECASTS: tuple[ForecastName, ...] = get_args(ForecastName)
"""All forecast methods."""

Task: TypeAlias = Literal["classification", "regression", "count"]
"""The kind of target: classes, numbers, or counts, which are whole numbers from 0."""

TASKS: tuple[Task, ...] = get_args(Task)
"""All tasks."""
