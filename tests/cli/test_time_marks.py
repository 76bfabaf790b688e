"""The times of rows that are noted for the plots of a run."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command, write

from credo.plots import Chart, Mark, Pen
from credo.sessions import Session, Tally

START = dt.datetime(2024, 1, 30, 22, tzinfo=dt.UTC)


@pytest.mark.slow
def test_times_of_a_column_are_noted_whatever_the_chunks_and_restarts(credo: Command, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    hours = np.cumsum(rng.exponential(5.0, 150)).round(1)
    times = [START + dt.timedelta(hours=float(hour)) for hour in hours]
    rows = [
        [one.isoformat(), f"{a:.4f}", f"{3 * a:.4f}"]
        for one, a in zip(times, rng.normal(size=150), strict=True)
    ]
    rows[40][1], rows[41][2] = "bad", "bad"  # neither is learned from, so later rows have numbers less by 2
    table = write(tmp_path / "t.csv", ["a_number", "when", "y"], [[a, when, y] for when, a, y in rows])
    learn = ("learn", table, "--target", "y", "--model", "linear", "-q")
    assert credo(*learn, "--out", "one").status == 0
    assert credo(*learn, "--chunk", 7, "--limit", 60, "--out", "two").status == 0
    assert credo(*learn[:2], "--resume", "two", "-q").status == 0
    tallies = [Session.load(tmp_path / name / "belief.credo").tally for name in ("one", "two")]
    assert (tallies[0].times == tallies[1].times).all()
    good = [one.timestamp() for place, one in enumerate(times) if place not in (40, 41)]
    noted = tallies[0].times
    assert noted[0, 0] == 1 and noted[1, 0] == Tally.next_mark(1) and len(noted) == 1 + 148 // 32
    np.testing.assert_array_equal(noted[:, 1], [good[int(row) - 1] for row in noted[:, 0]])
    assert tallies[0].timeline() is not None


def test_times_that_fall_make_no_axis_and_tables_without_times_have_none() -> None:
    tally = Tally("regression")
    assert tally.timeline() is None and "times" in tally.arrays()
    tally.mark_time(1, 60.0)
    tally.mark_time(32, 70.0)
    rows, seconds = Tally.from_arrays("regression", tally.arrays()).timeline() or ([], [])
    assert list(rows) == [1.0, 32.0] and list(seconds) == [60.0, 70.0]
    tally.mark_time(64, 69.0)
    assert tally.timeline() is None


@pytest.mark.parametrize(("step", "words"), [(86400.0, "time (2024-Mar), and rows"), (0.0, "rows")])
def test_an_axis_of_rows_is_labelled_by_times(step: float, words: str) -> None:
    rows = np.arange(1.0, 41.0)
    seconds = START.replace(hour=0).timestamp() + step * (rows - 1)
    chart = Chart(label="rows", low=1.0, high=40.0)
    chart.panels[0].line(rows, rows, Pen("#000000"))
    chart.count_rows((rows, seconds))
    assert chart.label == words
    if step:
        # 1 February is the third day from 30 January
        assert Mark(3.0, "Feb\n3") in list(chart.marks or ())
    else:
        assert chart.marks is None
