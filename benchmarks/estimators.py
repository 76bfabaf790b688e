"""The estimators beside River and scikit-learn: processor time of a row, five folds, progressive validation.

JAX hands a program that it takes for costly to another thread. For a program as small as one row's update
that costs several times the work, so the calls are measured after
`jax.config.update("jax_cpu_enable_async_dispatch", False)`, which an application says before anything is
computed; a library cannot. (JAX does not look at the environment variable of this name.) `markdown`
therefore starts `python benchmarks/estimators.py calls --synchronous` in a process of its own, and `alone`
without the option in another, which shows what JAX's own choice costs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import ours
from timing import medians

import credo

SIZE = 10
BATCH = 512
LOGISTIC = "River StandardScaler | LogisticRegression, learn_one"
BAYESIAN = "River StandardScaler | BayesianLinearRegression, predict_one and learn_one"
SPREAD = "River StandardScaler | BayesianLinearRegression, predict_one with_dist and learn_one"

Rows: TypeAlias = list[dict[Hashable, object]]
Call: TypeAlias = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """A call that takes `rows` rows, the peer that it is compared with, and what it is to reach.

    Attributes:
        call: what is timed.
        rows: how many rows it takes in.
        peer: the name of the case that its time is divided by, or None.
        most: the most microseconds of processor time that a row may cost, or None.
        ratio: the most that the time may be in units of the peer's, or None.
    """

    call: Call
    rows: int
    peer: str | None = None
    most: float | None = None
    ratio: float | None = None


def data(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ten numbers with locations and spreads of their own, a linear target, and a label."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, SIZE))
    signal = x @ rng.normal(size=SIZE)
    y = signal + rng.normal(size=count)
    label = rng.random(count) < 1 / (1 + np.exp(-signal))
    return 3.0 + x * np.geomspace(0.1, 10.0, SIZE), y, label


def dicts(x: np.ndarray) -> Rows:
    """The rows as River takes them."""
    names = [f"x{i}" for i in range(x.shape[1])]
    return [dict(zip(names, row, strict=True)) for row in x.tolist()]


def learning(model: Any, rows: Rows, targets: list[Any]) -> Call:
    """One row a call; the model goes on from call to call, as it does in service."""

    def go() -> None:
        for row, target in zip(rows, targets, strict=True):
            model.learn_one(row, target)

    return go


def predicting(predict: Callable[[dict[Hashable, object]], object], rows: Rows) -> Call:
    """A forecast for every row."""

    def go() -> None:
        for row in rows:
            predict(row)

    return go


def serving(model: Any, rows: Rows, targets: list[Any], spread: bool = False) -> Call:
    """Forecast a row, then learn it; there is no spread before the first row."""
    model.learn_one(rows[0], targets[0])

    def go() -> None:
        for row, target in zip(rows, targets, strict=True):
            if spread:
                model.predict_one(row, with_dist=True).sigma  # noqa: B018
            else:
                model.predict_one(row)
            model.learn_one(row, target)

    return go


def batches(model: Any, x: np.ndarray, targets: np.ndarray) -> Call:
    """`learn_many` of 512 rows a call."""
    import pandas as pd

    frame = pd.DataFrame(x, columns=[f"x{i}" for i in range(x.shape[1])])
    parts = [slice(start, start + BATCH) for start in range(0, len(x), BATCH)]
    chunks = [(frame.iloc[part], pd.Series(targets[part])) for part in parts]

    def go() -> None:
        for inputs, outputs in chunks:
            model.learn_many(inputs, outputs)

    return go


def river_cases(rows: Rows, numbers: list[float], labels: list[bool]) -> dict[str, Case]:
    """The peers."""
    from river import linear_model, preprocessing

    logistic: Any = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    bayesian: list[Any] = [
        preprocessing.StandardScaler() | linear_model.BayesianLinearRegression() for _ in range(2)
    ]
    return {
        LOGISTIC: Case(learning(logistic, rows, labels), len(rows)),
        BAYESIAN: Case(serving(bayesian[0], rows, numbers), len(rows)),
        SPREAD: Case(serving(bayesian[1], rows, numbers, spread=True), len(rows)),
    }


def one_row(count: int) -> dict[str, Case]:
    """`learn_one` and the forecasts."""
    x, y, label = data(count)
    rows = dicts(x)
    numbers = y.tolist()
    labels = label.tolist()
    classifier = credo.RiverClassifier("linear", posterior="full")
    cases = river_cases(rows, numbers, labels) | {
        "RiverClassifier.learn_one": Case(learning(classifier, rows, labels), count, LOGISTIC, 20, 2.0),
        "RiverClassifier.predict_proba_one": Case(
            predicting(classifier.predict_proba_one, rows), count, None, 25
        ),
    }
    for noise, noise_var in {"known": 1.0, "learned": None}.items():

        def build(noise_var: float | None = noise_var) -> Any:
            return credo.RiverRegressor("linear", posterior="full", noise_var=noise_var)

        cases |= {
            f"RiverRegressor.learn_one, {noise} noise": Case(
                learning(build(), rows, numbers), count, LOGISTIC, 20, 2.0
            ),
            f"RiverRegressor, predict_one and learn_one, {noise} noise": Case(
                serving(build(), rows, numbers), count, BAYESIAN
            ),
            f"RiverRegressor, predict_one with_dist and learn_one, {noise} noise": Case(
                serving(build(), rows, numbers, spread=True), count, SPREAD, None, 1.3
            ),
        }
    return cases


def many_rows(count: int) -> dict[str, Case]:
    """`learn_many`, and the scan of the core."""
    count -= count % BATCH
    x, y, label = data(count)
    learner, belief = ours.regression(SIZE)
    xs = jnp.asarray(x, jnp.float32)
    ys = jnp.asarray(y, jnp.float32)
    classifier = credo.RiverClassifier("linear", posterior="full")
    known = credo.RiverRegressor("linear", posterior="full", noise_var=1.0)
    learned = credo.RiverRegressor("linear", posterior="full")
    return {
        "credo Kalman, scan": Case(
            lambda: jax.block_until_ready(credo.run(learner, belief, xs, ys)), count, None, 0.8
        ),
        f"RiverClassifier.learn_many, {BATCH} rows a call": Case(
            batches(classifier, x, label), count, None, 5
        ),
        f"RiverRegressor.learn_many, {BATCH} rows a call, known noise": Case(
            batches(known, x, y), count, None, 5
        ),
        f"RiverRegressor.learn_many, {BATCH} rows a call, learned noise": Case(
            batches(learned, x, y), count, None, 5
        ),
    }


def calls(scale: float) -> list[str]:
    """Processor time of a row, in this process: the median of seven turns."""
    from river import compose  # noqa: F401  (so that its import is not timed)

    lines = [
        "| what | us a row | rows/s | at most us | against | ratio | at most |",
        "|---|--:|--:|--:|---|--:|--:|",
    ]
    for cases in (one_row(int(4000 * scale)), many_rows(int(65_536 * scale))):
        times = medians({name: case.call for name, case in cases.items()}, 7, time.process_time)
        each = {name: 1e6 * times[name][0] / case.rows for name, case in cases.items()}
        for name, case in cases.items():
            us = each[name]
            ratio = "" if case.peer is None else f"{us / each[case.peer]:.2f}"
            cells = [name, f"{us:.2f}", f"{1e6 / us:,.0f}", f"{case.most or ''}", case.peer or "", ratio]
            cells = [cell.replace("|", r"\|") for cell in [*cells, f"{case.ratio or ''}"]]
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def learn_one_alone(scale: float) -> float:
    """Microseconds of processor time of `RiverClassifier.learn_one`, however JAX dispatches here."""
    case = one_row(int(4000 * scale))["RiverClassifier.learn_one"]
    return 1e6 * medians({"": case.call}, 7, time.process_time)[""][0] / case.rows


def elsewhere(part: str, scale: float, *, synchronous: bool) -> str:
    """What a part prints in a process of its own."""
    command = [sys.executable, str(Path(__file__)), part, "--scale", str(scale)]
    command += ["--synchronous"] * synchronous
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.rstrip()


def markdown(scale: float = 1.0) -> str:
    """The section: calls, folds and streams."""
    import estimator_folds
    import estimator_streams

    otherwise = elsewhere("alone", scale, synchronous=False)
    words = [
        "\n## estimators\n",
        "Processor time, ten features, a full posterior; "
        '`jax.config.update("jax_cpu_enable_async_dispatch", False)`.',
        "A row's ratio is its time over that of the peer beside it, in the same process.\n",
        elsewhere("calls", scale, synchronous=True),
        "",
        f"With JAX's own choice of dispatch `RiverClassifier.learn_one` takes {otherwise} us.\n",
        "### Five folds, one pass\n",
        estimator_folds.markdown(),
        "\n### Progressive validation\n",
        estimator_streams.markdown(),
    ]
    text = "\n".join(words)
    print(text, flush=True)
    return text


def main() -> None:
    """Print one part, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", choices=["calls", "alone"])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--synchronous", action="store_true", help="dispatch in the calling thread")
    options = parser.parse_args()
    if options.synchronous:
        jax.config.update("jax_cpu_enable_async_dispatch", False)
    if options.part == "calls":
        print("\n".join(calls(options.scale)))
    elif options.part == "alone":
        print(f"{learn_one_alone(options.scale):.1f}")
    else:
        markdown(options.scale)


if __name__ == "__main__":
    main()
