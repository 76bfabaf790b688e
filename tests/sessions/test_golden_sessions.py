"""Sessions that were saved once go on as they went on then, up to rounding.

`data/` holds two sessions, some further rows for each, and the sessions after those rows.
"""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest

from credo.sessions import ColumnOptions, Session, open_file

DATA = Path(__file__).parent / "data"


def continued(name: str) -> tuple[Session, Session]:
    """A session that has taken in the further rows, and the same as it was saved then."""
    session = Session.load(DATA / f"{name}.credo")
    source = open_file(str(DATA / f"{name}_more.csv"), ColumnOptions(), encoding=session.encoding)
    for rows in source.rows:
        session.learn(rows)
    return session, Session.load(DATA / f"{name}_after.credo")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["numbers", "classes"])
def test_the_beliefs_and_scores_are_those_of_before(name: str) -> None:
    session, before = continued(name)
    assert session.settings == before.settings and session.rows_used == before.rows_used
    for mine, theirs in zip(jax.tree.leaves(session.belief), jax.tree.leaves(before.belief), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-4)  # float32, rounded in another order
    for scores, wanted in ((session.tally, before.tally), (session.changes, before.changes)):
        if scores is None or wanted is None:
            assert scores is wanted
            continue
        for part, array in wanted.arrays().items():
            if part == "spread":
                continue  # the files of then have none
            np.testing.assert_allclose(scores.arrays()[part], array, rtol=1e-3, atol=1e-3, err_msg=part)
