"""Estimators: credo's learners with the faces of other projects.

`RiverClassifier` and `RiverRegressor` learn from dicts, one row at a time or in batches, as River's models
do. They load River when they are first touched.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from credo.estimators.river_classifier import RiverClassifier
    from credo.estimators.river_regressor import RiverRegressor

__all__ = ["RiverClassifier", "RiverRegressor"]

_FILES = {"RiverClassifier": "river_classifier", "RiverRegressor": "river_regressor"}


def __getattr__(name: str) -> object:
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_FILES[name]}"), name)
