"""Faults that others reported of estimators for scikit-learn and River."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import credo
from credo.core.errors import DataError

ROWS = 30
RNG = np.random.default_rng(0)
X = RNG.normal(size=(ROWS, 3))
Y = X @ [1.0, -2.0, 0.5]
LABELS = np.where(Y > 0, "up", "down")
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
RECORDS: list[dict[Any, Any]] = [{"a": a, "b": b} for a, b, _ in X.tolist()]


def regressor() -> Any:
    return credo.OnlineRegressor("linear", drift="none")


def classifier() -> Any:
    return credo.OnlineClassifier("linear", drift="none")


def river_regressor() -> Any:
    return credo.RiverRegressor("linear", drift="none")


def river_classifier() -> Any:
    return credo.RiverClassifier("linear", drift="none")


def learned(model: Any, records: list[dict[Any, Any]], targets: Any) -> Any:
    for record, target in zip(records, targets, strict=True):
        model.learn_one(record, target)
    return model


@pytest.mark.parametrize("verb", ["fit", "partial_fit"])
def test_a_row_of_weight_zero_changes_nothing_whatever_it_holds(verb: str) -> None:
    """scikit-learn/scikit-learn#24728: the values of rows of weight zero change the fit."""
    x, y = X.copy(), Y.copy()
    x[:8], y[:8] = 5000.0, 1e6
    weighted = getattr(regressor(), verb)(x, y, sample_weight=np.r_[np.zeros(8), np.ones(ROWS - 8)])
    without = getattr(regressor(), verb)(X[8:], Y[8:])
    np.testing.assert_array_equal(weighted.predict(X), without.predict(X))


def test_probabilities_stand_in_the_order_of_the_sorted_classes() -> None:
    """scikit-learn/scikit-learn#7863: nothing says which column of the probabilities is which class."""
    model = classifier().partial_fit(X, LABELS, classes=["up", "down"])
    assert model.classes_.tolist() == ["down", "up"]
    probs = model.predict_proba(X)
    assert ((probs[:, 1] > 0.5) == (model.predict(X) == "up")).all()
    assert probs[LABELS == "up", 1].mean() > 0.6 > probs[LABELS == "down", 1].mean() + 0.2


def test_a_class_that_no_row_had_yet_has_its_column_all_the_same() -> None:
    """scikit-multiflow/scikit-multiflow#26: the column of a class without rows is lost."""
    model = classifier().partial_fit(X, np.where(Y > 0, 2, 0), classes=[0, 1, 2])
    probs = model.predict_proba(X)
    assert probs.shape == (ROWS, 3) and (probs > 0).all()
    np.testing.assert_allclose(probs.sum(1), 1.0, rtol=1e-6)
    assert (probs[:, 1] < probs[:, [0, 2]].max(1)).all() and 1 not in model.predict(X)


def test_columns_in_another_order_are_never_taken_for_each_other() -> None:
    """dmlc/xgboost#8357: a frame whose columns come in another order gets other predictions."""
    numbers = regressor().fit(FRAME, Y)
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        numbers.predict(FRAME[["c", "a", "b"]])
    columns = {name: X[:, place] for place, name in enumerate("abc")}
    named = regressor().fit(columns, Y)
    swapped = {name: columns[name] for name in "cab"}
    np.testing.assert_array_equal(named.predict(swapped), named.predict(columns))


def test_two_columns_of_one_name_are_refused_by_that_name() -> None:
    """dmlc/xgboost#9322: a frame with a name twice is refused, and the message does not say which name."""
    twice = pd.DataFrame(X, columns=["a", "b", "a"])
    river = river_regressor()
    calls: list[Callable[[], object]] = [
        lambda: regressor().fit(twice, Y),
        lambda: regressor().fit(twice.assign(d="text"), Y),
        lambda: river.learn_many(twice, pd.Series(Y)),
        lambda: river.predict_many(twice),
    ]
    for call in calls:
        with pytest.raises(DataError, match=r"X has two columns named 'a' \(columns 1 and 3\)"):
            call()


