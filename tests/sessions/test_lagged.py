"""`Lagged`: a series is learned row by row, and its next steps are forecast."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from credo.core.errors import CredoError, DataError
from credo.sessions import Lagged, Session, paths
from credo.sessions.lagged import groups
from credo.tables.lags import LaggedChunk

HOURS = np.datetime64("2024-01-01T00:00") + np.arange(600) * np.timedelta64(1, "h")


def demand(count: int = 150, seed: int = 0) -> dict[str, list[object]]:
    """Hours with a daily season and noise that remembers."""
    rng = np.random.default_rng(seed)
    noise = np.zeros(count)
    for t in range(1, count):
        noise[t] = 0.7 * noise[t - 1] + 0.3 * rng.normal()
    y = 10 + 3 * np.sin(2 * np.pi * np.arange(count) / 24) + noise
    return {"time": [str(time) for time in HOURS[:count]], "y": y.tolist()}


def part(rows: dict[str, list[object]], start: int, stop: int | None = None) -> dict[str, list[object]]:
    return {name: cells[start:stop] for name, cells in rows.items()}


@pytest.mark.slow
def test_one_step_forecasts_are_bitwise_those_of_lags_by_hand() -> None:
    rows = demand()
    series = Lagged("time", "y", 3, lags=[1, 2, 24], budget="fast")
    series.learn(rows)
    y = np.array(rows["y"], float)

    def lag(steps: int) -> list[float]:
        return [*([float("nan")] * steps), *map(float, y[:-steps])]

    moments = [time.item() for time in HOURS[: len(y)]]
    table: dict[str, list[object]] = {
        "time": rows["time"],
        **{f"y[t-{steps}]": list(lag(steps)) for steps in (1, 2, 24)},
        "hour(time)": [f"{moment.hour:02d} h" for moment in moments],
        "weekday(time)": [f"{moment:%A}" for moment in moments],
        "y": rows["y"],
    }
    by_hand = Session.from_rows(
        part(table, 24), "y", categorical=["hour(time)", "weekday(time)"], budget="fast"
    )
    by_hand.learn(table)
    assert series.encoding.features == by_hand.encoding.features
    assert series.session.metrics() == by_hand.metrics()
    for ours, theirs in zip(
        jax.tree.leaves(series.session.belief), jax.tree.leaves(by_hand.belief), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    following = {
        "time": [str(HOURS[len(y)])],
        **{f"y[t-{steps}]": [y[-steps]] for steps in (1, 2, 24)},
        "hour(time)": ["06 h"],
        "weekday(time)": ["Sunday"],
    }
    wanted = by_hand.predict(following)
    forecast = series.forecast()
    assert wanted.mean is not None and wanted.sd is not None
    assert forecast.times[0] == str(HOURS[len(y)])
    assert forecast.means[0, 0] == wanted.mean[0] and forecast.sds[0, 0] == wanted.sd[0]


def test_recursion_has_the_moments_of_an_autoregression(monkeypatch: pytest.MonkeyPatch) -> None:
    """y_t = a y_(t-1) + s e_t: mean a^h y_0, variance s^2 (1 - a^(2h)) / (1 - a^2)."""
    series = Lagged("t", "y", 6, lags=[1], paths=4000, budget="fast")
    rng = np.random.default_rng(0)
    series.learn({"t": list(range(30)), "y": [*rng.normal(size=29), 2.0]})
    slope, sd = 0.8, 0.5

    def draw(
        session: Session, rows: LaggedChunk, key: jax.Array
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        mean = slope * np.asarray(rows.columns["y[t-1]"])
        return mean, np.full(len(rows), sd), mean + sd * rng.normal(size=len(rows))

    monkeypatch.setattr(paths, "_draw", draw)
    forecast = series.forecast()
    steps = np.arange(1, 7)
    var = sd**2 * (1 - slope ** (2 * steps)) / (1 - slope**2)
    error = np.sqrt(var / 4000)
    assert (np.abs(forecast.mean - 2.0 * slope**steps) < 4 * error).all()
    assert (np.abs(forecast.sd**2 - var) < 4 * var * np.sqrt(2 / 4000)).all()
    np.testing.assert_allclose(np.corrcoef(forecast.paths[:, 4:].T)[0, 1], slope, atol=0.05)


@pytest.mark.slow
def test_forecasts_follow_the_season_and_beat_the_naive_ones() -> None:
    series = Lagged("time", "y", 6, lags=[1, 2, 24], paths=20, budget="fast")
    scores = series.evaluate(demand(300))
    assert scores["origins"] == len(range(48, 300, 6))
    ours, naive = np.mean(scores["crps"]["credo"]), np.mean(scores["crps"]["naive"])
    assert ours < 0.5 * naive and scores["season"] == 24
    assert series.session.rows_used == 300
    learned = Lagged("time", "y", 6, lags=[1, 2, 24], paths=20, budget="fast")
    learned.learn(demand(300))
    assert learned.session.metrics() == series.session.metrics()


@pytest.mark.slow
def test_forecasts_are_as_wide_as_they_were_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of draws that are half as wide as their errors, the widths become two."""
    rng = np.random.default_rng(0)
    series = Lagged("t", "y", 2, lags=[1], paths=50, budget="fast")

    def draw(session: Session, rows: LaggedChunk, key: jax.Array) -> tuple[np.ndarray, ...]:
        count = len(rows)
        return np.zeros(count), np.full(count, 0.5), rng.normal(size=count) / 2

    monkeypatch.setattr(paths, "_draw", draw)
    rows = {"t": list(range(1200)), "y": rng.normal(size=1200).tolist()}
    scores = series.evaluate(rows, every=2)
    widths = series.encoding.widths.factors(2)
    np.testing.assert_allclose(widths, [2.0, 2.0], rtol=0.1)
    assert all(0.85 < share < 0.93 for share in scores["coverage_90"])
    np.testing.assert_allclose(series.forecast().sd, widths / 2)
    again = Lagged.load(series.save(tmp_path / "series.credo"), paths=50)
    np.testing.assert_array_equal(again.encoding.widths.factors(2), widths)


