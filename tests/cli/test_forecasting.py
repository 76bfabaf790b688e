"""`credo learn --horizon`: a series is forecast, scored, saved and gone on with."""

from __future__ import annotations

import csv
import datetime as dt
import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command, write

FAST = ("--budget", "fast", "--paths", "10")


def series(path: Path, count: int = 240, blank: int = 0) -> Path:
    """Days with a weekly season and promotions, which the last `blank` rows announce."""
    rng = np.random.default_rng(0)
    sale = rng.random(count + blank) < 0.3
    y = 20 + 4 * (np.arange(count + blank) % 7 > 4) + 6 * sale + 0.5 * rng.normal(size=count + blank)
    days = np.datetime64("2024-01-01") + np.arange(count + blank)
    rows = [
        [day, "yes" if on else "no", "" if row >= count else f"{value:.4f}", f"{value + 1:.3f}"]
        for row, (day, on, value) in enumerate(zip(days, sale, y, strict=True))
    ]
    return write(path, ["day", "sale", "sold", "leak"], rows)


def forecast(folder: Path) -> list[dict[str, str]]:
    with (folder / "forecast.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_a_series_is_forecast_and_scored_beside_the_naive_forecasts(credo: Command, tmp_path: Path) -> None:
    file = series(tmp_path / "shop.csv", blank=3)
    words = ("learn", file, "--time", "day", "--target", "sold", "--horizon", "7", *FAST)
    outcome = credo(*words, "--known", "sale")
    assert outcome.status == 0, outcome.err
    assert "series every day by 'day'" in outcome.err
    assert "column 'leak' is left out: its values are not known in advance; name it in --known" in outcome.err
    assert "forecast of the 7 steps after the last row: runs/shop/forecast.csv" in outcome.err
    assert "CRPS by step ahead" in outcome.out and "seasonal naive" in outcome.out
    assert "Over the next 7 steps the CRPS is" in outcome.out and "2024-08-28" in outcome.out
    data = json.loads((tmp_path / "runs/shop/metrics.json").read_text())
    scores = data["horizons"]
    assert scores["horizon"] == list(range(1, 8)) and scores["origins"] == len(range(35, 240, 7))
    assert np.mean(scores["crps"]["credo"]) < 0.5 * np.mean(scores["crps"]["seasonal_naive"])
    assert all(0.7 < share <= 1.0 for share in scores["coverage_90"])
    lines = forecast(tmp_path / "runs/shop")
    assert [line["time"] for line in lines] == [f"2024-08-{day}" for day in range(28, 32)] + [
        f"2024-09-0{day}" for day in range(1, 4)
    ]
    assert list(lines[0]) == ["step", "time", "mean", "sd", "q05", "q25", "q50", "q75", "q95"]
    announced = [line["sale"] == "yes" for line in csv.DictReader(file.open())][240:]
    for line, on in zip(lines, announced, strict=False):
        weekend = dt.date.fromisoformat(line["time"]).weekday() > 4
        assert abs(float(line["mean"]) - (20 + 4 * weekend + 6 * on)) < 1.5
    assert {"forecast.svg", "horizons.svg"} <= {
        path.name for path in (tmp_path / "runs/shop/plots").iterdir()
    }
    report = (tmp_path / "runs/shop/report.html").read_text()
    assert "CRPS by step ahead" in report and "NLPD by step ahead" in report and "2024-08-28" in report


@pytest.mark.slow
def test_a_run_goes_on_with_its_lags(credo: Command, tmp_path: Path) -> None:
    whole = series(tmp_path / "whole.csv", 120)
    words = ("--time", "day", "--target", "sold", "--horizon", "3", *FAST)
    assert credo("learn", whole, *words, "--out", "all").status == 0
    assert credo("learn", whole, *words, "--limit", 80, "--out", "part").status == 0
    assert forecast(tmp_path / "part")[0]["time"] == "2024-03-21"
    outcome = credo("learn", whole, "--resume", "part", "--paths", "10")
    assert outcome.status == 0, outcome.err
    for ours, wanted in zip(forecast(tmp_path / "part"), forecast(tmp_path / "all"), strict=True):
        assert (ours["time"], ours["mean"]) == (wanted["time"], wanted["mean"])
        # other forecasts were scored, so that the widths are not the same
        assert abs(float(ours["sd"]) / float(wanted["sd"]) - 1) < 0.1


@pytest.mark.slow
def test_bad_times_are_skipped_and_counted_or_refused(credo: Command, tmp_path: Path) -> None:
    file = series(tmp_path / "t.csv", 60)
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:40], lines[39], *lines[40:]]) + "\n")
    words = ("learn", file, "--time", "day", "--target", "sold", "--horizon", "2", *FAST)
    outcome = credo(*words)
    assert outcome.status == 0 and "1 bad row skipped" in outcome.err
    assert "which is in the same step as an earlier row; times must grow" in outcome.err
    outcome = credo(*words, "--strict")
    assert outcome.status == 2 and "line 41 has the time '2024-02-08' in 'day'" in outcome.err


def test_what_does_not_fit_a_series_is_refused_in_a_sentence(credo: Command, tmp_path: Path) -> None:
    file = series(tmp_path / "t.csv", 40)
    for words, sentence in (
        (("--time", "day"), "--time is for a series; give --horizon, too"),
        (("--horizon", "3"), "--time is missing: with --horizon, name the column of times"),
        (("--horizon", "0", "--time", "day"), "--horizon must be a whole number"),
        (
            ("--horizon", "3", "--time", "date"),
            "--time 'date' is no column; the columns are day, sale",
        ),
        (("--horizon", "3", "--time", "sale"), "--time 'sale' must hold times such as 2024-05-01"),
        (
            ("--horizon", "3", "--time", "day", "--lags", "1,x"),
            "--lags must be whole numbers separated",
        ),
        (("--horizon", "3", "--time", "day", "--known", "rain"), "--known 'rain' is no column"),
        (
            ("--horizon", "3", "--time", "day", "--task", "classification"),
            "--task must be regression",
        ),
    ):
        outcome = credo("learn", file, "--target", "sold", *words)
        assert outcome.status == 2 and sentence in outcome.err, outcome.err
    fine = ("learn", file, "--target", "sold", "--horizon", "3", "--time", "day")
    outcome = credo(*fine, "--test", file)
    assert outcome.status == 2 and "--test is for tables" in outcome.err
    assert credo(*fine, *FAST, "--out", "o").status == 0
    outcome = credo("predict", "o/belief.credo", file)
    assert outcome.status == 2 and "which writes the forecast of the next steps" in outcome.err
    outcome = credo("learn", "digits", "--horizon", "3", "--time", "t")
    assert outcome.status == 2 and "--target is missing" in outcome.err