@pytest.mark.parametrize("kind", ["uint8", "int8", "float16"])
def test_batches_of_narrow_numbers_do_not_overflow_in_the_statistics(kind: str) -> None:
    """scikit-learn/scikit-learn#14851: batches of bytes overflow the counts of an incremental fit."""
    x = RNG.integers(0, 120, size=(3 * ROWS, 3)).astype(kind)
    y = x.astype(float) @ [1.0, -2.0, 0.5]
    narrow, wide = regressor(), regressor()
    for part in range(3):
        rows = slice(part * ROWS, (part + 1) * ROWS)
        narrow.partial_fit(x[rows], y[rows])
        wide.partial_fit(x[rows].astype(float), y[rows])
    np.testing.assert_array_equal(narrow.predict(x), wide.predict(x.astype(float)))
    assert narrow.score(x, y) > 0.9


def test_a_batch_larger_than_all_before_it_keeps_the_variance_a_number() -> None:
    """scikit-learn/scikit-learn#16448: a second batch with more rows than the first makes variances NaN."""
    parts = regressor().partial_fit(X[:1], Y[:1]).partial_fit(X[1:], Y[1:])
    whole = regressor().partial_fit(X, Y)
    mean, sd = parts.predict(X, return_std=True)
    assert np.isfinite(mean).all() and (sd > 0).all()
    np.testing.assert_array_equal(mean, whole.predict(X))


def test_a_second_fit_forgets_the_first() -> None:
    """sktime/sktime#1613: an estimator that is fitted to other data answers as after the first fit."""
    again = regressor().fit(7.0 * X + 3.0, 9.0 * Y).fit(X, Y)
    np.testing.assert_array_equal(again.predict(X), regressor().fit(X, Y).predict(X))
    assert again.n_seen_ == ROWS


def test_a_second_fit_may_have_another_number_of_columns() -> None:
    """scikit-learn-contrib/py-earth#198: a second fit to rows with fewer columns is refused."""
    again = regressor().fit(np.c_[X, X[:, :1]], Y).fit(X, Y)
    assert again.n_features_in_ == 3
    np.testing.assert_array_equal(again.predict(X), regressor().fit(X, Y).predict(X))


def test_rows_in_a_file_that_may_only_be_read_are_learned(tmp_path: Path) -> None:
    """scikit-learn/scikit-learn#5481: estimators write into their inputs, which fails for mapped files."""
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    targets = Y.copy()
    targets.flags.writeable = False
    model = regressor().partial_fit(mapped, targets)
    np.testing.assert_array_equal(model.predict(mapped), regressor().partial_fit(X, Y).predict(X))
    np.testing.assert_array_equal(mapped, X)


def test_a_feature_that_is_constant_but_for_rounding_is_not_blown_up() -> None:
    """online-ml/river#132: a feature of no variance is divided by a tiny number, and explodes."""
    level = 123456.789
    model = learned(river_regressor(), [{"a": one["a"], "b": level} for one in RECORDS], Y)
    calm = model.predict_one({"a": 0.5, "b": level})
    shaken = model.predict_one({"a": 0.5, "b": level * (1.0 + 1e-15)})
    assert abs(shaken - calm) < 1e-3 and abs(calm) < 3.0


def test_probabilities_are_not_certain_because_a_feature_is_large() -> None:
    """online-ml/river#286: with features in the millions all probabilities are 0 or 1."""
    records = [{"a": 1e6 * one["a"], "b": 1e-6 * one["b"]} for one in RECORDS]
    model = learned(river_classifier(), records, LABELS.tolist())
    plain = learned(river_classifier(), RECORDS, LABELS.tolist())
    for record, one in zip(records[:5], RECORDS[:5], strict=True):
        probs = model.predict_proba_one(record)
        assert 0.01 < probs["up"] < 0.99
        assert probs == pytest.approx(plain.predict_proba_one(one), abs=1e-3)


def test_a_frame_of_forecasts_keeps_the_index_of_the_rows() -> None:
    """alteryx/evalml#1639: predictions come with an index from 0, and join to the wrong rows."""
    frame = FRAME[["a", "b"]].set_index(pd.Index(range(ROWS, 0, -1)))
    model = river_regressor()
    model.learn_many(frame, pd.Series(Y, index=frame.index))
    answers = model.predict_many(frame)
    assert answers.index.equals(frame.index)
    assert answers.loc[ROWS] == pytest.approx(model.predict_one(RECORDS[0]), rel=1e-5)


