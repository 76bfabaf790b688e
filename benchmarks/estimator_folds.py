"""credo's estimators of scikit-learn beside scikit-learn's own: five folds of four small sets.

    python benchmarks/estimator_folds.py

Each estimator sees the rows of four folds once, in one shuffled order, and forecasts the fifth. Classifiers
are judged by accuracy and log loss, regressors by R2, the log density and the coverage of 90% intervals. The
peers are those that people use, standardised as they advise: SGDClassifier with the log loss, which also goes
through rows one by one (with as many passes as it likes), LogisticRegression and BayesianRidge, which solve.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.linear_model import BayesianRidge, LogisticRegression, SGDClassifier
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import credo

FOLDS = 5
SEED = 0
CLASSES = {"digits": load_digits, "breast cancer": load_breast_cancer, "wine": load_wine}

Row = dict[str, str]


CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "credo auto": credo.OnlineClassifier,
    "credo linear": lambda: credo.OnlineClassifier("linear", drift="none"),
    "credo auto, 5 passes": lambda: credo.OnlineClassifier(passes=5),
    "credo linear, 5 passes": lambda: credo.OnlineClassifier("linear", drift="none", passes=5),
    "SGDClassifier": lambda: make_pipeline(
        StandardScaler(), SGDClassifier(loss="log_loss", random_state=SEED)
    ),
    "LogisticRegression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
}

REGRESSORS: dict[str, Callable[[], Any]] = {
    "credo auto": credo.OnlineRegressor,
    "credo linear": lambda: credo.OnlineRegressor("linear", drift="none"),
    "BayesianRidge": BayesianRidge,
}


def judge_classes(data: str, name: str, build: Callable[[], Any]) -> Row:
    """The mean scores of a classifier over the folds."""
    X, y = CLASSES[data](return_X_y=True)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    accuracy = []
    loss = []
    start = time.process_time()
    for train, test in folds.split(X, y):
        train = np.random.default_rng(SEED).permutation(train)
        fitted = build().fit(X[train], y[train])
        probs = fitted.predict_proba(X[test])
        accuracy.append(accuracy_score(y[test], fitted.classes_[probs.argmax(axis=1)]))
        loss.append(log_loss(y[test], probs))
    seconds = time.process_time() - start
    return {
        "data": data,
        "estimator": name,
        "accuracy": f"{np.mean(accuracy):.3f}",
        "log loss": f"{np.mean(loss):.3f}",
        "CPU s a fold": f"{seconds / FOLDS:.2f}",
    }


def judge_numbers(name: str, build: Callable[[], Any]) -> Row:
    """The mean scores of a regressor over the folds of the diabetes data."""
    X, y = load_diabetes(return_X_y=True)
    r2 = []
    density = []
    inside = []
    start = time.process_time()
    for train, test in KFold(FOLDS, shuffle=True, random_state=SEED).split(X):
        train = np.random.default_rng(SEED).permutation(train)
        fitted = build().fit(X[train], y[train])
        mean, sd = fitted.predict(X[test], return_std=True)
        r2.append(r2_score(y[test], mean))
        if isinstance(fitted, credo.OnlineRegressor):
            low, high = fitted.predict_interval(X[test], coverage=0.9).T
            density.append(fitted.log_score(X[test], y[test]))
        else:
            low = mean - 1.645 * sd
            high = mean + 1.645 * sd
            density.append(np.mean(-0.5 * ((y[test] - mean) / sd) ** 2 - np.log(sd * np.sqrt(2 * np.pi))))
        inside.append(np.mean((low <= y[test]) & (y[test] <= high)))
    seconds = time.process_time() - start
    return {
        "data": "diabetes",
        "estimator": name,
        "R2": f"{np.mean(r2):.3f}",
        "log density": f"{np.mean(density):.3f}",
        "coverage of 90%": f"{np.mean(inside):.3f}",
        "CPU s a fold": f"{seconds / FOLDS:.2f}",
    }


def table(rows: list[Row]) -> str:
    """Rows as a table of Markdown."""
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *([row[name] for name in names] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def markdown() -> str:
    """Both tables."""
    classes = [judge_classes(data, name, build) for data in CLASSES for name, build in CLASSIFIERS.items()]
    numbers = [judge_numbers(name, build) for name, build in REGRESSORS.items()]
    return f"{table(classes)}\n\n{table(numbers)}\n"


if __name__ == "__main__":
    print(markdown())
