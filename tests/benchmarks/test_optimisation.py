"""Credo's default learner as a problem of Bayesian optimisation, and regrets without a known minimum."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import credo


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "XLA_FLAGS"):  # what the benchmark would set
        monkeypatch.setenv(name, os.environ.get(name, ""))


@pytest.fixture
def learning(benchmarks: None) -> Any:
    return importlib.import_module("optimisation_learning")


@pytest.fixture
def optimisation(benchmarks: None) -> Any:
    return importlib.import_module("optimisation")


def leaves(learner: Any) -> list[np.ndarray]:
    return [np.asarray(leaf, float) for leaf in jax.tree.leaves(learner)]


@pytest.mark.slow
def test_the_default_point_is_the_default_learner_and_each_number_is_one_of_its_own(learning: Any) -> None:
    learner: Any = credo.auto(3)
    point, bank = learning.default_point(), learner.learner
    default = leaves(learning.tuned(bank, point))
    # 10^log10(3) is 3 but for the last digit of single precision
    for ours, its in zip(default, leaves(bank), strict=True):
        np.testing.assert_allclose(ours, its, rtol=1e-6)
    changed = []
    for place in range(20):
        moved = leaves(learning.tuned(bank, point + 0.1 * np.eye(20)[place]))
        gaps = zip(moved, default, strict=True)
        changed.append(frozenset(k for k, (one, other) in enumerate(gaps) if not np.array_equal(one, other)))
    assert all(changed) and len(set(changed)) == 20
    assert all(one.low <= one.default <= one.high for one in learning.HYPERPARAMETERS)


@pytest.mark.thorough
def test_each_of_the_20_numbers_changes_the_loss_which_is_finite_in_the_corners(learning: Any) -> None:
    problem, point = learning.Learning("diabetes", 20), learning.default_point()
    low, high = np.array([(one.low, one.high) for one in learning.HYPERPARAMETERS], float).T
    value = problem(point)
    assert problem(point) == value and 0.5 < value < 1.8  # a standard normal forecast costs 1.42 nats
    # no input is beyond the sizes at which members clip, so that larger ones would change nothing
    far = np.where(["clip" in one.name for one in learning.HYPERPARAMETERS], low, high)
    for place, one in enumerate(learning.HYPERPARAMETERS):
        moved = problem(np.where(np.arange(20) == place, far, point))
        assert abs(moved - value) > 2e-5, one.name
    corners = np.random.default_rng(0).random((6, 20)) < 0.5
    losses = [problem(np.where(corner, low, high)) for corner in corners]
    assert np.all(np.isfinite(losses)) and max(losses) <= learning.LOST


def test_a_row_that_was_not_learned_costs_the_most(learning: Any) -> None:
    densities = np.array([-1.0, 0.5, -50.0, -np.inf, np.nan, 0.0])
    costs = learning.cost(densities, np.array([True] * 5 + [False]))
    assert costs.tolist() == [1.0, -0.5, 20.0, 20.0, 20.0, 20.0]


def test_regrets_are_above_the_best_value_of_all_runs_if_no_minimum_is_known(
    optimisation: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def write(method: str, name: str, answer: float, least: float) -> None:
        (tmp_path / method).mkdir(exist_ok=True)
        run = {"answer": answer, "best": answer, "curve": [2.0, least], "seconds": 0.001}
        (tmp_path / method / f"{name}.json").write_text(json.dumps(run))

    write("random", "learn-20-0", 1.5, 1.5)
    write("credo", "learn-20-0", 1.25, 1.0)  # its best value is not the one that it recommends
    write("credo", "learn-20-diabetes-0", 0.5, 0.5)
    write("credo", "branin-0", 0.75, 0.75)
    optimisation.tables(tmp_path, ["learn-20", "branin"], 1)
    lines = capsys.readouterr().out.splitlines()
    assert "| learn-20 | 0.5 | 0.25 |" in lines and "| branin |  | 0.75 |" in lines
    assert sum(line.startswith("| learn-20") for line in lines) == 1  # it has no noisy variant


def test_a_problem_without_noise_is_not_run_with_it(optimisation: Any, tmp_path: Path) -> None:
    optimisation.fill(tmp_path, "random", ["learn-20"], 1, [True])
    assert not list(tmp_path.rglob("*.json"))
    result = optimisation.run("random", "branin", False, 0)
    assert result["curve"] == sorted(result["curve"], reverse=True) and result["answer"] > 0
