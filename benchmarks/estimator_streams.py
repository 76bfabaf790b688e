"""credo's estimators of River beside River's own: progressive validation of three of River's data sets.

    python benchmarks/estimator_streams.py

`river.evaluate.progressive_val_score` asks for a forecast of a row and then has the row learned, from the
first row on and in the order of the stream. All models have the settings that they come with; no setting
was chosen on these rows. River's stand behind `StandardScaler`, but for forests of classes and Mondrian
forests, which need no scale. The target of TrumpApproval is an average that moves slowly: none of the models
is as near to it as the last target, which is none of their features.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from estimator_folds import Row, table
from river import datasets, dummy, evaluate, forest, linear_model, metrics, neighbors, stats
from river import preprocessing as pre

import credo

SEED = 0

Build = Callable[[], Any]


class Stream(NamedTuple):
    """A data set of River.

    Attributes:
        data: makes it.
        metric: makes the score.
        wanted: the score that credo is to reach, with its sense.
        models: who learns it.
    """

    data: Build
    metric: Build
    wanted: str
    models: dict[str, Build]


CLASSIFIERS: dict[str, Build] = {
    "credo auto": credo.RiverClassifier,
    "credo linear": lambda: credo.RiverClassifier("linear"),
    "AMFClassifier": lambda: forest.AMFClassifier(seed=SEED),
    "ARFClassifier": lambda: forest.ARFClassifier(seed=SEED),
    "KNNClassifier": lambda: pre.StandardScaler() | neighbors.KNNClassifier(),
}

REGRESSORS: dict[str, Build] = {
    "credo auto": credo.RiverRegressor,
    "credo linear": lambda: credo.RiverRegressor("linear"),
    "LinearRegression": lambda: pre.StandardScaler() | linear_model.LinearRegression(),
    "LinearRegression, TargetStandardScaler": lambda: (
        pre.StandardScaler() | pre.TargetStandardScaler(linear_model.LinearRegression())
    ),
    "BayesianLinearRegression": lambda: pre.StandardScaler() | linear_model.BayesianLinearRegression(),
    "AMFRegressor": lambda: forest.AMFRegressor(seed=SEED),
    "ARFRegressor": lambda: pre.StandardScaler() | forest.ARFRegressor(seed=SEED),
    "KNNRegressor": lambda: pre.StandardScaler() | neighbors.KNNRegressor(),
    "the last target": lambda: dummy.StatisticRegressor(stats.Shift(0)),
}

STREAMS: dict[str, Stream] = {
    "Phishing": Stream(
        datasets.Phishing,
        metrics.LogLoss,
        "at most 0.31",
        {"LogisticRegression": lambda: pre.StandardScaler() | linear_model.LogisticRegression()}
        | CLASSIFIERS,
    ),
    "ImageSegments": Stream(
        datasets.ImageSegments,
        metrics.MacroF1,
        "at least 0.89",
        {"SoftmaxRegression": lambda: pre.StandardScaler() | linear_model.SoftmaxRegression()} | CLASSIFIERS,
    ),
    "TrumpApproval": Stream(datasets.TrumpApproval, metrics.MAE, "at most 0.60", REGRESSORS),
}


def score(stream: Stream, build: Build) -> tuple[float, float]:
    """The score of a model, and the processor seconds that it took."""
    metric = stream.metric()
    start = time.process_time()
    evaluate.progressive_val_score(stream.data(), build(), metric)
    return float(metric.get()), time.process_time() - start


def judge(name: str, stream: Stream) -> list[Row]:
    """A line for each model; a second turn of credo's shows what is left where nothing is compiled."""
    lines = []
    for model, build in stream.models.items():
        value, seconds = score(stream, build)
        ours = model.startswith("credo")
        again = score(stream, build)[1] if ours else None
        lines.append(
            {
                "data": name,
                "model": model,
                "score": f"{stream.metric.__name__} {value:.3f}",
                "wanted": stream.wanted if ours else "",
                "CPU s": f"{seconds:.2f}",
                "CPU s, compiled before": "" if again is None else f"{again:.2f}",
            }
        )
    return lines


def markdown() -> str:
    """The table."""
    return table([line for name, stream in STREAMS.items() for line in judge(name, stream)])


if __name__ == "__main__":
    print(markdown())
