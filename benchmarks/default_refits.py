"""Peers that keep every row and are fitted anew: an upper line for learners that see each row once."""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

__all__ = ["EVERY", "FIRST_FITS", "Refitted", "refits_of"]

EVERY = 500
"""Rows between two fits."""

FIRST_FITS = (50, 100, 200)
"""Rows after which the first fits come, before the first 500 are there."""


class Refitted:
    """A batch model that is fitted on all rows so far, after 50, 100, 200 and then every 500 rows.

    A row is forecast by the latest fit, which saw only rows before it. Between two fits the model stands
    still, so the rows there are forecast in one call; their targets are read after that.
    """

    def __init__(self, make: Callable[[], Any], classes: int) -> None:
        self.make = make
        self.classes = classes

    def forecasts(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The forecasts of all rows (N, D) in their order: probabilities (N, C), or means and NaN (N, 2).

        They are NaN before the first fit.
        """
        answers = np.full((len(y), self.classes or 2), np.nan)
        starts = [start for start in (*FIRST_FITS, *range(EVERY, len(y), EVERY)) if start < len(y)]
        for start, stop in zip(starts, [*starts[1:], len(y)], strict=True):
            answers[start:stop] = self._fitted(x[:start], y[:start])(x[start:stop])
        return answers

    def _fitted(self, x: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """A function that forecasts rows by a model of these."""
        if self.classes:
            seen, labels = np.unique(y.astype(int), return_inverse=True)
            if len(seen) == 1:
                return partial(_spread_out, lambda rows: np.ones((len(rows), 1)), seen, self.classes)
            model = self.make().fit(x, labels)
            return partial(_spread_out, model.predict_proba, seen, self.classes)
        model = self.make().fit(x, y)

        def numbers(rows: np.ndarray) -> np.ndarray:
            means = np.asarray(model.predict(rows))
            return np.stack([means, np.full(len(rows), math.nan)], axis=1)

        return numbers


def _spread_out(
    predict: Callable[[np.ndarray], np.ndarray], seen: np.ndarray, classes: int, rows: np.ndarray
) -> np.ndarray:
    """Probabilities of all classes (N, C), which are 0 for those that were not seen."""
    probs = np.zeros((len(rows), classes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LightGBM misses names of columns
        probs[:, seen] = predict(rows)
    return probs


def refits_of(classes: int) -> dict[str, Callable[[], Refitted]]:
    """A forest of scikit-learn and LightGBM with their usual settings; the latter where it is installed."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    forest: Any = RandomForestClassifier if classes else RandomForestRegressor

    def boosting() -> Any:
        package = importlib.import_module("lightgbm")
        kind = package.LGBMClassifier if classes else package.LGBMRegressor
        return kind(random_state=0, n_jobs=1, verbose=-1)

    return {
        "forest, refitted": lambda: Refitted(lambda: forest(random_state=0, n_jobs=1), classes),
        "LightGBM, refitted": lambda: Refitted(boosting, classes),
    }
