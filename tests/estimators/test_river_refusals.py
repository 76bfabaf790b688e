"""What an estimator for River refuses, in which words, and that a refused call changes nothing."""

from __future__ import annotations

import datetime
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from credo.core.errors import CredoError
from credo.estimators import RiverClassifier, RiverRegressor
from credo.recipes import defaults
from credo.streams import checkpoint

ROW: dict[Any, Any] = {"a": 1.0, "b": True, "c": "red"}
FRAME = pd.DataFrame([ROW])


def learned(estimator: Any, targets: list[Any]) -> Any:
    for shift, y in enumerate(targets * 3):
        estimator.learn_one(ROW | {"a": float(shift)}, y)
    return estimator


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda e: e.learn_one({"a": "text"}, 1.0), "feature 'a' holds numbers; got the text 'text'."),
        (lambda e: e.predict_one({"a": "text"}), "feature 'a' holds numbers; got the text 'text'."),
        (lambda e: e.learn_one({"b": 3.0}, 1.0), "feature 'b' holds truth values; got 3.0."),
        (lambda e: e.learn_one({"n": 1.0, "d": datetime.time(12)}, 1.0), "'d' must hold numbers"),
        (lambda e: e.learn_one([1.0], 1.0), "x must be a dict of features; got list."),
        (lambda e: e.learn_one({"n": 1.0}, math.inf), "y must be a finite number"),
        (lambda e: e.learn_one({"n": 1.0}, math.nan), "y must be a finite number"),
        (lambda e: e.learn_one({"n": 1.0}, None), "y must be a finite number"),
        (lambda e: e.learn_one({"n": 1.0}, 1.0, w=-1.0), "w must be"),
        (
            lambda e: e.learn_many(FRAME, pd.Series([1.0, 2.0])),
            "y must hold one value for each of 1 rows",
        ),
        (lambda e: e.learn_many(FRAME.assign(a=["x"]), pd.Series([1.0])), "feature 'a' holds numbers"),
        (lambda e: e.learn_many(FRAME.assign(n=1.0), pd.Series([np.inf])), "y must be a finite number"),
        (lambda e: e.learn_many([ROW], [1.0]), "X must be a data frame; got list."),
        (lambda e: e.predict_one(ROW, with_dist=True).interval(1.5), "coverage must be above 0 and below 1"),
    ],
)
def test_a_refused_call_says_why_and_changes_nothing(call: Callable[[Any], Any], sentence: str) -> None:
    estimator = learned(RiverRegressor("linear"), [1.0, 2.0])
    before = pickle.dumps(estimator)
    with pytest.raises(CredoError) as refusal:
        call(estimator)
    assert sentence in str(refusal.value)
    assert pickle.dumps(estimator) == before


@pytest.mark.parametrize("label", [None, math.nan, [1]])
def test_a_missing_label_is_refused(label: Any) -> None:
    estimator = learned(RiverClassifier("linear"), ["x", "y"])
    before = pickle.dumps(estimator)
    with pytest.raises(CredoError, match="y must be a class label"):
        estimator.learn_one({"new": 1.0}, label)
    with pytest.raises(CredoError, match="y must be a class label"):
        estimator.learn_many(FRAME.assign(new=1.0), pd.Series([label], dtype=object))
    assert pickle.dumps(estimator) == before


def test_settings_are_refused_with_the_first_row() -> None:
    with pytest.raises(CredoError, match="model"):
        RiverRegressor("forest").learn_one(ROW, 1.0)
    with pytest.raises(CredoError, match="noise_var"):
        RiverRegressor("linear", noise_var=-1.0).learn_one(ROW, 1.0)


def test_features_that_do_not_fit_in_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    estimator = learned(RiverRegressor("linear"), [1.0, 2.0])
    before = pickle.dumps(estimator)
    monkeypatch.setattr(defaults, "MEMORY_LIMIT", 4 * 10**2)
    with pytest.raises(CredoError, match="posterior='full'"):
        estimator.learn_one({f"n{number}": 1.0 for number in range(20)}, 1.0)
    assert pickle.dumps(estimator) == before


def test_classes_that_come_late_in_a_batch_are_refused_before_any_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    estimator = learned(RiverClassifier("linear"), ["x", "y"])
    before = pickle.dumps(estimator)
    monkeypatch.setattr(defaults, "MEMORY_LIMIT", 4 * 20**2)
    labels = pd.Series([f"label {number}" for number in range(20)])
    with pytest.raises(CredoError, match="posterior='full'"):
        estimator.learn_many(pd.DataFrame({"a": np.arange(20.0)}), labels)
    assert pickle.dumps(estimator) == before


def test_a_forecast_is_there_before_any_row() -> None:
    assert RiverRegressor().predict_one(ROW) == 0.0
    assert RiverClassifier().predict_one(ROW) is None
    assert RiverClassifier().predict_proba_many(FRAME).shape == (1, 0)
    with pytest.raises(CredoError, match="learned a row"):
        RiverRegressor().save("nowhere.credo")


def test_a_file_that_holds_no_sound_estimator_is_refused_by_its_name(tmp_path: Path) -> None:
    path = learned(RiverRegressor("linear"), [1.0, 2.0]).save(tmp_path / "model.credo")
    with pytest.raises(CredoError, match=r"model\.credo does not hold a RiverClassifier"):
        RiverClassifier.load(path)
    saved = checkpoint.read(path)
    checkpoint.save(path, saved.learner, saved.belief, meta={**saved.meta, "extent": [3]})
    with pytest.raises(CredoError, match=r"model\.credo cannot be used: estimator\.extent must be"):
        RiverRegressor.load(path)
