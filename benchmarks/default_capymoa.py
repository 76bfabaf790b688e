"""The forests of CapyMOA with its usual hundred trees. They need Java 17 and `pip install capymoa`."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

__all__ = ["CapyMOA", "capymoa_of"]


def _part(name: str) -> Any:
    """A module of CapyMOA, which starts a JVM."""
    try:
        return importlib.import_module(f"capymoa.{name}")
    except Exception as error:  # without Java it stops with an error of its own
        message = f"CapyMOA needs Java 17 and pip install capymoa ({type(error).__name__}: {error})"
        raise ImportError(message) from error


class CapyMOA:
    """A learner of CapyMOA. Rows are numbers."""

    def __init__(self, kind: str, classes: int) -> None:
        self.stream = _part("stream")
        self.core = _part("core")
        self.make = getattr(_part("classifier" if classes else "regressor"), kind)
        self.classes = classes
        self.schema: Any = None
        self.model: Any = None

    def _instance(self, x: np.ndarray, y: float) -> Any:
        if self.model is None:
            names = [*(f"x{place}" for place in range(len(x))), "y"]
            labels = {"y": [str(label) for label in range(self.classes)]} if self.classes else None
            self.schema = self.stream.Schema.from_custom(names, "y", categories=labels)
            self.model = self.make(self.schema, random_seed=1)
        if self.classes:
            return self.core.LabeledInstance.from_array(self.schema, x, int(y))
        return self.core.RegressionInstance.from_array(self.schema, x, y)

    def predict(self, x: np.ndarray) -> np.ndarray | None:
        """Probabilities, or a number; None before the first row. The label that goes along is always 0."""
        if self.model is None:
            return None
        instance = self._instance(x, 0.0)
        if self.classes == 0:
            number = self.model.predict(instance)
            return np.array([math.nan if number is None else float(number), math.nan])
        votes = self.model.predict_proba(instance)
        if votes is None:
            return None
        probs = np.zeros(self.classes)
        probs[: len(votes)] = votes[: self.classes]
        return probs

    def learn(self, x: np.ndarray, y: float) -> None:
        """One row."""
        instance = self._instance(x, y)
        self.model.train(instance)


def capymoa_of(classes: int) -> dict[str, Callable[[], CapyMOA]]:
    """An adaptive random forest, and random patches (classes) or neighbours in the leaves (numbers)."""
    kinds = {"CapyMOA ARF": "AdaptiveRandomForestClassifier", "CapyMOA SRP": "StreamingRandomPatches"}
    if classes == 0:
        kinds = {"CapyMOA ARF": "AdaptiveRandomForestRegressor", "CapyMOA SOKNL": "SOKNL"}
    return {name: partial(CapyMOA, kind, classes) for name, kind in kinds.items()}
