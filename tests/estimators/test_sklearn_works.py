"""The estimators inside the tools of scikit-learn."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from joblib import Parallel, delayed
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor, StackingRegressor
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import credo

COUNT = 60
X = np.random.default_rng(0).normal(size=(COUNT, 3))
Y = 5.0 + X @ [1.0, -2.0, 0.5]
LABELS = np.where(Y > 5.0, "up", "down")
CITY = np.where(X[:, 2] > 0, "Oslo", "Rome")


def regressor(**settings: Any) -> Any:
    return credo.OnlineRegressor("linear", drift="none", **settings)


def classifier(**settings: Any) -> Any:
    return credo.OnlineClassifier("linear", drift="none", **settings)


@pytest.fixture(scope="module", autouse=True)
def like_here() -> Iterator[None]:
    """Processes of joblib compute as this one does."""
    patch = pytest.MonkeyPatch()
    patch.setenv("JAX_ENABLE_X64", "1")
    yield
    patch.undo()


def test_in_a_pipeline_with_frames_between_its_steps() -> None:
    scale = StandardScaler().set_output(transform="pandas")
    line = make_pipeline(scale, regressor()).fit(pd.DataFrame(X, columns=list("abc")), Y)
    assert line.score(pd.DataFrame(X, columns=list("abc")), Y) > 0.95
    assert line[-1].feature_names_in_.tolist() == ["a", "b", "c"]
    assert "OnlineRegressor" in line._repr_html_()


def test_behind_a_column_transformer_with_sparse_one_hot() -> None:
    frame = pd.DataFrame({"a": X[:, 0], "city": CITY})
    encode = ColumnTransformer(
        [("hot", OneHotEncoder(), ["city"])], remainder="passthrough", sparse_threshold=1.0
    )
    line = make_pipeline(encode, regressor()).fit(frame, X[:, 0] + 3.0 * (CITY == "Oslo"))
    assert line.score(frame, X[:, 0] + 3.0 * (CITY == "Oslo")) > 0.95


def test_in_a_grid_search_and_a_copy_in_other_processes() -> None:
    grid = {"prior_var": [0.01, 4.0]}
    search = GridSearchCV(regressor(), grid, n_jobs=2, cv=2).fit(X, Y)
    assert search.best_params_ == {"prior_var": 4.0}
    begun = regressor().partial_fit(X[:30], Y[:30])
    jobs = (delayed(go_on)(begun) for _ in range(2))
    here = go_on(begun)
    for there in Parallel(n_jobs=2, backend="loky")(jobs):
        np.testing.assert_array_equal(there, here)


def go_on(begun: Any) -> np.ndarray:
    forecasts: np.ndarray = copy.deepcopy(begun).partial_fit(X[30:], Y[30:]).predict(X)
    return forecasts


def test_in_cross_validation_with_routed_weights() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        weighted = regressor().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scores = cross_validate(weighted, X, Y, cv=3, params={"sample_weight": np.where(Y > 5, 1.0, 2.0)})
    assert (scores["test_score"] > 0.9).all()


def test_in_ensembles() -> None:
    assert BaggingRegressor(regressor(), n_estimators=3, random_state=0).fit(X, Y).score(X, Y) > 0.9
    stack = StackingRegressor([("ours", regressor()), ("ols", LinearRegression())], cv=3).fit(X, Y)
    assert stack.score(X, Y) > 0.95


def test_in_wrappers_of_classes_and_of_targets() -> None:
    three = np.where(X[:, 0] > 0.5, "c", LABELS)
    several = OneVsRestClassifier(classifier()).fit(X, three)
    assert several.score(X, three) > 0.7 and several.predict_proba(X).shape == (COUNT, 3)
    calibrated = CalibratedClassifierCV(classifier(), cv=2).fit(X, LABELS)
    assert calibrated.score(X, LABELS) > 0.9
    logs = TransformedTargetRegressor(regressor(), func=np.exp, inverse_func=np.log)
    assert logs.fit(X, np.log(Y + 10.0)).score(X, np.log(Y + 10.0)) > 0.9


def test_in_inspection() -> None:
    fitted = regressor().fit(X, Y)
    importance: Any = permutation_importance(fitted, X, Y, n_repeats=2, random_state=0)
    assert importance.importances_mean.argmax() == 1
    line = partial_dependence(fitted, X, [0], grid_resolution=5)["average"][0]
    assert (np.diff(line) > 0).all()
