"""Random lives of the estimators for River, against a plain loop of `learn_one` over the same rows."""

from __future__ import annotations

import copy
import math
import pickle
from pathlib import Path
from typing import Any, TypeAlias

import jax
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from credo.core.errors import CredoError
from credo.estimators import RiverClassifier, RiverRegressor

Row: TypeAlias = dict[Any, Any]
Estimator: TypeAlias = RiverClassifier | RiverRegressor
Event: TypeAlias = tuple[Any, ...]

PROBES: list[Row] = [{}, {"a": 0.5, "b": -1.0, "color": "red"}, {"a": -2.0, "flag": True, "new": 3.0}]
NUMBERS = st.one_of(
    st.floats(-4.0, 4.0, width=32),
    st.sampled_from([None, math.nan, math.inf, -1e300, 10**400, 3, np.float32(0.5), np.int64(-2), 1e-300]),
)
FLAGS = st.sampled_from([True, False, None, np.True_, 1])
COLORS = st.sampled_from(["red", "green", "blue", None])
BURST = {f"wide {place}": st.floats(-1.0, 1.0, width=32) for place in range(5)}
"""Features that make an estimator of 8 inputs one of 16."""

ROWS = st.one_of(
    st.fixed_dictionaries({"a": NUMBERS, "b": NUMBERS}, optional={"flag": FLAGS, "color": COLORS}),
    st.fixed_dictionaries({}, optional={"a": NUMBERS, "b": NUMBERS, "color": COLORS}),
    st.fixed_dictionaries({"a": NUMBERS, **BURST}),
)
LABELS = st.sampled_from(["no", "yes", "no", "yes", "maybe"])
TARGETS = st.one_of(st.floats(-5.0, 5.0, width=32), st.sampled_from([7, True, 250.0, 1e20]))

FIRST: Row = {"a": 0.25, "flag": True}
BAD_ROWS: list[Row] = [{"a": "warm"}, {"a": [1.0]}, {"new": 1j}, {"b": 1.0, "flag": 2.5}, {"list": []}]
BAD_WEIGHTS = [-1.0, math.nan, math.inf, "heavy", None]


def events(targets: st.SearchStrategy[Any], bad_targets: list[Any]) -> st.SearchStrategy[list[Event]]:
    """Lives of up to 14 events: what happens, and the rows that it happens with."""
    pairs = st.tuples(ROWS, targets)
    bad_pairs = st.one_of(
        st.tuples(st.sampled_from(BAD_ROWS), targets), st.tuples(ROWS, st.sampled_from(bad_targets))
    )
    few = st.lists(pairs, min_size=1, max_size=6)
    learn = st.tuples(st.just("learn"), pairs, st.sampled_from([1.0, 1.0, 1.0, 0.0, 2.5]))
    return st.lists(
        st.one_of(
            learn,
            learn,
            st.tuples(st.just("batch"), few),
            st.tuples(st.just("refused"), bad_pairs, st.just(1.0)),
            st.tuples(st.just("refused"), pairs, st.sampled_from(BAD_WEIGHTS)),
            st.tuples(st.just("refused batch"), few, bad_pairs),
            st.tuples(st.sampled_from(["predict", "pickle", "copy", "save"])),
        ),
        max_size=14,
    )


def frame_of(pairs: list[tuple[Row, Any]]) -> tuple[pd.DataFrame, pd.Series]:
    """A batch, where a feature that a row lacks is NaN."""
    names = list(dict.fromkeys(name for row, _ in pairs for name in row))
    columns = {name: [row.get(name, math.nan) for row, _ in pairs] for name in names}
    frame = pd.DataFrame(columns, index=range(len(pairs)), dtype=object)
    return frame.infer_objects(), pd.Series([target for _, target in pairs], dtype=object)


def state_of(model: Estimator, folder: Path) -> bytes:
    """The bytes of the saved state."""
    return model.save(folder / "state.credo").read_bytes()


def forecast(model: Estimator, row: Row) -> np.ndarray:
    if isinstance(model, RiverClassifier):
        return np.array(list(model.predict_proba_one(row).values()))
    if not model.n_seen:
        return np.array([model.predict_one(row)])
    answer = model.predict_one(row, with_dist=True)
    return np.array([answer.mean, answer.sd])


def require_finite(model: Estimator) -> None:
    for row in PROBES:
        answer = forecast(model, row)
        assert np.isfinite(answer).all()
        assert not isinstance(model, RiverClassifier) or not answer.size or abs(answer.sum() - 1.0) < 1e-6
    if model._live is not None:
        for leaf in jax.tree.leaves(model._live.belief.belief):
            assert not np.issubdtype(leaf.dtype, np.floating) or np.isfinite(leaf).all()


def live(model: Estimator, loop: Estimator, life: list[Event], folder: Path) -> None:
    """Go through a life, and its learned rows one by one in `loop`; compare the two at the end."""
    for kind, *details in life:
        before = state_of(model, folder)
        if kind == "learn":
            (row, target), weight = details
            model.learn_one(row, target, weight)
            loop.learn_one(row, target, weight)
        elif kind == "batch":
            model.learn_many(*frame_of(details[0]))
            for row, target in details[0]:
                loop.learn_one(row, target)
        else:
            model = stay(model, kind, details, folder)
            assert state_of(model, folder) == before
        require_finite(model)
    assert model.n_seen == loop.n_seen
    assert model.feature_names == loop.feature_names
    for row in PROBES:
        np.testing.assert_allclose(forecast(model, row), forecast(loop, row), rtol=2e-4, atol=2e-5)


def stay(model: Estimator, kind: str, details: list[Any], folder: Path) -> Estimator:
    """What changes nothing: refused calls, forecasts, and that a copy goes on in an estimator's place."""
    if kind == "refused":
        (row, target), weight = details
        with pytest.raises(CredoError, match=r"\.$"):
            model.learn_one(row, target, weight)
    elif kind == "refused batch":
        rows, bad_row = details
        with pytest.raises(CredoError, match=r"\.$"):
            model.learn_many(*frame_of([*rows, bad_row]))
    elif kind == "predict":
        for row in PROBES:
            model.predict_one(row)
            model.debug_one(row)
        model.predict_many(frame_of([(row, 0) for row in PROBES])[0])
    elif kind == "save":
        return type(model).load(folder / "state.credo")
    elif kind == "copy":
        return copy.deepcopy(model)
    else:
        moved: Estimator = pickle.loads(pickle.dumps(model))
        return moved
    return model


few_examples = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.thorough
@few_examples
@given(events(LABELS, [None, math.nan, ["no"]]))
def test_lives_of_a_classifier(tmp_path: Path, life: list[Event]) -> None:
    model, loop = RiverClassifier("linear"), RiverClassifier("linear")
    for each in (model, loop):
        require_finite(each)
        each.learn_one(FIRST, "no")
    live(model, loop, life, tmp_path)


@pytest.mark.thorough
@few_examples
@given(events(TARGETS, [None, math.nan, math.inf, "warm", 1e31]))
def test_lives_of_a_regressor(tmp_path: Path, life: list[Event]) -> None:
    model, loop = RiverRegressor("linear"), RiverRegressor("linear")
    for each in (model, loop):
        require_finite(each)
        each.learn_one(FIRST, 1.5)
    live(model, loop, life, tmp_path)
