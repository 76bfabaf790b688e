"""Peers: nearest neighbours in a window, and River's adaptive learners where River is installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from credo.experiments.bone_streams import Streams

__all__ = ["NEIGHBOURS", "Peer", "river_classifiers", "river_regressors"]


@dataclass(frozen=True)
class Peer:
    """A method that is not ours.

    Args:
        label: Its name.
        predict: `predict(streams, values, binary)`, for each stream and step the forecast mean (N, T), made
            before the observation is learned.
        grid: The values to choose from.
        package: What must be importable; it is left out where it is not.
        note: What a reader must know.
        quick: Whether it is part of the quick size.
        most: On how many streams it is scored at most: the first.
    """

    label: str
    predict: Callable[[Streams, Mapping[str, float], bool], np.ndarray]
    grid: Sequence[Mapping[str, float]] = ({},)
    package: str = "numpy"
    note: str = ""
    quick: bool = False
    most: int = 1000

    def available(self) -> bool:
        """Whether it can run here."""
        return find_spec(self.package) is not None


def _neighbours(streams: Streams, values: Mapping[str, float], binary: bool) -> np.ndarray:
    """The mean of the k nearest of the last `window` observations; before the first, 1/2 or 0."""
    window, k = int(values["window"]), int(values["k"])
    means = np.full(streams.y.shape, 0.5 if binary else 0.0)
    for t in range(1, streams.y.shape[1]):
        first = max(0, t - window)
        gaps = np.sum((streams.x[:, first:t] - streams.x[:, t : t + 1]) ** 2, axis=2)
        near = np.argsort(gaps, axis=1)[:, :k]
        means[:, t] = np.take_along_axis(streams.y[:, first:t], near, axis=1).mean(axis=1)
    return means


NEIGHBOURS = Peer(
    "kNN in a window",
    _neighbours,
    [{"window": window, "k": k} for window in (20, 50, 100, 200) for k in (3, 5, 10)],
    quick=True,
)
"""Nearest neighbours among the latest observations; window and k are tuned."""


def _river(make: Callable[[Any], Any]) -> Callable[[Streams, Mapping[str, float], bool], np.ndarray]:
    def predict(streams: Streams, values: Mapping[str, float], binary: bool) -> np.ndarray:
        means = np.empty(streams.y.shape)
        for index, (xs, ys) in enumerate(zip(streams.x, streams.y, strict=True)):
            model = make(values)
            for t, (row, y) in enumerate(zip(xs.tolist(), ys.tolist(), strict=True)):
                x = dict(enumerate(row))
                if binary:
                    means[index, t] = model.predict_proba_one(x).get(True, 0.5 if t == 0 else 0.0)
                    model.learn_one(x, y > 0.5)
                else:
                    means[index, t] = model.predict_one(x) or 0.0
                    model.learn_one(x, y)
        return means

    return predict


def _forest(values: Any) -> Any:
    from river import forest

    return forest.ARFClassifier(n_models=10, seed=0)


def _tree(values: Any) -> Any:
    from river import tree

    return tree.HoeffdingAdaptiveTreeClassifier(grace_period=50, seed=0)


def _logistic(values: Any) -> Any:
    from river import linear_model, optim

    return linear_model.LogisticRegression(optim.SGD(values["rate"]))


def _bayes(values: Any) -> Any:
    from river import linear_model

    return linear_model.BayesianLinearRegression(smoothing=values["smoothing"])


def _trees(values: Any) -> Any:
    from river import tree

    return tree.HoeffdingAdaptiveTreeRegressor(grace_period=50, seed=0)


def river_classifiers() -> list[Peer]:
    """River's adaptive random forest and adaptive tree at their own settings, and its logistic regression."""
    rates = [{"rate": rate} for rate in (0.03, 0.1, 0.3, 1.0)]
    return [
        Peer("River adaptive random forest (10)", _river(_forest), package="river", most=20),
        Peer("River Hoeffding adaptive tree", _river(_tree), package="river"),
        Peer("River logistic regression, SGD", _river(_logistic), rates, package="river"),
    ]


def river_regressors() -> list[Peer]:
    """River's Bayesian linear regression with smoothing, and its adaptive tree."""
    smoothing = [{"smoothing": value} for value in (0.9, 0.95, 0.98, 0.99)]
    return [
        Peer("River Bayesian linear regression", _river(_bayes), smoothing, package="river"),
        Peer("River Hoeffding adaptive tree", _river(_trees), package="river"),
    ]