@pytest.mark.slow
def test_a_saved_series_goes_on_bit_by_bit(tmp_path: Path) -> None:
    rows = demand()
    whole = Lagged("time", "y", 4, lags=[1, 24], paths=8, budget="fast")
    whole.learn(part(rows, 0, 100))  # which say what the columns mean
    whole.learn(part(rows, 100))
    first = Lagged("time", "y", 4, lags=[1, 24], paths=8, budget="fast")
    first.learn(part(rows, 0, 100))
    again = Lagged.load(first.save(tmp_path / "series.credo"), paths=8)
    again.learn(part(rows, 100))
    assert again.horizon == 4
    np.testing.assert_array_equal(again.forecast().paths, whole.forecast().paths)


def test_a_missing_target_is_a_missing_lag_and_forecasts_begin_after_the_latest_known_one() -> None:
    rows = demand()
    rows["y"][60] = None
    series = Lagged("time", "y", 3, lags=[1, 24], paths=5, budget="fast")
    series.learn(rows)
    assert series.session.rows_used == 149 and series.session.missing["y[t-1]"] == 2
    series.learn({"time": [str(HOURS[150]), str(HOURS[151])], "y": [None, None]})
    assert series.forecast().times == [str(time) for time in HOURS[150:153]]


def test_known_columns_of_the_steps_to_come_are_used() -> None:
    rng = np.random.default_rng(0)
    sale = [str(word) for word in rng.choice(["yes", "no"], 120)]
    y = [(5.0 if word == "yes" else 0.0) + 0.1 * rng.normal() for word in sale]
    rows = {"t": list(range(120)), "sale": sale, "noise": rng.normal(size=120).tolist(), "y": y}
    series = Lagged("t", "y", 2, lags=[1], known=["sale"], paths=5, budget="fast")
    series.learn(rows)
    assert any(
        "'noise' is left out: its values are not known in advance" in one for one in series.encoding.sentences
    )
    forecast = series.forecast({"t": [120, 121], "sale": ["yes", "no"]})
    np.testing.assert_allclose(forecast.mean, [5.0, 0.0], atol=0.5)


def test_direct_forecasts_use_lags_that_are_known_at_the_origin(tmp_path: Path) -> None:
    rows = demand(200)
    series = Lagged("time", "y", 4, multistep="direct", paths=11, budget="fast")
    series.learn(rows)
    lags = [session.encoding.columns.lags for _, session in series.sessions]  # type: ignore[attr-defined]
    assert [min(one) for one in lags] == list(groups(4)) == [1, 2, 4]
    forecast = series.forecast()
    assert forecast.paths.shape == (11, 4) and (np.diff(forecast.paths, axis=0) >= 0).all()
    wanted = 10 + 3 * np.sin(2 * np.pi * np.arange(200, 204) / 24)
    assert (np.abs(forecast.mean - wanted) < 2.0).all()
    again = Lagged.load(series.save(tmp_path / "series"), paths=11)
    np.testing.assert_array_equal(again.forecast().paths, forecast.paths)


def test_refusals_name_the_field_the_value_and_what_is_allowed(tmp_path: Path) -> None:
    refused: tuple[tuple[dict[str, Any], str], ...] = (
        ({"horizon": 0}, "horizon must be a whole number in 1..10000; got 0"),
        ({"lags": [0]}, "lags must be a whole number in 1..100000; got 0"),
        ({"lags": 3}, "lags must be a list of whole numbers; got 3"),
        ({"seasons": [1]}, "seasons must be a whole number in 2..100000; got 1"),
        ({"paths": 1}, "paths must be a whole number in 2..100000; got 1"),
        ({"known": "a"}, "known must be a list of names; got 'a'"),
        ({"multistep": "both"}, "multistep must be one of recursive, direct; got 'both'"),
    )
    for words, sentence in refused:
        with pytest.raises(CredoError, match=sentence):
            Lagged("t", "y", **words)
    rows = {"t": list(range(30)), "y": np.sin(np.arange(30.0)).tolist()}
    with pytest.raises(DataError, match="time 'when' is no column; the columns are t, y"):
        Lagged("when", "y").learn(rows)
    with pytest.raises(DataError, match="the first rows must be at least 20; got 5"):
        Lagged("t", "y").learn(part(rows, 0, 5))
    with pytest.raises(CredoError, match="task must be regression or count for a series"):
        Lagged("t", "y", task="classification").learn(rows)
    with pytest.raises(DataError, match="has learned from no row"):
        Lagged("t", "y").forecast()
    series = Lagged("t", "y", 2, lags=[1], budget="fast")
    series.learn(rows)
    for time, sentence in (
        (29, "row 1 has the time '29' in 't', which is in the same step as an earlier row; times must grow"),
        (3, "which is before an earlier row"),
        (30.5, "which lies between two steps; allowed is a time every 1"),
        (None, "row 1 has no time: 't' is missing"),
    ):
        with pytest.raises(DataError, match=sentence):
            series.learn({"t": [time], "y": [0.0]})
    assert series.session.rows_used == 30
    loose = Lagged("t", "y", 2, lags=[1], budget="fast", strict=False)
    loose.learn(rows)
    loose.learn({"t": [29, 30], "y": [0.0, 0.0]})
    assert loose.session.rows_used == 31
