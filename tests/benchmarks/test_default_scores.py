"""The scores by which credo's default is compared with its peers."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

SOURCE = Path(__file__).parents[2] / "benchmarks" / "default_scores.py"


def load() -> Any:
    spec = importlib.util.spec_from_file_location("default_scores", SOURCE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


scores = load()


def test_no_probability_is_below_a_millionth_and_a_row_without_a_forecast_is_uniform() -> None:
    probs = scores.bounded(np.array([[2.0, 0.0], [np.nan, np.nan], [0.0, 0.0]]))
    np.testing.assert_allclose(probs.sum(axis=1), 1.0)
    assert probs[0, 1] == pytest.approx(1e-6)
    np.testing.assert_array_equal(probs[1:], 0.5)


def test_a_normal_forecast_is_scored_by_its_density_and_its_crps() -> None:
    y = np.random.default_rng(0).normal(size=5000)
    mean, sd = np.full(5000, 0.3), np.full(5000, 1.2)
    z = (y - mean)[scores.FIRST :] / 1.2
    crps = 1.2 * (z * (2.0 * norm.cdf(z) - 1.0) + 2.0 * norm.pdf(z) - 1.0 / math.sqrt(math.pi))
    table = scores.normal_scores(mean, sd, y)
    assert table["log_loss"] == pytest.approx(-norm.logpdf(y[scores.FIRST :], 0.3, 1.2).mean())
    assert table["crps"] == pytest.approx(
        crps.mean(), rel=5e-3
    )  # twenty quantiles stand for the distribution
    assert table["coverage"] == pytest.approx(np.mean(np.abs(z) <= norm.ppf(0.95)))


def test_the_spread_of_a_forecast_comes_from_the_errors_before_it_but_not_from_the_first() -> None:
    y, mean = np.array([100.0, 1.0, 3.0, 7.0]), np.zeros(4)
    faded = math.sqrt((0.5 * 1.0 + 9.0) / 1.5)
    np.testing.assert_allclose(scores.spread_of_errors(mean, y, 0.5)[2:], [1.0, faded])


def test_a_peer_without_spreads_is_given_the_forgetting_that_suits_it() -> None:
    random = np.random.default_rng(1)
    y = random.normal(size=1000) * np.where(np.arange(1000) < 300, 10.0, 0.1)
    absent = np.full(1000, np.nan)
    best = scores.normal_scores(np.zeros(1000), absent, y)["log_loss"]
    fixed = scores.spread_of_errors(np.zeros(1000), y, 1.0)
    assert best < scores.normal_scores(np.zeros(1000), fixed, y)["log_loss"] - 1.0
