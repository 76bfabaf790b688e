"""Estimators: credo's learners with the faces of scikit-learn and River.

`OnlineClassifier` and `OnlineRegressor` are estimators of scikit-learn; `RiverClassifier` and
`RiverRegressor` learn from dicts, one row at a time or in batches, as River's models do. Their settings and
defaults are those of `credo learn`; `model="auto"` is the same bank of learners. Each class loads the library
that it belongs to when it is first used, and says what to install if that is absent.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from credo.core.errors import CredoError
from credo.core.extensions import extra

if TYPE_CHECKING:
    from credo.estimators.river_classifier import RiverClassifier
    from credo.estimators.river_regressor import RiverRegressor
    from credo.estimators.sklearn_classifier import OnlineClassifier
    from credo.estimators.sklearn_regressor import OnlineRegressor

__all__ = ["OnlineClassifier", "OnlineRegressor", "RiverClassifier", "RiverRegressor"]

_HOMES = {
    "OnlineClassifier": ("sklearn_classifier", "sklearn", "scikit-learn"),
    "OnlineRegressor": ("sklearn_regressor", "sklearn", "scikit-learn"),
    "RiverClassifier": ("river_classifier", "river", "River"),
    "RiverRegressor": ("river_regressor", "river", "River"),
}
"""The module of each class, the package that it needs, which is also the name of the extra, and its name."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'credo.estimators' has no attribute {name!r}")
    module, package, title = _HOMES[name]
    try:
        importlib.import_module(package)
    except ImportError as error:
        raise CredoError(f"credo.{name} needs {title}: {extra(package)}.") from error
    value: object = getattr(importlib.import_module(f"credo.estimators.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
