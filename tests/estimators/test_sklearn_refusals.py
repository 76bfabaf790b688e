"""What the estimators of scikit-learn refuse, in a sentence, and that a refused call changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import credo
from credo.core.errors import CredoError, DataError

Call = Callable[[Any], object]
X = np.random.default_rng(0).normal(size=(30, 3))
Y = X @ [1.0, -2.0, 0.5]
LABELS = np.where(Y > 0, "up", "down")
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "city": np.where(X[:, 2] > 0, "Oslo", "Rome")})


def changed(row: int, column: int, value: object) -> np.ndarray:
    cells = X.astype(object)
    cells[row, column] = value
    return cells


REGRESSOR: dict[str, tuple[Call, str]] = {
    "text": (
        lambda e: e.partial_fit(changed(4, 1, "warm"), Y),
        "X must hold numbers; row 5 holds 'warm' in column 'x1'",
    ),
    "text in predict": (
        lambda e: e.predict(changed(4, 1, "warm")),
        "X must hold numbers; row 5 holds 'warm' in column 'x1'",
    ),
    "columns": (lambda e: e.partial_fit(X[:, :2], Y), "X has 2 features, but OnlineRegressor is expecting 3"),
    "infinite target": (lambda e: e.fit(X, np.r_[np.inf, Y[1:]]), "Input y contains infinity"),
    "infinite target online": (
        lambda e: e.partial_fit(X, np.r_[np.inf, Y[1:]]),
        "Input y contains infinity",
    ),
    "missing target": (lambda e: e.partial_fit(X, np.r_[np.nan, Y[1:]]), "Input y contains NaN"),
    "text for a target": (
        lambda e: e.partial_fit(X, np.r_[["warm"], Y[1:].astype(object)]),
        "could not convert string to float: 'warm'",
    ),
    "no target": (lambda e: e.fit(X, None), "requires y to be passed, but the target y is None"),
    "infinite input": (lambda e: e.partial_fit(X * np.inf, Y), "Input X contains infinity"),
    "lengths": (lambda e: e.partial_fit(X, Y[:5]), "inconsistent numbers of samples"),
    "weights of 0": (
        lambda e: e.partial_fit(X, Y, sample_weight=np.zeros(30)),
        "sample_weight must be above 0 for some row; the weights of all 30 rows are zero",
    ),
    "weight below 0": (
        lambda e: e.fit(X, Y, sample_weight=np.r_[np.ones(29), -2.0]),
        "sample_weight must be at least 0; row 30 has -2",
    ),
    "coverage": (
        lambda e: e.predict_interval(X, coverage=1.0),
        r"coverage must be above 0 and below 1; got 1\.0",
    ),
    "alpha": (lambda e: e.predict_quantiles(X, [0.1, 2.0]), "alpha must be above 0 and below 1"),
    "unknown model": (lambda e: e.set_params(model="forest").fit(X, Y), "forest"),
    "passes": (lambda e: e.set_params(passes=0).fit(X, Y), "passes must be a whole number from 1; got 0"),
    "random_state": (lambda e: e.set_params(random_state=-1).fit(X, Y), "random_state"),
    "bank with a posterior": (
        lambda e: e.set_params(model="bank", posterior="full").fit(X, Y),
        "is for a single learner",
    ),
    "params alone": (lambda e: e.set_params(params=np.zeros(3)).fit(X, Y), "params is for `learner`"),
    "learner of another size": (
        lambda e: e.set_params(model=None, learner=kalman(), params=np.zeros(7)).fit(X, Y),
        r"learner must take rows of 3 inputs \(x0, x1, x2\); with such a row it says",
    ),
    "learner and posterior": (
        lambda e: e.set_params(model=None, posterior="full", learner=kalman(), params=np.zeros(3)).fit(X, Y),
        "`posterior=full` says how a learner is built, and `learner` is one",
    ),
    "no learner": (lambda e: e.set_params(model=None, learner="kalman").fit(X, Y), "learner must be"),
}

CLASSIFIER: dict[str, tuple[Call, str]] = {
    "label": (
        lambda e: e.partial_fit(X, np.where(Y > 1, "far", LABELS)),
        "y must hold the classes 'down', 'up'; row [0-9]+ has 'far'",
    ),
    "number for a text": (lambda e: e.partial_fit(X, (Y > 0).astype(int)), "y must hold the classes"),
    "other classes": (
        lambda e: e.partial_fit(X, LABELS, classes=["up", "left"]),
        "classes must be those of the first call, 'down', 'up'; got 'left', 'up'",
    ),
    "one class": (
        lambda e: e.fit(X, np.full(30, "up")),
        "y must hold at least two classes; it holds one class, 'up'",
    ),
    "numbers for classes": (lambda e: e.fit(X, Y), "Unknown label type"),
    "unknown label to score": (lambda e: e.log_score(X, np.full(30, "far")), "row 1 has 'far'"),
}


def kalman() -> Any:
    return credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.1)))


def refuse(estimator: Any, call: Call, sentence: str, folder: Path) -> None:
    before = estimator.save(folder / "before").read_bytes()
    parameters = estimator.get_params()
    with pytest.raises(ValueError, match=sentence) as refusal:
        call(estimator)
    assert "\n\n" not in str(refusal.value)
    estimator.set_params(**parameters)
    assert estimator.save(folder / "after").read_bytes() == before


@pytest.fixture(scope="module")
def regressor() -> Any:
    return credo.OnlineRegressor("linear").fit(X, Y)


@pytest.fixture(scope="module")
def classifier() -> Any:
    return credo.OnlineClassifier("linear").fit(X, LABELS)


@pytest.mark.parametrize("case", REGRESSOR)
def test_a_regressor_refuses_in_a_sentence_and_stays(regressor: Any, case: str, tmp_path: Path) -> None:
    refuse(regressor, *REGRESSOR[case], tmp_path)


@pytest.mark.parametrize("case", CLASSIFIER)
def test_a_classifier_refuses_in_a_sentence_and_stays(classifier: Any, case: str, tmp_path: Path) -> None:
    refuse(classifier, *CLASSIFIER[case], tmp_path)


def test_a_frame_is_refused_by_the_names_and_cells_of_its_columns(tmp_path: Path) -> None:
    fitted = credo.OnlineRegressor("linear").fit(FRAME, Y)
    warm = FRAME.astype({"b": object})
    warm.loc[4, "b"] = "warm"
    cases: dict[str, Call] = {
        "row 5 holds 'warm' in the numeric column 'b'": lambda e: e.partial_fit(warm, Y),
        "feature names should match": lambda e: e.predict(FRAME.rename(columns={"a": "z"})),
        "X has the column 'z', which the first rows did not have; they had a, b, city": (
            lambda e: e.predict([{"a": 1.0, "z": 2.0}])
        ),
        "X has no column to learn from: column 'a' is left out": (
            lambda e: e.fit(pd.DataFrame({"a": ["x"] * 30}), Y)
        ),
        "X must have at least one row and one column": lambda e: e.predict({}),
        "one cell a row in each column; 'a' has 2, 'b' has 1": (
            lambda e: e.fit({"a": [1, 2], "b": [1]}, [1.0, 2.0])
        ),
    }
    for sentence, call in cases.items():
        refuse(fitted, call, sentence, tmp_path)


def test_the_first_call_must_know_the_classes_and_forecasts_need_rows() -> None:
    fresh = credo.OnlineClassifier("linear")
    before = dict(vars(fresh))
    with pytest.raises(CredoError, match="classes must be given at the first call of partial_fit"):
        fresh.partial_fit(X, LABELS)
    with pytest.raises(ValueError, match=r"y must hold the classes 'down', 'left'; row [0-9]+ has 'up'"):
        fresh.partial_fit(X, LABELS, classes=["down", "left"])
    assert vars(fresh) == before
    calls: list[Call] = [
        lambda e: e.predict(X),
        lambda e: e.predict_proba(X),
        lambda e: e.forecast(X),
        lambda e: e.log_score(X, LABELS),
        lambda e: e.save("nowhere.credo"),
    ]
    for call in calls:
        with pytest.raises(NotFittedError):
            call(fresh)
    with pytest.raises(NotFittedError):
        credo.OnlineRegressor().predict_interval(X)
    for name in ("n_parameters_", "log_evidence_", "n_seen_", "changes_"):
        assert not hasattr(fresh, name)


def test_a_file_of_another_estimator_is_refused(regressor: Any, tmp_path: Path) -> None:
    path = regressor.save(tmp_path / "saved.credo")
    with pytest.raises(credo.FormatError, match="holds an OnlineRegressor"):
        credo.OnlineClassifier.load(path)
    learner = credo.BetaBernoulli()
    other = credo.save(tmp_path / "other.credo", learner, learner.init())
    with pytest.raises(credo.FormatError, match="kept no estimator"):
        credo.OnlineRegressor.load(other)


@pytest.mark.parametrize("value", [1e153, -1e200, 1e31])
def test_a_target_whose_square_is_beyond_all_numbers_is_refused(value: float) -> None:
    x = np.arange(12.0).reshape(6, 2)
    y = np.asarray([1.0, 2.0, value, 3.0, 4.0, 5.0])
    for rows in (x, x.astype(object)):
        with pytest.raises(DataError, match=r"y must be numbers of at most 1e\+30; row 3 has") as refusal:
            credo.OnlineRegressor(model="linear").fit(rows, y)
        assert refusal.value.field == "y" and isinstance(refusal.value, ValueError)


@pytest.mark.parametrize(("kind", "plain"), [("Int64", "int64"), ("boolean", "bool"), ("Float64", "float64")])
def test_labels_of_pandas_own_kinds_come_back_as_they_were(kind: Any, plain: str) -> None:
    x = np.arange(24.0).reshape(12, 2)
    labels = pd.Series([1, 0, 1, 1, 0, 0] * 2, dtype=kind)
    for rows in (x, x.astype(object), pd.DataFrame(x, columns=["a", "b"])):
        classifier = credo.OnlineClassifier(model="linear").fit(rows, labels)
        assert classifier.classes_.dtype == plain
        assert classifier.predict(rows).dtype == plain
