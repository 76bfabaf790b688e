"""Some of scikit-learn's own checks with the whole bank of learners, as users get it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator
from tests.estimators.test_sklearn_checks import FAILURES

import credo
from credo.recipes import assembly
from credo.recipes.members import members_of
from credo.sessions import TaskName

WHOLE = {
    "check_dict_unchanged",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
}
"""Checks that fit rows of one shape."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [credo.OnlineRegressor(), pytest.param(credo.OnlineClassifier(), marks=pytest.mark.thorough)],
)
def test_some_checks_of_the_whole_bank(estimator: Any) -> None:
    program: Any = assembly._bank
    program.clear_cache()  # of banks of the few members that other tests have
    done = set()
    checks: Any = estimator_checks_generator(estimator, expected_failed_checks=FAILURES)
    for own, check in checks:
        if check.func.__name__ in WHOLE:
            check(own)
            done.add(check.func.__name__)
    assert done == WHOLE
    rows = np.random.default_rng(0).uniform(0.0, 3.0, size=(20, 3))
    weights = estimator.fit(rows, rows[:, 0].astype(int))._trainer.belief.weights
    outputs = 3 if isinstance(estimator, credo.OnlineClassifier) else 1
    task: TaskName = "classification" if outputs > 1 else "regression"
    assert len(weights) == len(members_of(task, 4, outputs)) > 2
