"""Any sequence of calls leaves a finite belief, and is the one long call of its rows."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import jax
import numpy as np
import pytest
from hypothesis import given, settings

import credo

EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["learn", "learn", "learn", "predict", "pickle", "save", "refuse"]),
        st.integers(1, 7),
        st.sampled_from([1.0, 0.0, 2.5]),
        st.sampled_from([0.0, np.nan, 1e30, -1e-30, 1e300]),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=10)
@given(events=EVENTS, classify=st.booleans(), seed=st.integers(0, 3))
def test_any_sequence_of_calls_is_one_long_call(events: Any, classify: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind: Any = credo.OnlineClassifier if classify else credo.OnlineRegressor
    more: dict[str, Any] = {"classes": ["down", "up"]} if classify else {}
    estimator, rows = kind("linear"), list[tuple[np.ndarray, np.ndarray, np.ndarray]]()
    for event, count, weight, odd in events:
        x = rng.normal(size=(count, 3))
        x[0, 1] = odd
        y = np.where(x[:, 0] > 0, "up", "down") if classify else x[:, 0] * 10.0 ** rng.integers(-3, 6)
        weights = np.full(count, weight)
        if event == "learn" and weight > 0:
            estimator.partial_fit(x, y, sample_weight=weights, **more)
            rows.append((x, y, weights))
        elif not rows:
            continue
        elif event == "predict":
            assert np.isfinite(estimator.predict_proba(x) if classify else estimator.predict(x)).all()
        elif event == "pickle":
            estimator = pickle.loads(pickle.dumps(estimator))
        elif event == "save":
            with tempfile.TemporaryDirectory() as folder:
                estimator = kind.load(estimator.save(Path(folder) / "estimator.credo"))
        else:
            before = pickle.dumps(estimator)
            with pytest.raises(ValueError):
                estimator.partial_fit(x[:, :2], y)
            with pytest.raises(ValueError):
                estimator.fit(x, y, -weights - 1)
            assert pickle.dumps(estimator) == before
    if not rows:
        return
    leaves = jax.tree.leaves(estimator._trainer.belief)
    assert all(np.isfinite(leaf).all() for leaf in leaves)
    x, y, weights = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    whole = kind("linear").partial_fit(x, y, sample_weight=weights, **more)
    for mine, theirs in zip(leaves, jax.tree.leaves(whole._trainer.belief), strict=True):
        np.testing.assert_array_equal(mine, theirs)
