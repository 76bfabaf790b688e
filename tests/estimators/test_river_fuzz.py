"""Random lives of an estimator for River, against one that sees the same rows one by one."""

from __future__ import annotations

import copy
import math
import pickle
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credo.estimators import RiverClassifier, RiverRegressor

NAMES = "abcdefghij"

CELLS = st.one_of(
    st.floats(-3.0, 3.0, width=32),
    st.sampled_from([None, math.nan, 0, 5, True, 1e6, -1e300, math.inf]),
)
ROWS = st.dictionaries(st.sampled_from(NAMES), CELLS, max_size=10)
NUMBERS = st.lists(st.tuples(ROWS, st.floats(-5.0, 5.0, width=32)), min_size=1, max_size=4)
LABELS = st.lists(st.tuples(ROWS, st.sampled_from(["x", "y", "z", "u"])), min_size=1, max_size=4)
VERBS = st.sampled_from(["one", "one", "many", "predict", "pickle", "copy", "file"])


def numeric(x: Mapping[str, object]) -> dict[str, float]:
    """A row in which each feature holds numbers, whatever it held first."""
    return {name: math.nan if value is None else float(value) for name, value in x.items()}  # type: ignore[arg-type]


def continued(estimator: Any, verb: str) -> Any:
    if verb == "pickle":
        return pickle.loads(pickle.dumps(estimator))
    if verb == "copy":
        return copy.deepcopy(estimator)
    if verb == "file" and estimator.n_seen:
        with tempfile.TemporaryDirectory() as folder:
            return type(estimator).load(estimator.save(Path(folder, "model.credo")))
    return estimator


def live_through(estimator: Any, life: list[tuple[str, list[tuple[dict[str, Any], Any]]]]) -> None:
    twin = estimator.clone()
    for verb, events in life:
        rows = [(numeric(x), y) for x, y in events]
        estimator = continued(estimator, verb)
        if verb in ("one", "many"):
            for x, y in rows:
                twin.learn_one(x, y)
            if verb == "many":
                frame = pd.DataFrame([x for x, _ in rows], index=range(len(rows)))
                estimator.learn_many(frame, pd.Series([y for _, y in rows]))
            else:
                for x, y in rows:
                    estimator.learn_one(dict(reversed(x.items())), y)
        for x, _ in rows[:1]:
            agree(estimator, twin, x)
    assert estimator.n_seen == twin.n_seen
    if estimator.n_seen:
        leaves = jax.tree.leaves(estimator._live.belief.belief)
        assert all(np.isfinite(leaf).all() for leaf in leaves)


def agree(estimator: Any, twin: Any, x: dict[str, float]) -> None:
    if isinstance(estimator, RiverClassifier):
        ours, theirs = estimator.predict_proba_one(x), twin.predict_proba_one(x)
        assert list(ours) == list(theirs)
        assert list(ours.values()) == pytest.approx(list(theirs.values()), abs=1e-5)
        assert not ours or math.isclose(sum(ours.values()), 1.0)
        return
    mean = estimator.predict_one(x)
    assert math.isfinite(mean)
    assert mean == pytest.approx(twin.predict_one(x), rel=1e-4, abs=1e-4)


@given(st.lists(st.tuples(VERBS, NUMBERS), min_size=1, max_size=6))
def test_a_regressor_lives_through_anything_as_row_by_row(life: list[Any]) -> None:
    live_through(RiverRegressor("linear", noise_var=0.1), life)


@given(st.lists(st.tuples(VERBS, LABELS), min_size=1, max_size=6))
def test_a_classifier_lives_through_anything_as_row_by_row(life: list[Any]) -> None:
    live_through(RiverClassifier("linear"), life)
