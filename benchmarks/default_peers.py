"""The peers of credo's default: River, Vowpal Wabbit, scikit-learn, CapyMOA, as their documentation shows.

Every peer is asked for a forecast of a row, and then learns the row. Text columns are one-hot. A peer says
None where it has no forecast yet. `peers_of` has them by name; a new one is made for every stream. Those that
keep all rows and are fitted anew are in `default_refits.py`.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
from default_capymoa import capymoa_of
from default_refits import Refitted, refits_of

__all__ = ["Peer", "numbers_of", "peers_of"]

Answer: TypeAlias = np.ndarray | None
"""Class probabilities (C,), or a mean and a standard deviation (2,) that is NaN where there is none."""

NEAREST_ROWS = 1000
NEIGHBOURS = 20
"""The rows that the nearest neighbours are sought in, and how many vote for a class, so that few say 0."""


class Peer(Protocol):
    """A learner that takes one row at a time.

    Example:
        >>> peer: Peer = VowpalWabbit(2, "")  # doctest: +SKIP
    """

    def predict(self, x: np.ndarray) -> Answer:
        """The forecast of a row (D,)."""
        ...

    def learn(self, x: np.ndarray, y: float) -> None:
        """Take in a row and its target: a number, or the number of its class."""
        ...


def numbers_of(columns: dict[str, np.ndarray]) -> np.ndarray:
    """The columns as numbers (N, D): text is one-hot, and truth values are 0 and 1.

    A missing number is the mean of those before it in its column, and a further column says where it was
    missing. A missing text is a level as any other.
    """
    parts: list[np.ndarray] = []
    for column in columns.values():
        if column.dtype.kind == "U":
            parts += [column == level for level in np.unique(column)]
            continue
        present = np.isfinite(column)
        parts.append(column if present.all() else _filled(column, present))
        parts += [] if present.all() else [~present]
    return np.stack(parts, axis=1).astype(float)


def _filled(column: np.ndarray, present: np.ndarray) -> np.ndarray:
    total = np.cumsum(np.where(present, column, 0.0))
    count = np.cumsum(present)
    filled: np.ndarray = np.where(present, column, total / np.maximum(count, 1))
    return filled


class River:
    """A model of River. Rows are dicts."""

    def __init__(self, model: Any, classes: int, with_dist: bool = False) -> None:
        self.model = model
        self.classes = classes
        self.with_dist = with_dist
        self.rows = 0

    def predict(self, x: np.ndarray) -> Answer:
        """Probabilities of the classes so far, or a number."""
        row = dict(enumerate(x.tolist()))
        if self.classes:
            probs = self.model.predict_proba_one(row)
            if probs:
                return np.array([probs.get(label, 0.0) for label in range(self.classes)])
            return None
        if not self.rows:
            return None
        if self.with_dist:
            distribution = self.model.predict_one(row, with_dist=True)
            return np.array([distribution.mu, distribution.sigma])
        return np.array([self.model.predict_one(row), math.nan])

    def learn(self, x: np.ndarray, y: float) -> None:
        """One row."""
        self.rows += 1
        self.model.learn_one(dict(enumerate(x.tolist())), int(y) if self.classes else y)


class Moments:
    """Running means and standard deviations (Welford), to standardise by."""

    def __init__(self, width: int) -> None:
        self.count = 0
        self.mean = np.zeros(width)
        self.squares = np.zeros(width)

    def add(self, x: np.ndarray) -> None:
        """Take in a row."""
        self.count += 1
        gap = x - self.mean
        self.mean += gap / self.count
        self.squares += gap * (x - self.mean)

    @property
    def sd(self) -> np.ndarray:
        """The standard deviations; 1 where nothing has varied."""
        sd = np.sqrt(self.squares / max(self.count, 1))
        return np.where(sd > 0.0, sd, 1.0)

    def standardise(self, x: np.ndarray) -> np.ndarray:
        """A row in units of the standard deviations."""
        units: np.ndarray = (x - self.mean) / self.sd
        return units


class VowpalWabbit:
    """Vowpal Wabbit with its adaptive, normalised, invariant updates, and further options.

    Numbers to predict are standardised online, since a default update moves by a bounded step in their units.
    """

    def __init__(self, classes: int, options: str) -> None:
        many = f"--oaa {classes} --probabilities --loss_function logistic"
        task = {0: "", 2: "--loss_function logistic --link logistic"}.get(classes, many)
        workspace: Any = importlib.import_module("vowpalwabbit").Workspace
        self.model = workspace(f"{task} {options} --quiet")
        self.classes = classes
        self.targets = Moments(1)

    def predict(self, x: np.ndarray) -> Answer:
        """Probabilities, or a number."""
        answer = self.model.predict(_text(x))
        if self.classes == 0:
            return np.array([self.targets.mean[0] + self.targets.sd[0] * answer, math.nan])
        if self.classes == 2:
            return np.array([1.0 - answer, answer])
        return np.array(answer)

    def learn(self, x: np.ndarray, y: float) -> None:
        """One row."""
        if self.classes == 0:
            self.targets.add(np.array([y]))
            label = f"{self.targets.standardise(np.array([y]))[0]:.9g}"
        else:
            label = ("1" if y > 0 else "-1") if self.classes == 2 else str(int(y) + 1)
        self.model.learn(f"{label} {_text(x)}")


def _text(x: np.ndarray) -> str:
    return "| " + " ".join(f"{place}:{value:.9g}" for place, value in enumerate(x.tolist()) if value)


class ScikitLearn:
    """A model of scikit-learn by `partial_fit`, one row a call, on inputs and numbers standardised online."""

    def __init__(self, model: Any, classes: int) -> None:
        self.model = model
        self.classes = classes
        self.inputs: Moments | None = None
        self.targets = Moments(1)

    def predict(self, x: np.ndarray) -> Answer:
        """Probabilities, or a number."""
        if self.inputs is None:
            return None
        row = self.inputs.standardise(x)[None]
        if self.classes:
            return np.asarray(self.model.predict_proba(row)[0])
        z = float(self.model.predict(row)[0])
        return np.array([self.targets.mean[0] + self.targets.sd[0] * z, math.nan])

    def learn(self, x: np.ndarray, y: float) -> None:
        """One row."""
        self.inputs = self.inputs or Moments(len(x))
        self.inputs.add(x)
        row = self.inputs.standardise(x)[None]
        if self.classes:
            self.model.partial_fit(row, [int(y)], classes=np.arange(self.classes))
        else:
            self.targets.add(np.array([y]))
            self.model.partial_fit(row, self.targets.standardise(np.array([y])))


def peers_of(classes: int) -> dict[str, Callable[[], Peer | Refitted]]:
    """The peers by name: those of a classification, or of a regression where there are 0 classes."""
    from sklearn.linear_model import SGDClassifier, SGDRegressor
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    peers: dict[str, Callable[[], Peer | Refitted]] = dict(
        _river_labels(classes) if classes else _river_numbers()
    )
    for words, options in (("plain", ""), ("-q ::", "-q ::"), ("--nn 10", "--nn 10")):
        peers[f"VW {words}"] = partial(VowpalWabbit, classes, options)
    if classes:
        peers["sklearn SGD"] = lambda: ScikitLearn(SGDClassifier(loss="log_loss", random_state=0), classes)
        peers["MLP Adam"] = lambda: ScikitLearn(MLPClassifier(random_state=0), classes)
    else:
        peers["sklearn SGD"] = lambda: ScikitLearn(SGDRegressor(random_state=0), 0)
        peers["MLP Adam"] = lambda: ScikitLearn(MLPRegressor(random_state=0), 0)
    return peers | refits_of(classes) | capymoa_of(classes)


def _river_labels(classes: int) -> dict[str, Callable[[], Peer]]:
    from river import ensemble, forest, linear_model, multiclass, naive_bayes, neighbors, preprocessing, tree

    scaler = preprocessing.StandardScaler
    logistic = linear_model.LogisticRegression

    def linear() -> Any:
        if classes == 2:
            return logistic()
        return multiclass.OneVsRestClassifier(logistic())

    def nearest() -> Any:
        engine = neighbors.LazySearch(window_size=NEAREST_ROWS)
        return neighbors.KNNClassifier(n_neighbors=NEIGHBOURS, engine=engine)

    models: dict[str, Callable[[], Any]] = {"River linear": lambda: scaler() | linear()}
    if classes > 2:
        models["River softmax"] = lambda: scaler() | linear_model.SoftmaxRegression()
    models |= {
        "River HAT": lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=0),
        "River ARF": lambda: forest.ARFClassifier(seed=0),
        "River AMF": lambda: forest.AMFClassifier(seed=0),
        "River AMF, scaled": lambda: scaler() | forest.AMFClassifier(seed=0),
        "River AMF, min-max": lambda: preprocessing.MinMaxScaler() | forest.AMFClassifier(seed=0),
        "River SRP": lambda: ensemble.SRPClassifier(seed=0),
        "River KNN": lambda: scaler() | nearest(),
        "River NB": lambda: scaler() | naive_bayes.GaussianNB(),
    }
    return {name: partial(_river, make, classes) for name, make in models.items()}


def _river_numbers() -> dict[str, Callable[[], Peer]]:
    from river import ensemble, forest, linear_model, neighbors, preprocessing, tree

    scaler = preprocessing.StandardScaler
    target = preprocessing.TargetStandardScaler
    bayesian = linear_model.BayesianLinearRegression

    def nearest() -> Any:
        engine = neighbors.LazySearch(window_size=NEAREST_ROWS)
        return neighbors.KNNRegressor(engine=engine, aggregation_method="weighted_mean")

    models: dict[str, Callable[[], Any]] = {
        "River linear": lambda: scaler() | target(linear_model.LinearRegression()),
        "River BLR, scaled": lambda: scaler() | target(bayesian()),
        "River HAT": lambda: scaler() | tree.HoeffdingAdaptiveTreeRegressor(seed=0),
        "River ARF": lambda: scaler() | forest.ARFRegressor(seed=0),
        "River AMF": lambda: forest.AMFRegressor(seed=0),
        "River AMF, scaled": lambda: scaler() | forest.AMFRegressor(seed=0),
        "River AMF, min-max": lambda: preprocessing.MinMaxScaler() | forest.AMFRegressor(seed=0),
        "River SRP": lambda: scaler() | ensemble.SRPRegressor(seed=0),
        "River KNN": lambda: scaler() | nearest(),
    }
    with_dist: dict[str, Callable[[], Peer]] = {"River BLR": lambda: River(bayesian(), 0, with_dist=True)}
    return with_dist | {name: partial(_river, make, 0) for name, make in models.items()}


def _river(make: Callable[[], Any], classes: int) -> Peer:
    return River(make(), classes)
