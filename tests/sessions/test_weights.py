"""A row of weight w counts as w equal rows, however rows are grouped into calls."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from credo.core.errors import DataError
from credo.sessions import Session, TableEncoding

RNG = np.random.default_rng(3)
A = RNG.normal(size=60).tolist()


@pytest.mark.table
@pytest.mark.parametrize("task", ["regression", "classification", "count"])
def test_weights_do_not_depend_on_groups(tmp_path: Path, task: str) -> None:
    y = {"regression": [2 * a + 1 for a in A], "count": [int(abs(3 * a)) for a in A]}.get(task)
    rows = [{"a": a, "y": f"{a > 0}" if y is None else y[k]} for k, a in enumerate(A)]
    weights = RNG.integers(1, 4, len(rows)).astype(float)
    files: list[bytes] = []
    for size in (1, 7, 60):
        session = Session.from_rows(rows[:30], "y", model="linear", task=task, chunk=16)  # type: ignore[arg-type]
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            session.learn(rows[part], weights=weights[part])
        files.append(session.save(tmp_path / f"{size}.credo").read_bytes())
    assert files[0] == files[1] == files[2]
    once = Session.from_rows(rows[:30], "y", model="linear", task=task, chunk=16)  # type: ignore[arg-type]
    once.learn(rows, weights=np.ones(len(rows)))
    plain = Session.from_rows(rows[:30], "y", model="linear", task=task, chunk=16)  # type: ignore[arg-type]
    plain.learn(rows)
    assert once.save(tmp_path / "a.credo").read_bytes() == plain.save(tmp_path / "b.credo").read_bytes()
    assert not np.array_equal(np.asarray(once.belief.mean), np.asarray(session.belief.mean))


def test_a_row_of_weight_two_moves_the_belief_as_two_rows_do() -> None:
    """With a fixed noise the posterior of a linear model knows sums alone; units stay as they are."""
    first = [{"a": a, "y": 2 * a + 0.1 * (k % 3)} for k, a in enumerate(A[:40])]
    sessions = [Session.from_rows(first, "y", model="linear", noise_var=0.5) for _ in range(2)]
    for session in sessions:
        session.learn(first)
    before, encoding = sessions[0].scaler, sessions[1].encoding
    assert isinstance(encoding, TableEncoding)
    state = encoding.state
    row = {"a": 0.3, "y": 0.5}
    sessions[0].learn([row], weights=[2.0])
    sessions[1].learn([row])
    sessions[1].scaler, encoding.state = before, state
    sessions[1].learn([row])
    heavy, twice = (np.asarray(session.belief.mean) for session in sessions)
    np.testing.assert_allclose(heavy, twice, atol=3e-4)  # the past fades once more with two rows


def test_weights_that_cannot_be_are_refused() -> None:
    rows = [{"a": a, "y": 2 * a} for a in A]
    session = Session.from_rows(rows, "y", model="linear")
    for weights in ([1.0], [0.0] * 60, [np.nan] * 60, [[1.0]] * 60):
        with pytest.raises(DataError, match="weights must be"):
            session.learn(rows, weights=weights)
    assert session.rows_read == 0
