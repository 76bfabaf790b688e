"""An estimator for River whose learner refuses row after row says so, and begins again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import credo

ROWS = [({"a": float(i % 7), "b": float(i % 5)}, 2.0 * (i % 7) + (i % 3)) for i in range(60)]


def broken() -> Any:
    """An estimator whose belief has run away after twenty rows."""
    model: Any = credo.RiverRegressor("linear")
    for x, y in ROWS[:20]:
        model.learn_one(x, y)
    belief = model._live.belief
    gone = credo.replace(belief.belief, mean=jnp.full_like(belief.belief.mean, jnp.inf))
    model._live.hold(credo.replace(belief, belief=gone))
    return model


def learn(model: Any, rows: list[Any], size: int) -> None:
    """By `learn_one` where the size is 0, otherwise by so many rows at once."""
    for start in range(0, len(rows), size or 1):
        part = rows[start : start + (size or 1)]
        if size:
            model.learn_many(pd.DataFrame([x for x, _ in part]), pd.Series([y for _, y in part]))
        else:
            model.learn_one(*part[0])


@pytest.mark.slow
def test_ten_refusals_in_a_row_start_the_belief_anew_however_rows_come(tmp_path: Path) -> None:
    beliefs = []
    for size in (0, 1, 7, 40):
        model = broken()
        with pytest.warns(UserWarning, match="10 rows in a row .* began again from the prior after row 30;"):
            learn(model, ROWS[20:], size)
        live = model._live
        assert (live.rows, live.refused, live.recovery.rows, live.recovery.streak) == (60, 10, [30], 0)
        assert np.isfinite(model.predict_one(ROWS[0][0]))
        beliefs.append(jax.tree.leaves(live.belief))
    for one in beliefs[1:]:
        for first, other in zip(beliefs[1], one, strict=True):
            np.testing.assert_array_equal(first, other)
    for first, other in zip(beliefs[0], beliefs[1], strict=True):
        np.testing.assert_allclose(first, other, rtol=1e-5, atol=1e-6)
    again = credo.RiverRegressor.load(model.save(tmp_path / "model.credo"))
    assert again._live is not None and again._live.recovery.to_dict() == live.recovery.to_dict()


def test_absurd_targets_are_refused_and_ruin_nothing() -> None:
    model: Any = credo.RiverRegressor("linear")
    learn(model, ROWS[:40], 0)
    before = model.predict_one(ROWS[3][0])
    for _ in range(15):
        model.learn_one(ROWS[0][0], 1e30)
    assert model._live.refused == 15 and not model._live.recovery.rows
    assert model.predict_one(ROWS[3][0]) == pytest.approx(before, abs=0.5)