@pytest.mark.slow
def test_a_class_that_comes_late_has_a_probability_among_all() -> None:
    """online-ml/river#139: nobody knows whether classes may come late, and what they sum to."""
    model = learned(river_classifier(), RECORDS, LABELS.tolist())
    for _ in range(3):
        model.learn_one({"a": 9.0, "b": 9.0}, "sideways")
    probs = model.predict_proba_one({"a": 9.0, "b": 9.0})
    assert set(probs) == {"up", "down", "sideways"}
    assert sum(probs.values()) == pytest.approx(1.0, abs=1e-6) and max(probs, key=probs.get) == "sideways"


@pytest.mark.parametrize("kind", ["Int64", "boolean"])
def test_a_label_that_is_pandas_own_missing_value_is_said_to_be_missing(kind: Any) -> None:
    """scikit-learn/scikit-learn#25073: labels in pandas' own types are called an unknown kind of label."""
    labels = pd.Series([1, 0, None] * 10, dtype=kind)
    calls: list[Callable[[], object]] = [
        lambda: classifier().fit(X, labels),
        lambda: classifier().partial_fit(X, labels, classes=[0, 1]),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="Input y contains NaN"):
            call()


def test_a_column_that_is_empty_in_a_later_frame_counts_as_missing() -> None:
    """evidentlyai/evidently#330: a numeric column that is all missing in later data divides by zero."""
    model = regressor().fit(FRAME, Y)
    mean, sd = model.predict(FRAME.assign(b=[None] * ROWS).astype(float), return_std=True)
    assert np.isfinite(mean).all() and (sd > 0).all()
    moved = model.predict(FRAME.assign(b=np.nan, a=FRAME["a"] + 1.0)) - mean
    assert (moved > 0.3).all()  # the other columns still count


def test_an_empty_column_does_not_stop_the_others_from_being_learned() -> None:
    """evidentlyai/evidently#1480: one empty column makes the whole report fail."""
    model = regressor().fit(FRAME.assign(void=np.nan), Y)
    assert model.score(FRAME.assign(void=np.nan), Y) > 0.9
    noted = regressor().fit(FRAME.assign(void=[None] * ROWS), Y)
    np.testing.assert_allclose(noted.predict(FRAME.assign(void=[None] * ROWS)), Y, atol=1.5)


def test_a_pickled_model_forecasts_and_learns_on_as_the_first_one() -> None:
    """online-ml/river#194: a model that was saved and loaded gives nearly one answer to all rows."""
    model = learned(river_regressor(), RECORDS[:12], Y[:12])
    again = pickle.loads(pickle.dumps(model))
    for record, target in zip(RECORDS[12:], Y[12:], strict=True):
        assert again.predict_one(record) == model.predict_one(record)
        again.learn_one(record, target)
        model.learn_one(record, target)
    assert len({again.predict_one(record) for record in RECORDS}) == ROWS


def test_names_that_differ_by_a_blank_are_two_features() -> None:
    """lightgbm-org/LightGBM#7230: a blank in a name becomes an underscore, and two names become one."""
    records = [{"a b": one["a"], "a_b": one["b"]} for one in RECORDS]
    model = learned(river_regressor(), records, Y)
    plain = learned(river_regressor(), RECORDS, Y)
    assert model.predict_one(records[0]) == plain.predict_one(RECORDS[0])
    assert model.predict_one({"a b": 1.0, "a_b": 0.0}) != model.predict_one({"a b": 0.0, "a_b": 1.0})


def test_a_target_that_never_moves_is_forecast_with_a_spread_that_is_a_number() -> None:
    """facebook/prophet#1321: nobody can say how wide the interval of a constant series is."""
    model = regressor().fit(X, np.full(ROWS, 7.0))
    mean, sd = model.predict(X, return_std=True)
    np.testing.assert_allclose(mean, 7.0, atol=1e-3)
    assert np.isfinite(sd).all() and (sd > 0).all()
    lower, upper = np.asarray(model.predict_interval(X, coverage=0.9)).T
    assert (lower < mean).all() and (mean < upper).all()
