"""scikit-learn's own checks of the estimators as users get them: with a bank of learners."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import credo
from credo.sessions import Member, Network, assembly
from tests.estimators.test_sklearn_checks import expected

pytestmark = pytest.mark.bank


@pytest.fixture
def few_members() -> Iterator[None]:
    """A few members in place of eleven; the list itself has tests of its own.

    Those for numbers share one program. Those for classes are of both kinds of networks.
    """
    linear = (
        Member(Network("linear"), 0.0, 1.0, forgetting=0.97),
        Member(Network("linear"), 1e-2, 16.0, 8.0, forgetting=0.9),
    )
    hidden = Member(Network("mlp", (3,)), 1e-4, 4.0, activation="tanh")

    def few(task: str, *_: Any) -> tuple[Member, ...]:
        return linear if task == "regression" else (*linear, hidden)

    patch = pytest.MonkeyPatch()
    patch.setattr(assembly, "members_of", few)
    yield
    patch.undo()


@pytest.mark.usefixtures("few_members")
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [credo.OnlineClassifier(), credo.OnlineRegressor()], expected_failed_checks=expected
)
def test_sklearn_checks_of_a_small_bank(estimator: Any, check: Any) -> None:
    check(estimator)
