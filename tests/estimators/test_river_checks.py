"""River's own checks of an estimator, for every family, a small network and a wrapper.

The usual run makes all checks of the full covariance; of the others, those that say most, on one stream each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest
from _pytest.mark import ParameterSet
from river import checks
from river.checks import common
from river.datasets import Phishing

from credo.estimators import RiverClassifier, RiverRegressor

Estimator: TypeAlias = RiverClassifier | RiverRegressor

KINDS: dict[str, dict[str, str]] = {
    "full": {"model": "linear"},
    "diagonal": {"model": "linear", "posterior": "diagonal"},
    "low-rank": {"model": "linear", "posterior": "low-rank:2"},
    "network": {"model": "mlp:3", "posterior": "diagonal"},
    "wrapper": {"model": "linear", "drift": "run-length:0.01,2"},
}

TELLING = {
    "check_learn_one",
    "check_shuffle_features_no_impact",
    "check_emerging_features",
    "check_disappearing_features",
    "check_pickling",
    "check_learn_many_matches_learn_one",
}
"""The checks that say most about a family."""

ESTIMATORS: list[Estimator] = [
    *(RiverClassifier(**kind) for kind in KINDS.values()),  # type: ignore[arg-type]
    *(RiverRegressor(**kind) for kind in KINDS.values()),  # type: ignore[arg-type]
]


def named_checks() -> list[ParameterSet]:
    cases = []
    for estimator, kind in zip(ESTIMATORS, [*KINDS, *KINDS], strict=True):
        name, done = type(estimator).__name__, set(TELLING)
        for number, check in enumerate(checks.yield_checks(estimator)):
            usual = kind == "full" or check.__name__ in done
            done.discard(check.__name__)
            marks = [] if usual else [pytest.mark.thorough]
            label = f"{name}-{kind}-{number}-{check.__name__}"
            cases.append(pytest.param(estimator, check, id=label, marks=marks))
    return cases


@pytest.mark.table
@pytest.mark.parametrize(("estimator", "check"), named_checks())
def test_an_estimator_passes_the_checks_of_river(
    estimator: Estimator, check: Callable[[Estimator], None]
) -> None:
    check(estimator.clone())


def test_no_check_of_river_is_skipped() -> None:
    assert not any(estimator._unit_test_skips() for estimator in ESTIMATORS)


@pytest.mark.slow
def test_the_order_of_features_changes_nothing_a_hundred_times() -> None:
    rows = list(Phishing().take(20))
    for _ in range(100):
        common.check_shuffle_features_no_impact(RiverClassifier("linear"), rows)
