"""Scores of forecasts at each horizon."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from credo.live.series import infer_series
from credo.metrics import normal_crps
from credo.recipes.options import SeriesOptions
from credo.sessions import PathForecast
from credo.sessions.horizons import HorizonScores, sample_crps
from credo.sessions.origins import Origins
from credo.tables import Chunk


def test_the_crps_of_a_normal_is_its_integral() -> None:
    """CRPS = integral of (F(x) - 1[x >= y])^2 dx."""
    grid = np.linspace(-30, 30, 600_001)
    for y, mean, sd in ((0.3, 0.0, 1.0), (-2.0, 1.0, 0.5), (4.0, 1.0, 3.0)):
        integral = np.trapezoid((stats.norm.cdf(grid, mean, sd) - (grid >= y)) ** 2, grid)
        found = normal_crps(np.array(y), np.array(mean), np.array(sd))
        assert found == pytest.approx(integral, abs=1e-4)


def test_the_crps_of_draws_is_that_of_all_pairs() -> None:
    rng = np.random.default_rng(0)
    draws, y = rng.normal(size=(7, 3)), rng.normal(size=3)
    total, away = np.abs(draws[:, None] - draws[None]).sum(axis=(0, 1)), np.abs(draws - y).mean(axis=0)
    np.testing.assert_allclose(sample_crps(y, draws), away - total / (7 * 6) / 2, rtol=1e-12)
    np.testing.assert_allclose(sample_crps(y, draws, fair=False), away - total / 49 / 2, rtol=1e-12)


def test_the_crps_of_few_draws_is_right_on_average() -> None:
    rng = np.random.default_rng(0)
    y = np.full(40_000, 0.7)
    found = sample_crps(y, rng.normal(size=(5, 40_000)))
    error = found.std() / 200
    assert abs(found.mean() - normal_crps(np.array(0.7), np.array(0.0), np.array(1.0))) < 4 * error


@pytest.mark.parametrize("draws", [20, 100])
def test_intervals_of_draws_hold_the_next_draw_as_often_as_they_say(draws: int) -> None:
    rng = np.random.default_rng(0)
    paths, y = rng.gamma(2.0, size=(draws, 20_000)), rng.gamma(2.0, size=20_000)
    forecast = PathForecast(np.arange(20_000), [], y, y, paths, paths, paths)
    low, high = forecast.quantile((0.05, 0.95)).T
    error = np.sqrt(0.9 * 0.1 / 20_000)
    assert np.mean((low <= y) & (y <= high)) == pytest.approx(0.9, abs=3 * error)


def test_quantiles_of_a_direct_forecast_are_those_it_was_made_of() -> None:
    levels = (np.arange(100) + 0.5) / 100
    one = np.ones((1, 1))
    forecast = PathForecast(np.array([0]), ["0"], one[0], one[0], stats.norm.ppf(levels)[:, None], one, one)
    # between two of 100 quantiles the normal distribution function is bent by so much
    np.testing.assert_allclose(
        forecast.quantile([0.05, 0.5, 0.95])[0], stats.norm.ppf([0.05, 0.5, 0.95]), atol=3e-3
    )


def test_naive_forecasts_are_as_wide_as_they_were_wrong() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=40).cumsum() + 3 * (np.arange(40) % 4)
    y[11] = np.nan
    rows = Chunk({"t": list(range(40)), "y": y.tolist()}, np.arange(1, 41))
    encoding = infer_series([rows], SeriesOptions("t", "y", 6, lags=[1], seasons=[4]))
    scores = HorizonScores(encoding, 6)
    for start in range(0, 40, 7):  # in parts, as rows come
        scores.note(np.arange(start, min(start + 7, 40)), y[start : start + 7])

    def spread(steps: int) -> float:
        return float(np.sqrt(np.nanmean((y[steps:] - y[:-steps]) ** 2)))

    (naive, naive_sd), (season, season_sd) = scores.naive(39)
    assert naive.tolist() == [y[39]] * 6 and scores.season == 4
    np.testing.assert_allclose(naive_sd, [spread(steps) for steps in range(1, 7)])
    np.testing.assert_array_equal(season, y[[36, 37, 38, 39, 36, 37]])
    np.testing.assert_allclose(season_sd, [spread(4)] * 4 + [spread(8)] * 2)


def test_what_was_learned_counts_for_naive_forecasts_by_its_place() -> None:
    y = np.arange(20.0) ** 2
    rows = Chunk({"t": list(range(20)), "y": y.tolist()}, np.arange(1, 21))
    session: Any = SimpleNamespace(
        encoding=infer_series([rows], SeriesOptions("t", "y", 2, lags=[1])), rows_used=0
    )

    def never(known: Any) -> PathForecast:
        raise AssertionError("is not asked for before enough rows are learned")

    origins = Origins(session, every=6, forecast=never)
    assert [len(part) for part in origins.cut(iter([rows]))] == [6, 6, 6, 2]
    (naive, sd), *_ = origins.scores.naive(19)
    assert naive.tolist() == [y[-1]] * 2
    wanted = [np.sqrt(np.mean((y[steps:] - y[:-steps]) ** 2)) for steps in (1, 2)]
    np.testing.assert_allclose(sd, wanted)


def test_scores_are_means_over_origins_of_what_was_observed() -> None:
    y = np.arange(12.0) % 5 + 0.1 * np.arange(12)
    rows = Chunk({"t": list(range(12)), "y": y.tolist()}, np.arange(1, 13))
    scores = HorizonScores(infer_series([rows], SeriesOptions("t", "y", 2, lags=[1])), 2)
    scores.note(np.arange(12), y)
    means, sds = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 1.0], [2.0, 0.5]])
    forecast = PathForecast(np.array([12, 13]), ["12", "13"], means.mean(0), sds[0], means, means, sds)
    scores.add(forecast, np.array([2.0, np.nan]))
    scores.add(forecast, np.array([0.0, 1.0]))
    summary = scores.summary()
    assert summary["origins"] == 2 and summary["forecasts"] == [2, 1] and summary["season"] is None
    density = np.asarray([np.mean(stats.norm.pdf(at, means[:, 0], sds[:, 0])) for at in (2.0, 0.0)])
    assert summary["nlpd"]["credo"][0] == pytest.approx(-np.mean(np.log(density)))
    assert summary["rmse"]["credo"] == pytest.approx([np.sqrt((0.0 + 4.0) / 2), 2.0])
    assert summary["crps"]["credo"][1] == pytest.approx(sample_crps(np.array([1.0, 1.0]), means)[1])
    assert summary["coverage_90"] == [0.5, 0.0] and set(summary["crps"]) == {"credo", "naive"}
