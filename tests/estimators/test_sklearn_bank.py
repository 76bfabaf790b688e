"""scikit-learn's own checks of the estimators as users get them: with a bank of learners."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks
from tests.estimators.test_sklearn_checks import FAILURES, expected

import credo
from credo.sessions import Member, Network, TaskName, assembly
from credo.sessions.members import members_of

pytestmark = pytest.mark.bank


@pytest.fixture
def two_members() -> Iterator[None]:
    """Two members in place of nine or more, which share one program; the list itself has tests of its own."""
    members = (
        Member(Network("linear"), 0.0, 1.0, forgetting=0.97),
        Member(Network("linear"), 1e-2, 16.0, 8.0, forgetting=0.9),
    )

    patch = pytest.MonkeyPatch()
    patch.setattr(assembly, "members_of", lambda *_: members)
    yield
    patch.undo()


@pytest.mark.usefixtures("two_members")
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [credo.OnlineClassifier(), credo.OnlineRegressor()], expected_failed_checks=expected
)
def test_sklearn_checks_of_a_small_bank(estimator: Any, check: Any) -> None:
    check(estimator)


WHOLE = {
    "check_dict_unchanged",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
}
"""Checks that fit rows of one shape."""


@pytest.mark.parametrize("estimator", [credo.OnlineClassifier(), credo.OnlineRegressor()])
def test_some_checks_of_the_whole_bank(estimator: Any) -> None:
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
