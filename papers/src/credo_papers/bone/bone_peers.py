"""Peers: nearest neighbours in a window, and the adaptive learners of River where River is installed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol, TypeAlias

import numpy as np

from credo_papers.bone.bone_world import Streams
from credo_papers.engine.plain_data import Values

__all__ = ["NEIGHBOURS", "Peer", "river_classifiers", "river_regressors", "river_with_detector"]

Predict: TypeAlias = Callable[[Streams, Values, bool], np.ndarray]
"""`predict(streams, values, binary)` returns the mean of every forecast (N, T), for each stream and step. A
forecast is made before its observation is learned."""

Features: TypeAlias = dict[int, float]
"""A row, as River takes it."""


@dataclass(frozen=True)
class Peer:
    """A method of another package.

    Arguments:
        label: its name.
        predict: see `Predict`.
        grid: the values to choose from.
        package: what must be importable; the peer is left out if it is not.
        note: what a reader must know.
        quick: whether it is part of the quick size.
        most: on how many streams it is scored at most, from the first on.
    """

    label: str
    predict: Predict
    grid: Sequence[Values] = ({},)
    package: str = "numpy"
    note: str = ""
    quick: bool = False
    most: int = 1000

    def available(self) -> bool:
        """Whether it can run here."""
        return find_spec(self.package) is not None


def _neighbours(streams: Streams, values: Values, binary: bool) -> np.ndarray:
    """The mean of the k nearest of the last `window` observations; before the first, 1/2 or 0."""
    window = int(values["window"])
    k = int(values["k"])
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


class RiverModel(Protocol):
    """A model of River; it has those of the methods that its kind has."""

    drift_detected: bool

    def predict_proba_one(self, x: Features) -> Mapping[bool, float]: ...
    def predict_one(self, x: Features) -> float | None: ...
    def learn_one(self, x: Features, y: float) -> object: ...
    def update(self, x: float) -> object: ...


def _river(room: str, name: str, **options: object) -> RiverModel:
    """A model of River by its name; River is imported only here."""
    model: RiverModel = getattr(importlib.import_module(f"river.{room}"), name)(**options)
    return model


def _logistic(values: Values) -> RiverModel:
    optimizer = _river("optim", "SGD", lr=values["rate"])
    return _river("linear_model", "LogisticRegression", optimizer=optimizer)


def _rows(xs: np.ndarray, ys: np.ndarray) -> Iterator[tuple[int, Features, float]]:
    """The steps of one stream, as River takes them."""
    for t, (row, y) in enumerate(zip(xs.tolist(), ys.tolist(), strict=True)):
        yield t, dict(enumerate(row)), y


def _online(make: Callable[[Values], RiverModel]) -> Predict:
    """Predictions of a model of River, one row at a time."""

    def predict(streams: Streams, values: Values, binary: bool) -> np.ndarray:
        means = np.empty(streams.y.shape)
        for index in range(len(means)):
            model = make(values)
            for t, x, y in _rows(streams.x[index], streams.y[index]):
                if binary:
                    means[index, t] = model.predict_proba_one(x).get(True, 0.5 if t == 0 else 0.0)
                    model.learn_one(x, y > 0.5)
                else:
                    means[index, t] = model.predict_one(x) or 0.0
                    model.learn_one(x, y)
        return means

    return predict


def _with_detector(streams: Streams, values: Values, binary: bool) -> np.ndarray:
    means = np.empty(streams.y.shape)
    for index in range(len(means)):
        model = _logistic(values)
        detector = _river("drift", "ADWIN")
        for t, x, y in _rows(streams.x[index], streams.y[index]):
            means[index, t] = model.predict_proba_one(x).get(True, 0.5)
            detector.update(float((means[index, t] > 0.5) != (y > 0.5)))
            if detector.drift_detected:
                model = _logistic(values)
            model.learn_one(x, y > 0.5)
    return means


def river_classifiers() -> list[Peer]:
    """Return River's adaptive random forest, its adaptive tree, and its logistic regression."""
    rates = [{"rate": rate} for rate in (0.03, 0.1, 0.3, 1.0)]
    forest = _online(lambda values: _river("forest", "ARFClassifier", n_models=10, seed=0))
    tree = _online(lambda values: _river("tree", "HoeffdingAdaptiveTreeClassifier", grace_period=50, seed=0))
    return [
        Peer("River adaptive random forest (10)", forest, package="river", most=20),
        Peer("River Hoeffding adaptive tree", tree, package="river"),
        Peer("River logistic regression, SGD", _online(_logistic), rates, package="river"),
    ]


def river_with_detector() -> Peer:
    """Return River's logistic regression, made again when ADWIN sees its error change."""
    rates = [{"rate": rate} for rate in (0.01, 0.03, 0.1, 0.3)]
    return Peer("River logistic regression + ADWIN", _with_detector, rates, package="river")


def river_regressors() -> list[Peer]:
    """Return River's Bayesian linear regression with smoothing, and its adaptive tree."""
    smoothing = [{"smoothing": value} for value in (0.9, 0.95, 0.98, 0.99)]
    linear = _online(
        lambda values: _river("linear_model", "BayesianLinearRegression", smoothing=values["smoothing"])
    )
    tree = _online(lambda values: _river("tree", "HoeffdingAdaptiveTreeRegressor", grace_period=50, seed=0))
    return [
        Peer("River Bayesian linear regression", linear, smoothing, package="river"),
        Peer("River Hoeffding adaptive tree", tree, package="river"),
    ]
