"""River's own checks of an estimator, for every family, a small network and a wrapper."""

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

ESTIMATORS: list[Estimator] = [
    *(RiverClassifier(**kind) for kind in KINDS.values()),  # type: ignore[arg-type]
    *(RiverRegressor(**kind) for kind in KINDS.values()),  # type: ignore[arg-type]
]


def named_checks() -> list[ParameterSet]:
    cases = []
    for estimator, kind in zip(ESTIMATORS, [*KINDS, *KINDS], strict=True):
        name = type(estimator).__name__
        for number, check in enumerate(checks.yield_checks(estimator)):
            cases.append(pytest.param(estimator, check, id=f"{name}-{kind}-{number}-{check.__name__}"))
    return cases


@pytest.mark.parametrize(("estimator", "check"), named_checks())
def test_an_estimator_passes_the_checks_of_river(
    estimator: Estimator, check: Callable[[Estimator], None]
) -> None:
    check(estimator.clone())


def test_no_check_of_river_is_skipped() -> None:
    assert not any(estimator._unit_test_skips() for estimator in ESTIMATORS)


def test_the_order_of_features_changes_nothing_a_hundred_times() -> None:
    rows = list(Phishing().take(20))
    for _ in range(100):
        common.check_shuffle_features_no_impact(RiverClassifier("linear"), rows)
