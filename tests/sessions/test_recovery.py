"""A session whose learner refuses row after row says so, and begins again."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.sessions import Session

ROWS = [{"a": float(i % 7), "y": 2.0 * (i % 7) + (i % 3)} for i in range(60)]


def broken(chunk: int) -> Session:
    """A session whose belief has run away after twenty rows."""
    session = Session.from_rows(ROWS, "y", model="linear", chunk=chunk)
    session.learn(ROWS[:20])
    session.belief = credo.replace(session.belief, mean=jnp.full_like(session.belief.mean, jnp.inf))
    return session


def test_ten_refusals_in_a_row_start_the_belief_anew_whatever_the_chunk(tmp_path: Path) -> None:
    beliefs = []
    for chunk in (100, 7):
        session = broken(chunk)
        with pytest.warns(UserWarning, match="10 rows in a row .* began again from the prior after row 30;"):
            session.learn(ROWS[20:])
        assert (session.rows_refused, session.recovery.rows) == (10, [30])
        assert session.rows_used == 60 and np.isfinite(np.asarray(session.belief.mean)).all()
        beliefs.append(np.asarray(session.belief.mean))
    np.testing.assert_array_equal(beliefs[0], beliefs[1])
    again = Session.load(session.save(tmp_path / "belief.credo"))
    assert again.recovery.to_dict() == session.recovery.to_dict()
