"""scikit-learn's own checks of a bank of two learners; for the whole one: `test_sklearn_whole_bank.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.estimators.test_sklearn_checks import expected

import credo
from credo.recipes import assembly
from credo.sessions import Member, Network


@pytest.fixture(autouse=True, scope="module")
def two_members() -> Iterator[None]:
    """Two members in place of nine or more, which share one program; the list itself has tests of its own."""
    members = (
        Member(Network("linear"), 0.0, 1.0, forgetting=0.97),
        Member(Network("linear"), 1e-2, 16.0, 8.0, forgetting=0.9),
    )
    program: Any = assembly._bank  # compiled banks do not know of what members they were
    program.clear_cache()
    patch = pytest.MonkeyPatch()
    patch.setattr(assembly, "members_of", lambda *_: members)
    yield
    patch.undo()
    program.clear_cache()


@pytest.mark.thorough
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [credo.OnlineClassifier(), credo.OnlineRegressor()], expected_failed_checks=expected
)
def test_sklearn_checks_of_a_small_bank(estimator: Any, check: Any) -> None:
    check(estimator)
