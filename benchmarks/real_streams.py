"""Real streams, row by row: how fast the defaults of credo and of its peers predict and learn.

Every method sees the raw columns in their order, predicts a row, and then learns it. Nothing is tuned: each
is used as its documentation shows for a stream. `defaults.py` has their scores, on whole streams.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

import credo
from credo.sessions import Session

LINEAR = "River, scaled linear or logistic regression"
LABELS = ("electricity", "banana", "phishing", "segments")
NUMBERS = ("power-plant", "kin8nm")

Predict: TypeAlias = Callable[[np.ndarray], np.ndarray]
Learn: TypeAlias = Callable[[np.ndarray, float], None]
Peer: TypeAlias = tuple[str, Predict, Learn]


def river_labels(classes: int) -> Iterator[Peer]:
    """River's scaled logistic regression, and its adaptive random forest."""
    from river import forest, linear_model, multiclass, preprocessing

    logistic: Any = linear_model.LogisticRegression()
    many = logistic if classes == 2 else multiclass.OneVsRestClassifier(logistic)
    yield _river(LINEAR, preprocessing.StandardScaler() | many, classes)
    yield _river("River, adaptive random forest", forest.ARFClassifier(seed=0), classes)


def river_numbers() -> Iterator[Peer]:
    """River's scaled linear regression, and its adaptive random forest."""
    from river import forest, linear_model, preprocessing

    linear = preprocessing.TargetStandardScaler(linear_model.LinearRegression())
    yield _river(LINEAR, preprocessing.StandardScaler() | linear, 0)
    yield _river("River, adaptive random forest", forest.ARFRegressor(seed=0), 0)


def _river(name: str, model: Any, classes: int) -> Peer:
    def row(x: np.ndarray) -> dict[int, float]:
        return dict(enumerate(x.tolist()))

    def predict(x: np.ndarray) -> np.ndarray:
        if not classes:
            return np.array([model.predict_one(row(x))])
        probs = model.predict_proba_one(row(x))
        return np.array([probs.get(label, 0.0) for label in range(classes)])

    def learn(x: np.ndarray, y: float) -> None:
        model.learn_one(row(x), int(y) if classes else y)

    return name, predict, learn


def vowpal_wabbit(classes: int) -> Iterator[Peer]:
    """Vowpal Wabbit with its defaults: adaptive, normalised, invariant updates of a linear model."""
    workspace: Any = importlib.import_module("vowpalwabbit").Workspace

    many = f"--oaa {classes} --probabilities --loss_function logistic"
    options = {0: "", 2: "--loss_function logistic --link logistic"}.get(classes, many)
    model = workspace(f"{options} --quiet")

    def text(x: np.ndarray) -> str:
        return "| " + " ".join(f"{i}:{value:.7g}" for i, value in enumerate(x))

    def predict(x: np.ndarray) -> np.ndarray:
        answer = model.predict(text(x))
        if classes == 2:
            return np.array([1.0 - answer, answer])
        return np.atleast_1d(answer)

    def learn(x: np.ndarray, y: float) -> None:
        label = {0: f"{y:.7g}", 2: "1" if y > 0 else "-1"}.get(classes, str(int(y) + 1))
        model.learn(f"{label} {text(x)}")

    yield "Vowpal Wabbit", predict, learn


def scikit_learn(classes: int) -> Iterator[Peer]:
    """scikit-learn's scaler and linear model by stochastic gradients, `partial_fit` with one row a call."""
    from sklearn.linear_model import SGDClassifier, SGDRegressor
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler()
    model: Any = SGDClassifier(loss="log_loss", random_state=0) if classes else SGDRegressor(random_state=0)
    begun = False

    def predict(x: np.ndarray) -> np.ndarray:
        if not begun:
            if classes:
                return np.full(classes, 1.0 / classes)
            return np.zeros(1)
        row = scaler.transform(x[None])
        answer: np.ndarray = model.predict_proba(row)[0] if classes else model.predict(row)
        return answer

    def learn(x: np.ndarray, y: float) -> None:
        nonlocal begun
        row = scaler.partial_fit(x[None]).transform(x[None])
        if classes:
            model.partial_fit(row, [int(y)], classes=np.arange(classes))
        else:
            model.partial_fit(row, [y])
        begun = True

    yield "scikit-learn, scaler and SGD, partial_fit", predict, learn


def speed(predict: Predict, learn: Learn, x: np.ndarray, y: np.ndarray) -> float:
    """Rows a second, each of them predicted and then learned."""
    started = time.perf_counter()
    for row, target in zip(x, y, strict=True):
        predict(row)
        learn(row, target)
    return len(y) / (time.perf_counter() - started)


def ours(x: np.ndarray, y: np.ndarray, classes: int, model: str | None = None) -> float:
    """Rows a second of a session with credo's defaults: the second of two, without compilation."""
    rows = {f"x{i}": column for i, column in enumerate(x.T)} | {"y": y.astype(str) if classes else y}
    sessions = [
        Session.from_rows(rows, "y", task="classification" if classes else "regression", model=model)
        for _ in range(2)
    ]
    sessions[0].learn(rows)
    started = time.perf_counter()
    sessions[1].learn(rows)
    return len(y) / (time.perf_counter() - started)


def stream(name: str) -> tuple[np.ndarray, np.ndarray, int]:
    """The rows of a data set in their order, with the columns that vary, and how many classes there are."""
    data = credo.datasets.load(name)
    x = data.x.reshape(len(data.x), -1).astype(float)
    y = data.y.astype(float)
    return x[:, x.std(axis=0) > 0], y, len(data.class_names)


def markdown(scale: float = 1.0) -> str:
    """A section with a row for each method, and a column for each stream."""
    names = (*LABELS, *NUMBERS)
    sizes = list[str]()
    speeds: dict[str, list[float]] = {}
    for name in names:
        x, y, classes = stream(name)
        x = x[: int(len(x) * scale)]
        y = y[: int(len(y) * scale)]
        sizes.append(f"{name} {len(x):,} by {x.shape[1]}")
        speeds.setdefault("credo, default", []).append(ours(x, y, classes))
        speeds.setdefault("credo, linear", []).append(ours(x, y, classes, model="linear"))
        river = river_labels(classes) if classes else river_numbers()
        for what, predict, learn in (*river, *vowpal_wabbit(classes), *scikit_learn(classes)):
            speeds.setdefault(what, []).append(speed(predict, learn, x, y))
        print(name, {what: round(some[-1]) for what, some in speeds.items()}, flush=True)
    lines = [f"| {what} | {' | '.join(f'{one:,.0f}' for one in some)} |" for what, some in speeds.items()]
    return "\n".join(
        [
            "## real streams: rows a second\n",
            "Defaults, nothing tuned; each row is predicted and then learned. "
            "credo goes through the rows in compiled chunks, the peers one row a call.",
            f"Rows and columns: {', '.join(sizes)}. The scores are [above](#scores-on-streams).\n",
            f"| what | {' | '.join(names)} |",
            f"|---|{'--:|' * len(names)}",
            *lines,
        ]
    )
