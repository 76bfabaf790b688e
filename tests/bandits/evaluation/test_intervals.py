"""Intervals hold the truth as often as they say: for fixed policies, for agents that learn, at all times."""

from __future__ import annotations

import functools
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.bandits.evaluation.worlds import VALUE, World, fixed_log, learning_logs

from credo.bandits import Log, evaluate_policy
from credo.bandits.evaluation import EstimatorName, IntervalName, confidence_sequence
from credo.bandits.evaluation.intervals import bernstein_interval, likelihood_interval
from credo.bandits.evaluation.weighed_rows import reach_beyond

RUNS = 200
FEWEST = 181
"""Of 200 intervals of level .95 fewer hold the truth with probability .003."""


@functools.cache
def _logs(kind: str) -> list[World]:
    return learning_logs(300, RUNS, 0) if kind == "learning" else [fixed_log(300, n) for n in range(RUNS)]


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("kind", ["fixed", "learning"])
@pytest.mark.parametrize("name", ["ips", "dr"])
@pytest.mark.parametrize("interval", ["likelihood", "bootstrap"])
def test_asymptotic_intervals_cover_at_the_nominal_rate(
    interval: IntervalName, name: EstimatorName, kind: str
) -> None:
    estimates = [
        evaluate_policy(log, target, estimator=name, interval=interval) for log, target in _logs(kind)
    ]
    hits = [estimate.low <= VALUE <= estimate.high for estimate in estimates]
    assert sum(hits) >= FEWEST
    widths = np.array([estimate.high - estimate.low for estimate in estimates])
    value: EstimatorName = "snips" if (interval, name) == ("likelihood", "ips") else name  # E[w] = 1 is used
    spread = np.std([evaluate_policy(log, target, estimator=value).value for log, target in _logs(kind)])
    assert widths.mean() == pytest.approx(2 * 1.96 * spread, rel=0.25)  # the spread of 200 is known to 5%


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("name", ["ips", "snips", "dr"])
def test_the_likelihood_covers_where_few_rows_carry_the_weight(name: EstimatorName) -> None:
    """Logs of Thompson sampling on two Bernoulli arms, and the value of the arm that it leaves alone."""
    rng, hits, bootstrap = np.random.default_rng(3), 0, 0
    for _ in range(RUNS):
        wins, pulls, rows = np.ones(2), np.full(2, 2.0), []
        for _ in range(300):
            sds = np.sqrt(wins * (pulls - wins) / pulls**3)
            gap = float((wins / pulls) @ [-1.0, 1.0] / np.sqrt(sds @ sds))
            second = 0.01 + 0.98 * NormalDist().cdf(gap)
            arm = int(rng.random() < second)
            reward = float(rng.random() < (0.6, 0.4)[arm])
            wins[arm], pulls[arm] = wins[arm] + reward, pulls[arm] + 1
            rows.append((arm, reward, second))
        chosen, rewards, second = np.array(rows).T
        pmfs = np.stack([1 - second, second], axis=1)
        arms = chosen.astype(int)
        log = Log(("a", "b"), arms, rewards, pmfs[np.arange(300), arms], pmfs=pmfs)
        ends = [
            evaluate_policy(log, "b", estimator=name, interval=each) for each in ("likelihood", "bootstrap")
        ]
        hits += ends[0].low <= 0.4 <= ends[0].high
        bootstrap += ends[1].low <= 0.4 <= ends[1].high
    assert hits >= FEWEST and bootstrap < FEWEST


