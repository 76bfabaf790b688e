"""What is compared with what: measures, keeps the numbers in results.json, and writes the pages.

python benchmarks/run.py                  # measure everything
python benchmarks/run.py --only linear    # one part; the others keep their numbers
python benchmarks/run.py --pages          # measure nothing: README, RESULTS.md and the pages of the default
"""

from __future__ import annotations

import argparse
import datetime
import os
from collections.abc import Callable
from pathlib import Path

import changing
import disk
import grid
import jax
import keyed
import numpy as np
import ours
import peers
import real_streams
import result_pages
import service
from result_file import FILE, save_sections
from result_markdown import sections_of
from timing import Table, machine

import credo
import estimators
from credo.core.names import CurvatureName
from credo.covariances import Family


def linear_regression(table: Table, scale: float) -> None:
    """Ten features, one number."""
    rng = np.random.default_rng(0)
    count = int(200_000 * scale)
    x = rng.normal(size=(count, 10)).astype(np.float32)
    y = (x @ rng.normal(size=10) + rng.normal(size=count)).astype(np.float32)
    group = "linear regression, D = 10"
    peer = "River BayesianLinearRegression.learn_one"
    peers.river_bayesian_regression(table, group, x[: count // 40], y[: count // 40])
    ours.scan(table, group, "credo Kalman, scan", *ours.regression(10), x, y)
    ours.loop(table, group, "credo Kalman, Python loop", *ours.regression(10), x[:5000], y[:5000])
    table.compare(group, "credo Kalman, scan", peer)
    table.compare(group, "credo Kalman, Python loop", peer)


def logistic_regression(table: Table, scale: float) -> None:
    """Ten and a hundred features, two classes."""
    rng = np.random.default_rng(1)
    for size in (10, 100):
        count = int((200_000 if size == 10 else 50_000) * scale)
        x = rng.normal(size=(count, size)).astype(np.float32)
        y = (rng.random(count) < 1 / (1 + np.exp(-x @ rng.normal(size=size)))).astype(np.int32)
        group = f"logistic regression, D = {size}"
        few = slice(0, count // 20)
        peers.river_logistic(table, group, x[few], y[few])
        peers.sklearn_sgd(table, group, x[few], y[few], 1)
        peers.sklearn_sgd(table, group, x, y, 1000)
        peer = "posteriors ekf.diag_fisher"
        peers.posteriors_ekf(table, group, peer, x[:300], y[:300], None)
        full = "credo full EKF, scan"
        diagonal = "credo diagonal EKF, scan"
        fisher = "credo diagonal LIN-EF, scan"
        ours.scan(table, group, full, *ours.logistic(size, credo.Full()), x, y)
        ours.scan(table, group, diagonal, *ours.logistic(size, credo.Diagonal()), x, y)
        ours.scan(table, group, fisher, *ours.logistic(size, credo.Diagonal(), "lin-ef"), x, y)
        table.compare(group, full, "River LogisticRegression.learn_one")
        table.compare(group, diagonal, "River LogisticRegression.learn_one")
        table.compare(group, diagonal, "scikit-learn SGDClassifier.partial_fit, 1 rows a call")
        table.compare(group, fisher, peer)


def networks(table: Table, scale: float) -> None:
    """Classifiers with one hidden layer and ten classes, up to P = 100,000."""
    rng = np.random.default_rng(2)
    for inputs, width in ((20, 33), (100, 90), (784, 126)):
        count = int({20: 4000, 100: 2000, 784: 400}[inputs] * scale)
        x = rng.normal(size=(count, inputs)).astype(np.float32)
        y = rng.integers(0, 10, count)
        size = ours.network(width, inputs, credo.Diagonal())[2]
        group = f"network {inputs}-{width}-10, P = {size:,}"
        peer = "posteriors ekf.diag_fisher"
        peers.posteriors_ekf(table, group, peer, x[:200], y[:200], width)
        cases: dict[str, tuple[Family, CurvatureName]] = {
            "credo diagonal LIN-EF, scan": (credo.Diagonal(), "lin-ef"),
            "credo diagonal EKF (LIN-HESS), scan": (credo.Diagonal(), "lin-hess"),
            "credo low-rank-10 LIN-EF, scan": (credo.LowRank(10), "lin-ef"),
            "credo low-rank-10 LIN-HESS (LOFI), scan": (credo.LowRank(10), "lin-hess"),
        }
        if size < 2000:
            cases["credo full EKF, scan"] = (credo.Full(), "lin-hess")
        for what, (family, curvature) in cases.items():
            learner, belief, _ = ours.network(width, inputs, family, curvature)
            ours.scan(table, group, what, learner, belief, x, y)
            table.compare(group, what, peer)


def everything_of_the_grid(table: Table, scale: float) -> None:
    """The grid against the published updates; its streams have one length."""
    grid.full_grid(table)
    grid.low_rank_grid(table)
    grid.fisher(table)


def of_table(group: Callable[[Table, float], None]) -> Callable[[bool], str]:
    """The sections of a group, which writes rows into a table, of short streams or of long ones."""

    def measure(quick: bool) -> str:
        table = Table()
        group(table, 0.1 if quick else 0.5)
        return table.markdown()

    return measure


MEASURED: dict[str, Callable[[bool], str]] = {
    "linear": of_table(linear_regression),
    "logistic": of_table(logistic_regression),
    "networks": of_table(networks),
    "grid": of_table(everything_of_the_grid),
    "changing": of_table(changing.run_lengths),
    "memory": lambda quick: grid.memory(),
    "streams": lambda quick: real_streams.markdown(0.1 if quick else 1.0),
    "estimators": lambda quick: estimators.markdown(0.25 if quick else 1.0),
    "service": service.markdown,
    "keyed": keyed.markdown,
    "disk": lambda quick: disk.markdown(),
}
"""The parts that `--only` names, and what each writes."""


def conditions() -> str:
    """The machine, the versions, and what else the machine does."""
    blas = os.environ.get("OPENBLAS_NUM_THREADS", "not set")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = (
        f"{cores} of them used, JAX {jax.__version__}, credo {credo.__version__}, OPENBLAS_NUM_THREADS {blas}"
    )
    return f"{machine()}, {versions}, load {os.getloadavg()[0]:.1f} at the end."


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=list(MEASURED))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--pages", action="store_true", help="measure nothing, and write the pages")
    parser.add_argument("--out", type=Path, default=FILE, help="the file of results; %(default)s")
    options = parser.parse_args()
    for name, measure in MEASURED.items():
        if not options.pages and options.only in (None, name):
            text = measure(options.quick)
            today = datetime.datetime.now(datetime.UTC).date().isoformat()
            command = f"`python benchmarks/run.py --only {name}`"
            # kept as soon as it is known, so that a run that ends early has what it measured
            save_sections(sections_of(text, command, today, conditions()), options.out)
    if options.out == FILE:
        result_pages.write()
        print(f"wrote {', '.join(page.name for page in result_pages.PAGES)}")


if __name__ == "__main__":
    main()
