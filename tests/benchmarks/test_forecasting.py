"""The comparison of forecasts of series judges all methods by the same rows."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from credo.metrics import normal_crps


@pytest.fixture
def forecasting(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    return importlib.import_module("forecasting")


def test_gaps_are_filled_linearly_and_the_window_is_the_latest_steps(forecasting: Any) -> None:
    assert forecasting.filled(np.array([0, 1, 4]), np.array([1.0, 2.0, 5.0])).tolist() == [1, 2, 3, 4, 5]
    long = forecasting.filled(np.arange(3000), np.arange(3000.0))
    assert len(long) == forecasting.WINDOW and long[-1] == 2999.0


def test_forecasts_are_judged_by_the_rows_after_their_origin(forecasting: Any) -> None:
    times = np.datetime64("2024-01-01T00") + np.array([0, 1, 2, 3, 5, 6]) * np.timedelta64(1, "h")
    y = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    series = forecasting.Series({"t": times, "y": y}, horizon=2, season=2, every=2)

    def last(history: np.ndarray, horizon: int) -> tuple[np.ndarray, np.ndarray]:
        return np.full(horizon, history[-1]), np.full(horizon, 2.0)

    found = forecasting.judge(series, last, [2, 4])
    one, sd = np.ones(1), 2 * np.ones(1)
    wanted = [
        normal_crps(4 * one, 2 * one, sd)[0],  # nothing came an hour after the second origin
        np.mean([normal_crps(8 * one, 2 * one, sd)[0], normal_crps(16 * one, 8 * one, sd)[0]]),
        0.5 * (2 / 2) ** 2 + np.log(2 * np.sqrt(2 * np.pi)),
    ]
    np.testing.assert_allclose(found, wanted)
