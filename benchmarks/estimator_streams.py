"""credo's estimators for River beside River's own, by progressive validation on three of River's streams.

    python benchmarks/estimator_streams.py

Every model forecasts a row and then learns it. River's models stand behind its `StandardScaler`, with the
settings of its documentation; credo's have no settings but the model.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from river import datasets, evaluate, linear_model, metrics, preprocessing

import credo

Build = Callable[[], Any]


def scaled(model: Any) -> Any:
    """A model of River's behind its scaler."""
    return preprocessing.StandardScaler() | model


CLASSIFIERS: dict[str, Build] = {
    "credo auto": lambda: credo.RiverClassifier(),
    "credo linear": lambda: credo.RiverClassifier("linear"),
}
REGRESSORS: dict[str, Build] = {
    "credo auto": lambda: credo.RiverRegressor(),
    "credo linear": lambda: credo.RiverRegressor("linear"),
}
STREAMS: list[tuple[str, Build, Build, dict[str, Build]]] = [
    (
        "phishing, log loss",
        datasets.Phishing,
        metrics.LogLoss,
        CLASSIFIERS | {"River LogisticRegression": lambda: scaled(linear_model.LogisticRegression())},
    ),
    (
        "image segments, macro F1",
        datasets.ImageSegments,
        metrics.MacroF1,
        CLASSIFIERS | {"River SoftmaxRegression": lambda: scaled(linear_model.SoftmaxRegression())},
    ),
    (
        "Trump approval, MAE",
        datasets.TrumpApproval,
        metrics.MAE,
        REGRESSORS
        | {
            "River LinearRegression": lambda: scaled(linear_model.LinearRegression(intercept_lr=0.1)),
            "River BayesianLinearRegression": lambda: scaled(linear_model.BayesianLinearRegression()),
        },
    ),
]
"""Each stream with its score, and the models that go through it."""


def markdown() -> str:
    """The table."""
    lines = ["| stream and score | model | score | us a row, compilation included |", "|---|---|--:|--:|"]
    for title, stream, metric, models in STREAMS:
        for name, build in models.items():
            started, count = time.process_time(), stream().n_samples
            score = evaluate.progressive_val_score(stream(), build(), metric()).get()
            us = 1e6 * (time.process_time() - started) / count
            lines.append(f"| {title} | {name} | {score:.4f} | {us:,.0f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(markdown())
