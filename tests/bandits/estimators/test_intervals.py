"""Intervals hold the truth as often as they say: for fixed policies, for agents that learn, at all times."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from tests.bandits.estimators.worlds import VALUE, World, fixed_log, learning_logs

from credo.bandits import EstimatorName, IntervalName, Log, confidence_sequence, evaluate
from credo.bandits.estimators.intervals import bernstein_interval

RUNS = 200
FEWEST = 181
"""Of 200 intervals of level .95 fewer hold the truth with probability .003."""


@functools.cache
def _logs(kind: str) -> list[World]:
    return learning_logs(300, RUNS, 0) if kind == "learning" else [fixed_log(300, n) for n in range(RUNS)]


@pytest.mark.parametrize("kind", ["fixed", "learning"])
@pytest.mark.parametrize("name", ["ips", "dr"])
def test_the_bootstrap_covers_at_the_nominal_rate(name: EstimatorName, kind: str) -> None:
    estimates = [evaluate(log, target, estimator=name) for log, target in _logs(kind)]
    hits = [estimate.low <= VALUE <= estimate.high for estimate in estimates]
    assert sum(hits) >= FEWEST
    widths = np.array([estimate.high - estimate.low for estimate in estimates])
    spread = np.std([estimate.value for estimate in estimates])
    assert widths.mean() == pytest.approx(2 * 1.96 * spread, rel=0.25)  # the spread of 200 is known to 5%


@pytest.mark.parametrize("interval", ["bernstein", "sequence"])
@pytest.mark.parametrize("name", ["ips", "dr"])
def test_intervals_for_any_distribution_cover_and_say_so(name: EstimatorName, interval: IntervalName) -> None:
    for log, target in _logs("fixed")[:50]:
        estimate = evaluate(log, target, estimator=name, interval=interval, reward_range=(0.0, 1.0))
        assert 0.0 <= estimate.low <= VALUE <= estimate.high <= 1.0
        assert not [sentence for sentence in estimate.warnings if "interval" in sentence]


@pytest.mark.parametrize("name", ["ips", "dr"])
def test_a_confidence_sequence_holds_at_all_times_together(name: EstimatorName) -> None:
    bounds = [
        confidence_sequence(log, target, estimator=name, level=0.8, reward_range=(0.0, 1.0))
        for log, target in _logs("learning")
    ]
    always = [bool((each.low <= VALUE).all() and (each.high >= VALUE).all()) for each in bounds]
    assert sum(always) >= 143  # .8 of 200, less three standard deviations
    assert np.mean([each.high[-1] - each.low[-1] for each in bounds]) < 0.5


def test_a_confidence_sequence_never_looks_ahead() -> None:
    (log, target), *_ = _logs("fixed")
    half = confidence_sequence(log.take(slice(150)), target[:150], reward_range=(0.0, 1.0))
    whole = confidence_sequence(log, target, reward_range=(0.0, 1.0))
    np.testing.assert_array_equal(whole.low[:150], half.low)
    assert (np.diff(whole.low) >= 0).all() and (np.diff(whole.high) <= 0).all()


def test_the_bernstein_interval_is_the_published_one() -> None:
    terms = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    nats, var = np.log(4 / 0.1), terms.var(ddof=1)
    reach = np.sqrt(2 * var * nats / 5) + 7 * 2.0 * nats / (3 * 4)
    assert bernstein_interval(terms, 2.0, 0.9) == pytest.approx((0.6 - reach, 0.6 + reach), abs=1e-12)


def test_many_rows_are_drawn_in_groups() -> None:
    rng = np.random.default_rng(0)
    chosen, rewards = rng.integers(0, 2, 40_000), rng.random(40_000)
    log = Log(("a", "b"), chosen, rewards, np.full(40_000, 0.5))
    estimate = evaluate(log, "a", estimator="snips")
    spread = rewards[chosen == 0].std() / np.sqrt((chosen == 0).sum())
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * spread, rel=0.1)  # of 1,000 draws


def test_the_seed_decides_the_bootstrap() -> None:
    log, target = fixed_log(50, 0)
    assert evaluate(log, target) == evaluate(log, target)
    assert evaluate(log, target) != evaluate(log, target, seed=1)
