"""The estimators inside River: pipelines, validation, ensembles, selection; and what they keep."""

from __future__ import annotations

import datetime
import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from river import (
    compose,
    datasets,
    ensemble,
    evaluate,
    metrics,
    model_selection,
    multiclass,
    preprocessing,
    stream,
    utils,
)

from credo.core.errors import FormatError
from credo.estimators import RiverClassifier, RiverRegressor

ROWS = list(datasets.Phishing().take(60))
NUMBERS = list(datasets.TrumpApproval().take(60))


def test_it_works_behind_a_scaler_and_a_union_of_transformers() -> None:
    numbers = compose.SelectType(float, int) | preprocessing.StandardScaler()
    texts = compose.SelectType(str) | preprocessing.OneHotEncoder()
    model = (numbers + texts) | RiverClassifier("linear", scale=False)
    for place, (x, y) in enumerate(ROWS):
        model.learn_one(x | {"colour": "red" if place % 2 else "blue"}, y)
    assert set(model.predict_proba_one(ROWS[0][0])) == {False, True}
    batches = preprocessing.StandardScaler() | RiverClassifier("linear", scale=False)
    batches.learn_many(pd.DataFrame([x for x, _ in ROWS]), pd.Series([y for _, y in ROWS]))
    assert batches.predict_proba_many(pd.DataFrame([ROWS[0][0]])).shape == (1, 2)


def test_labels_may_come_late() -> None:
    moments = [datetime.datetime(2026, 1, 1) + datetime.timedelta(hours=place) for place in range(60)]
    rows = [(x | {"moment": when}, y) for (x, y), when in zip(NUMBERS, moments, strict=True)]
    model = compose.Discard("moment") | RiverRegressor("linear")
    score = evaluate.progressive_val_score(
        rows, model, metrics.MAE(), moment="moment", delay=datetime.timedelta(hours=5)
    )
    assert 0.0 < score.get() < 10.0


def test_it_is_the_model_of_one_against_the_rest() -> None:
    model = multiclass.OneVsRestClassifier(RiverClassifier("linear"))
    rows = list(datasets.ImageSegments().take(30))
    for x, y in rows:
        model.learn_one(x, y)
    assert model.predict_one(rows[0][0]) is not None


def test_it_is_the_model_of_a_bagging_ensemble_that_watches_for_changes() -> None:
    model = ensemble.ADWINBaggingClassifier(RiverClassifier("linear"), n_models=2, seed=1)
    score = evaluate.progressive_val_score(ROWS, model, metrics.Accuracy())
    assert score.get() > 0.5


def test_it_is_selected_among_its_like() -> None:
    grid: list[Any] = utils.expand_param_grid(RiverRegressor("linear"), {"prior_var": [0.1, 10.0]})
    model = model_selection.GreedyRegressor(grid, metric=metrics.MAE())
    for x, y in NUMBERS:
        model.predict_one(x)
        model.learn_one(x, y)
    best: Any = model.best_model
    assert best.prior_var in (0.1, 10.0)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_frames_of_two_libraries_answer_alike(kind: Any) -> None:
    frame = kind({"a": [0.1, 0.2, 0.3, 0.4], "b": [1, 2, 3, 5]})
    model = RiverRegressor("linear")
    model.learn_many(frame, [1.0, 2.0, 3.0, 5.0])
    means = model.predict_many(frame)
    assert len(means) == 4 and model.predict_one({"a": 0.1, "b": 1}) == pytest.approx(means[0], rel=1e-5)
    classes = RiverClassifier("linear")
    classes.learn_many(frame, ["x", "y", "x", "y"])
    assert list(classes.predict_proba_many(frame).columns) == ["x", "y"]
    assert set(classes.predict_many(frame)) <= {"x", "y"}


def test_texts_and_truth_values_are_inputs_of_their_own() -> None:
    model = RiverRegressor("linear")
    for place in range(80):
        on, size = place % 2 == 0, float(place % 7)
        model.learn_one({"colour": f"c{place % 20}", "on": on, "size": size}, 10.0 * on + size)
    assert [str(slot) for slot in model._slots.slots][:3] == ["colour=c0", "on", "size"]
    assert sum(slot.name == "colour" for slot in model._slots.slots) == 17
    assert model.predict_one({"on": True, "size": 3.0}) == pytest.approx(13.0, abs=1.0)
    shown = model.debug_one({"on": True, "colour": "c18", "new": 1.0})
    assert "colour=(other)" in shown and "not met" in shown and "missing" in shown


def test_missing_is_absent_or_none_or_nan() -> None:
    models = [RiverRegressor("linear") for _ in range(3)]
    for x, y in NUMBERS:
        models[0].learn_one({name: value for name, value in x.items() if name != "ipsos"}, y)
        models[1].learn_one(x | {"ipsos": None}, y)
        models[2].learn_one(x | {"ipsos": float("nan")}, y)
    assert len({model.predict_one(NUMBERS[0][0]) for model in models}) == 1


def test_rows_of_weight_0_leave_the_belief_as_it_was() -> None:
    model = RiverRegressor("linear")
    for x, y in NUMBERS[:20]:
        model.learn_one(x, y)
    before = model.predict_one(NUMBERS[30][0])
    model.learn_one(NUMBERS[30][0], 1e4, w=0.0)
    assert model.predict_one(NUMBERS[30][0]) == before


def test_alarms_are_reported() -> None:
    model = RiverRegressor("linear", drift="run-length:0.01,2", noise_var=0.01)
    rng = np.random.default_rng(0)
    for place in range(120):
        a = rng.normal()
        model.learn_one({"a": a}, (3.0 if place < 80 else -3.0) * a + 0.1 * rng.normal())
    assert "1 alarm (at row 8" in model.debug_one({"a": 1.0})
    many = model.clone()
    assert many.n_seen == 0


def test_a_file_and_a_pickle_continue_bit_by_bit(tmp_path: Path) -> None:
    model = RiverClassifier("linear")
    for x, y in itertools.islice(ROWS, 20):
        model.learn_one(x, y)
    copies = [RiverClassifier.load(model.save(tmp_path / "m.credo")), pickle.loads(pickle.dumps(model))]
    for x, y in ROWS[20:]:
        for each in (model, *copies):
            each.learn_one(x, y)
    probs = [each.predict_proba_one(ROWS[0][0]) for each in (model, *copies)]
    assert probs[0] == probs[1] == probs[2]
    with pytest.raises(FormatError, match="RiverRegressor"):
        RiverRegressor.load(tmp_path / "m.credo")


def test_large_numbers_far_from_zero_keep_their_digits() -> None:
    model = RiverRegressor("linear", noise_var=0.01)
    for place in range(60):
        model.learn_one({"seconds": 1.7e9 + place % 10}, 1e9 + place % 10)
    assert model.predict_one({"seconds": 1.7e9 + 4}) - 1e9 == pytest.approx(4.0, abs=0.2)


def test_shuffled_data_of_river_is_learned() -> None:
    rows = stream.shuffle(iter(ROWS), buffer_size=10, seed=1)
    score = evaluate.progressive_val_score(
        rows, RiverClassifier("mlp:3", posterior="diagonal"), metrics.LogLoss()
    )
    assert score.get() < 1.0
