"""scikit-learn's own checks of estimators."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import credo

ORDER = "the order of rows matters, as for scikit-learn's own SGD"
FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": ORDER,
    "check_sample_weight_equivalence_on_sparse_data": ORDER,
}


def expected(estimator: Any) -> dict[str, str]:
    return FAILURES


@pytest.mark.table
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        credo.OnlineClassifier("linear"),
        credo.OnlineClassifier("mlp:10", drift="run-length"),
        credo.OnlineRegressor("linear", posterior="diagonal"),
    ],
    expected_failed_checks=expected,
)
def test_sklearn_checks(estimator: Any, check: Any) -> None:
    check(estimator)
