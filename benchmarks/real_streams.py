"""Real streams, row by row: what the defaults of credo and of its peers predict, and how fast.

Every method sees the raw columns in their order, predicts a row, and then learns it. Nothing is tuned: each
is used as its documentation shows for a stream. The log loss of probabilities is cut off at 1e-7.
"""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

import credo
from credo.sessions import Session

LABELS, NUMBERS = ("electricity", "banana", "phishing", "segments"), ("power-plant", "kin8nm")
FEWEST = 1e-7

Predict: TypeAlias = Callable[[np.ndarray], np.ndarray]
Learn: TypeAlias = Callable[[np.ndarray, float], None]
Peer: TypeAlias = tuple[str, Predict, Learn]


@dataclass(frozen=True)
class Scores:
    """Over a stream: the error (or the RMSE in units of the target's spread), the log loss, rows a second."""

    name: str
    error: float
    log_loss: float | None
    rows_per_second: float


def river_labels(classes: int) -> Iterator[Peer]:
    """River's scaled logistic regression, and its adaptive random forest."""
    from river import forest, linear_model, multiclass, preprocessing

    logistic: Any = linear_model.LogisticRegression()
    many = logistic if classes == 2 else multiclass.OneVsRestClassifier(logistic)
    yield _river("River, scaled logistic regression", preprocessing.StandardScaler() | many, classes)
    yield _river("River, adaptive random forest", forest.ARFClassifier(seed=0), classes)


def river_numbers() -> Iterator[Peer]:
    """River's scaled linear regression, and its adaptive random forest."""
    from river import forest, linear_model, preprocessing

    linear = preprocessing.TargetStandardScaler(linear_model.LinearRegression())
    yield _river("River, scaled linear regression", preprocessing.StandardScaler() | linear, 0)
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
        return np.array([1.0 - answer, answer]) if classes == 2 else np.atleast_1d(answer)

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
            return np.full(classes, 1.0 / classes) if classes else np.zeros(1)
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

    yield f"scikit-learn, scaler and {type(model).__name__}.partial_fit", predict, learn


def judged(name: str, predict: Predict, learn: Learn, x: np.ndarray, y: np.ndarray, classes: int) -> Scores:
    """Predict each row, then learn it."""
    answers = []
    started = time.perf_counter()
    for row, target in zip(x, y, strict=True):
        answers.append(predict(row))
        learn(row, target)
    seconds = time.perf_counter() - started
    return scored(name, np.stack(answers), None, y, classes, seconds)


def scored(
    name: str, answers: np.ndarray, sd: np.ndarray | None, y: np.ndarray, classes: int, seconds: float
) -> Scores:
    """The scores of probabilities (N, classes), or of means (N, 1), with standard deviations or None."""
    speed = len(y) / seconds
    if classes:
        total = answers.sum(axis=1, keepdims=True)
        probs = np.where(total > 0, answers / np.where(total > 0, total, 1.0), 1.0 / classes)
        wrong = probs.argmax(axis=1) != y
        loss = -np.log(np.clip(probs[np.arange(len(y)), y.astype(int)], FEWEST, 1.0))
        return Scores(name, float(wrong.mean()), float(loss.mean()), speed)
    gap = answers[:, 0] - y
    loss = None if sd is None else float(np.mean(0.5 * (gap / sd) ** 2 + np.log(sd * math.sqrt(2 * math.pi))))
    return Scores(name, float(np.sqrt(np.mean(gap**2)) / y.std()), loss, speed)


def ours(name: str, x: np.ndarray, y: np.ndarray, classes: int, model: str | None = None) -> Scores:
    """A session with credo's defaults: the second of two, so that compilation is left out of its time."""
    rows = {f"x{i}": column for i, column in enumerate(x.T)} | {"y": y.astype(str) if classes else y}
    sessions = [
        Session.from_rows(rows, "y", task="classification" if classes else "regression", model=model)
        for _ in range(2)
    ]
    sessions[0].learn(rows)
    started = time.perf_counter()
    sessions[1].learn(rows)
    seconds = time.perf_counter() - started
    scores = sessions[1].metrics()
    error = scores["error"] if classes else scores["rmse"] / y.std()
    return Scores(name, float(error), scores["nlpd"], len(y) / seconds)


def stream(name: str) -> tuple[np.ndarray, np.ndarray, int]:
    """The rows of a data set in their order, with the columns that vary, and how many classes there are."""
    data = credo.datasets.load(name)
    x, y = data.x.reshape(len(data.x), -1).astype(float), data.y.astype(float)
    return x[:, x.std(axis=0) > 0], y, len(data.class_names)


def markdown(scale: float = 1.0) -> str:
    """A section for every stream."""
    lines = []
    for name in (*LABELS, *NUMBERS):
        x, y, classes = stream(name)
        x, y = x[: int(len(x) * scale)], y[: int(len(y) * scale)]
        every = [ours("credo, default", x, y, classes), ours("credo, linear", x, y, classes, model="linear")]
        peers = [
            river_labels(classes) if classes else river_numbers(),
            vowpal_wabbit(classes),
            scikit_learn(classes),
        ]
        every += [judged(*peer, x, y, classes) for group in peers for peer in group]
        error = "error" if classes else "RMSE / sd"
        lines += [
            f"\n## real stream: {name}, {len(x):,} rows, {x.shape[1]} columns\n",
            f"| what | {error} | log loss | rows/s |",
            "|---|--:|--:|--:|",
        ]
        for scores in every:
            loss = "" if scores.log_loss is None else f"{scores.log_loss:.3f}"
            lines.append(f"| {scores.name} | {scores.error:.3f} | {loss} | {scores.rows_per_second:,.0f} |")
            print(name, lines[-1], flush=True)
    return "\n".join(lines)
