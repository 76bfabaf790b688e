"""Rows with times: the belief walks by the time between rows, however rows are grouped into calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from credo.core.errors import CredoError, DataError
from credo.live.intake import blocks_of
from credo.sessions import Images, Session

RNG = np.random.default_rng(5)
A = RNG.normal(size=40)
TIMES = np.cumsum(RNG.exponential(3.0, 40))
DRIFT: Any = {"model": "linear", "drift": "walk:0.01"}


def rows_of(task: str) -> list[dict[str, Any]]:
    y = {"regression": 2 * A + 1, "count": np.abs(3 * A).astype(int)}.get(task, A > 0)
    return [{"a": a, "y": one} for a, one in zip(A.tolist(), y.tolist(), strict=True)]


@pytest.mark.optimised
@pytest.mark.parametrize("task", ["regression", "classification", "count"])
def test_times_do_not_depend_on_groups_or_restarts(tmp_path: Path, task: Any) -> None:
    rows, files = rows_of(task), list[bytes]()
    for size in (1, 7, 40):
        session = Session.from_rows(rows, "y", task=task, chunk=16, **DRIFT)
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            session.learn(rows[part], times=TIMES[part])
            if start in (5, 7, 21):  # rows of numbers still wait at the first
                session = Session.load(session.save(tmp_path / "half.credo"), chunk=16)
        files.append(session.save(tmp_path / f"{size}.credo").read_bytes())
    assert files[0] == files[1] == files[2] and session.clock == TIMES[-1]


@pytest.mark.slow
def test_steps_are_as_long_as_the_time_between_rows() -> None:
    """The belief is that of the learner alone, stepped by the differences of times: 0 at the first row."""
    rows = rows_of("classification")
    session, blank = (Session.from_rows(rows, "y", **DRIFT) for _ in range(2))
    learner, belief, before = session.learner, session.belief, -1
    for row, time in enumerate(TIMES):
        (block,) = blocks_of(rows[row : row + 1], blank.encoding, learn=True)
        step = np.float32(0.0 if row == 0 else time - TIMES[before])
        belief, _ = learner.step(belief, block.x[0], block.y[0].astype(np.int32), dt=step)
        before = row
    session.learn(rows, times=TIMES)
    blank.learn(rows)
    ours, plain = (np.asarray(one.belief.mean) for one in (session, blank))
    np.testing.assert_allclose(ours, np.asarray(belief.mean), rtol=1e-5)
    assert np.abs(ours - plain).max() > 0.05


def test_a_forecast_is_of_its_time() -> None:
    rows = rows_of("regression")
    session = Session.from_rows(rows, "y", **DRIFT)
    with pytest.raises(CredoError, match="times must not go back; got 2 after 3 at row 1"):
        session.learn(rows, times=[3.0, 2.0, *range(4, 42)])
    assert session.clock is None and session.rows_read == 0
    session.learn(rows, times=TIMES)
    row, end = [{"a": 2.0}], float(TIMES[-1])
    now, same, later = (session.predict(row, times=times).sd for times in (None, [end], [end + 1000.0]))
    assert now is not None and same is not None and later is not None
    assert now[0] == same[0] and later[0] > 1.5 * now[0]
    with pytest.raises(CredoError, match="times must not go back"):
        session.predict(row, times=[end - 1.0])


def test_times_that_cannot_be_are_refused() -> None:
    rows = rows_of("regression")
    timed, plain = (Session.from_rows(rows, "y", **DRIFT) for _ in range(2))
    timed.learn(rows[:12], times=TIMES[:12])
    plain.learn(rows[:12])
    for session, times, sentence in (
        (timed, None, "times must be given for all rows or for none; the earlier rows had them."),
        (plain, [1.0], "times must be given for all rows or for none; the earlier rows had none."),
        (timed, [np.nan], "times must be finite; got nan."),
        (timed, [[1e9]], r"times must be one a row; got the shape \(1, 1\)."),
        (timed, [1e9, 2e9], "times must be as many as the rows, 1; got 2."),
        (timed, [0.0], "times must not go back"),
    ):
        with pytest.raises(CredoError, match=sentence):
            session.learn(rows[:1], times=times)
        assert session.rows_used == 12
    with pytest.raises(DataError, match="times are for rows of a table"):
        images = Images(np.zeros((1, 2, 2), np.float32), np.zeros(1, int), np.ones(1, int))
        Session.from_rows(rows, "y", **DRIFT).learn(images, times=[1.0])