@pytest.mark.parametrize("weighed", [True, False])
def test_the_likelihood_interval_is_the_best_of_distributions(weighed: bool) -> None:
    """Against a general solver of the definition, with the probabilities of rows and corners as unknowns."""
    rng = np.random.default_rng(1)
    rewards, weights = rng.random(6), np.array([0.2, 0.5, 3.0, 1.5, 0.3, 1.2])
    terms = rewards * weights if weighed else rewards
    corners = np.array(
        [[0.0, 0.0], [0.0, 0.0], [4.0, 0.0], [4.0, 4.0]] if weighed else [[1.0, 0.0], [1.0, 1.0]]
    )
    u = np.concatenate([terms, corners[:, 1]])
    w = np.concatenate([weights, corners[:, 0]])
    known = [{"type": "eq", "fun": lambda q: q.sum() - 1.0}]
    if weighed:
        known.append({"type": "eq", "fun": lambda q: q @ w - 1.0})
    start, bounds = np.full(u.size, 1 / u.size), [(1e-12, 1.0)] * u.size

    def solve(goal: Any, more: list[Any]) -> float:
        found = minimize(goal, start, bounds=bounds, constraints=known + more, options={"maxiter": 1000})
        assert found.success
        return float(found.fun)

    most = -solve(lambda q: -np.log(q[:6]).sum(), [])
    near = {"type": "ineq", "fun": lambda q: np.log(q[:6]).sum() - most + 1.959964**2 / 2}
    want = solve(lambda q: q @ u, [near]), -solve(lambda q: -q @ u, [near])
    got = likelihood_interval(terms, weights if weighed else None, corners, 0.95)
    np.testing.assert_allclose(got, want, atol=2e-3)  # corners count as a thousandth of a row here


@pytest.mark.parametrize("interval", ["bernstein", "sequence"])
@pytest.mark.parametrize("name", ["ips", "dr"])
def test_intervals_for_any_distribution_cover_and_say_so(name: EstimatorName, interval: IntervalName) -> None:
    for log, target in _logs("fixed")[:50]:
        estimate = evaluate_policy(log, target, estimator=name, interval=interval, reward_range=(0.0, 1.0))
        assert 0.0 <= estimate.low <= VALUE <= estimate.high <= 1.0
        assert not [sentence for sentence in estimate.warnings if "interval" in sentence]


@pytest.mark.table
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


@pytest.mark.parametrize("name", ["snips", "sn-dr"])
def test_the_bernstein_interval_of_a_ratio_is_that_of_its_linear_terms(name: EstimatorName) -> None:
    (log, target), *_ = _logs("fixed")
    rows = np.arange(log.rows)
    q = np.random.default_rng(1).random(target.shape) if name == "sn-dr" else np.zeros(target.shape)
    weights = target[rows, log.chosen] / log.propensities
    direct = (target * q).sum(axis=1)
    left = log.rewards - q[rows, log.chosen]
    correction = weights @ left / weights.sum()
    value = direct.mean() + correction
    terms = direct + correction + weights / weights.mean() * (left - correction)
    low, high = bernstein_interval(terms, float(np.ptp(terms)), 0.5)
    got = evaluate_policy(
        log,
        target,
        estimator=name,
        model=q if name == "sn-dr" else None,
        interval="bernstein",
        level=0.5,
        reward_range=(0.0, 1.0),
    )
    assert 0.0 < low < value < high < 1.0
    assert (got.low, got.value, got.high) == pytest.approx((low, value, high), abs=1e-12)
    assert any("linearised" in sentence for sentence in got.warnings)


def test_many_rows_are_drawn_in_groups() -> None:
    rng = np.random.default_rng(0)
    chosen, rewards = rng.integers(0, 2, 40_000), rng.random(40_000)
    log = Log(("a", "b"), chosen, rewards, np.full(40_000, 0.5))
    estimate = evaluate_policy(log, "a", estimator="snips", interval="bootstrap")
    spread = rewards[chosen == 0].std() / np.sqrt((chosen == 0).sum())
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * spread, rel=0.1)  # of 1,000 draws


def test_the_seed_decides_the_bootstrap() -> None:
    log, target = fixed_log(50, 0)
    once, again, other = (evaluate_policy(log, target, interval="bootstrap", seed=seed) for seed in (0, 0, 1))
    assert once == again and once != other


@pytest.mark.parametrize(("pairs", "reach"), [(1, 5.0), (2, 2.5), (10, 2.0)])
def test_the_fewer_rows_carry_the_variance_the_farther_may_a_term_lie(pairs: int, reach: float) -> None:
    terms = np.concatenate([np.ones(pairs), -np.ones(pairs), np.zeros(50)])  # 2 pairs rows carry all of it
    assert reach_beyond(terms) == pytest.approx(reach, rel=1e-12)
    assert reach_beyond(np.zeros(5)) == 2.0
