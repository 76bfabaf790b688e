"""Lags, waves and calendar of rows of a series."""

from __future__ import annotations

import datetime as dt
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credo.core.errors import DataError
from credo.tables import Chunk
from credo.tables.clock import Clock
from credo.tables.lags import History, LagColumns, usual_lags

LAGS = (1, 2, 7)


def series(count: int = 40, seed: int = 0) -> Chunk:
    """Hours with gaps, and targets of which some are missing."""
    rng = np.random.default_rng(seed)
    ticks = np.cumsum(rng.choice([1, 1, 1, 4], size=count))
    targets: list[object] = [None if rng.random() < 0.1 else float(rng.normal()) for _ in ticks]
    start = np.datetime64("2024-02-28T22:00")
    times = [str(start + np.timedelta64(int(tick), "h")) for tick in ticks]
    return Chunk({"time": times, "y": targets, "other": list(range(count))}, np.arange(1, count + 1))


def columns(chunk: Chunk, known: tuple[str, ...] = ()) -> LagColumns:
    clock = Clock.infer("time", chunk.columns["time"])
    return LagColumns(clock, "y", LAGS, (12,), ("hour", "weekday", "month"), known, keep=8)


def test_lags_are_those_of_a_loop_by_hand() -> None:
    chunk = series()
    made, history = columns(chunk).rows(chunk, None)
    at = {time: value for time, value in zip(chunk.columns["time"], chunk.columns["y"], strict=True)}
    for lag in LAGS:
        wanted = []
        for time in chunk.columns["time"]:
            value = at.get(str(np.datetime64(str(time)) - np.timedelta64(lag, "h")))
            wanted.append(np.nan if value is None else value)
        np.testing.assert_array_equal(np.asarray(made.columns[f"y[t-{lag}]"], float), np.array(wanted, float))
    assert list(made.columns) == [
        *("time", "y", "y[t-1]", "y[t-2]", "y[t-7]"),
        *(
            "sin(2 pi t/12)",
            "cos(2 pi t/12)",
            "sin(4 pi t/12)",
            "cos(4 pi t/12)",
            "hour(time)",
            "weekday(time)",
            "month(time)",
        ),
    ]
    assert history.last is not None and history.ticks[0] > history.last - 8


def test_calendar_and_waves_are_those_of_the_clock() -> None:
    chunk = series()
    made, _ = columns(chunk).rows(chunk, None)
    moments = [dt.datetime.fromisoformat(str(time)) for time in chunk.columns["time"]]
    assert list(made.columns["hour(time)"]) == [f"{one.hour:02d} h" for one in moments]
    assert list(made.columns["weekday(time)"]) == [f"{one:%A}" for one in moments]
    assert list(made.columns["month(time)"]) == [f"{one:%B}" for one in moments]
    ticks = columns(chunk).clock.read(chunk.columns["time"]).ticks
    np.testing.assert_allclose(
        np.array(made.columns["cos(4 pi t/12)"], float), np.cos(4 * np.pi * ticks / 12), atol=1e-12
    )


@given(st.lists(st.integers(1, 39), max_size=4), st.integers(0, 20))
def test_cuts_do_not_matter(cuts: list[int], seed: int) -> None:
    chunk = series(seed=seed)
    front = columns(chunk, ("other",))
    whole, end = front.rows(chunk, None)
    ends = [0, *sorted(set(cuts)), 40]
    history: History | None = None
    parts = []
    for start, stop in itertools.pairwise(ends):
        part, history = front.rows(chunk.part(start, stop), history)
        parts.append(part)
    for name in whole.columns:
        cells = [cell for part in parts for cell in part.columns[name]]
        assert [str(cell) for cell in cells] == [str(cell) for cell in whole.columns[name]]
    assert history is not None
    np.testing.assert_array_equal(history.ticks, end.ticks)
    np.testing.assert_array_equal(history.values, end.values)


def test_rows_that_are_not_learned_leave_the_history_and_see_each_other() -> None:
    chunk = series()
    front = columns(chunk)
    first, rest = chunk.part(0, 30), chunk.part(30, 40)
    _, history = front.rows(first, None)
    learned, _ = front.rows(rest, history)
    looked, after = front.rows(rest, history, learn=False)
    assert after is history
    for name in front.names:
        np.testing.assert_array_equal(learned.columns[name], looked.columns[name])


def test_rows_out_of_order_are_bad_and_the_others_stay() -> None:
    chunk = Chunk(
        {"time": [1, 2, 2, 1.5, None, "x", 4], "y": [1.0, 2.0, 9.0, 9.0, 9.0, 9.0, 4.0]}, np.arange(1, 8)
    )
    front = LagColumns(Clock.infer("time", [1, 2, 3]), "y", (1, 2), keep=3)
    made, _ = front.rows(chunk, None)
    assert made.lines.tolist() == [1, 2, 7]
    np.testing.assert_array_equal(made.columns["y[t-2]"], [np.nan, np.nan, 2.0])
    said = [str(row) for row in made.bad]
    assert "line 3 has the time '2' in 'time', which is in the same step as an earlier row" in said[0]
    assert "between two steps" in said[1] and "is missing" in said[2] and "no number" in said[3]
    late, _ = front.rows(
        Chunk({"time": [1], "y": [1.0]}, np.array([8])), History(np.array([3]), np.array([0.0]))
    )
    assert not len(late) and "which is before an earlier row; times must grow" in str(late.bad[0])


def test_a_known_column_that_is_missing_is_named() -> None:
    chunk = series()
    with pytest.raises(DataError, match="column 'weather' is missing; the columns are time, y, other"):
        columns(chunk, ("weather",)).rows(chunk, None)


def test_usual_lags_are_known_at_the_origin() -> None:
    assert usual_lags([]) == (1, 2, 3)
    for least in (1, 3, 24, 25, 200):
        assert min(usual_lags([24, 168], least)) == least
    assert usual_lags([24], 24) == (24, 25, 26, 48)
