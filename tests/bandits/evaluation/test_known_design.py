"""What is known of rare weights and of contexts with a memory is what loops over rows find."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.bandits.evaluation.worlds import draw

from credo.bandits import Log, evaluate_policy
from credo.bandits.evaluation.intervals import memory_factor
from credo.bandits.evaluation.weighed_rows import EXPECTED, PRIOR, design_factor, row_weights


def test_the_variance_of_rare_weights_is_that_of_their_expectation() -> None:
    rng = np.random.default_rng(0)
    rows, arms = 400, 3
    pmfs = rng.dirichlet([4.0, 2.0, 0.3], rows)
    target = rng.dirichlet([1.0, 1.0, 1.0], rows)
    chosen, direct, rewards = draw(pmfs, rng), rng.normal(size=rows), rng.normal(size=rows)
    all_weights = target / pmfs
    w = [float(all_weights[n, chosen[n]]) for n in range(rows)]
    u = [float(direct[n] + w[n] * rewards[n]) for n in range(rows)]
    mean = sum(u) / rows
    pairs = sorted(((all_weights[n, k], pmfs[n, k]) for n in range(rows) for k in range(arms)), reverse=True)
    expected, bound = 0.0, math.inf
    for weight, chance in pairs:
        expected += chance
        if expected >= EXPECTED:
            bound = float(weight)
            break
    pooled = [sum(w[n] * rewards[n] ** j for n in range(rows)) / sum(w) for j in (1, 2)]
    e = np.zeros((2, arms))
    for k in range(arms):
        here = [n for n in range(rows) if chosen[n] == k]
        for j in (1, 2):
            total = sum(w[n] * rewards[n] ** j for n in here) + PRIOR * pooled[j - 1]
            e[j - 1, k] = total / (sum(w[n] for n in here) + PRIOR)
    squares = sum((u[n] - mean) ** 2 for n in range(rows) if w[n] <= bound)
    for n in range(rows):
        for k in range(arms):
            weight, gap = all_weights[n, k], direct[n] - mean
            if weight > bound:
                squares += pmfs[n, k] * (weight**2 * e[1, k] + 2 * weight * e[0, k] * gap + gap**2)
    want = max(squares / sum((one - mean) ** 2 for one in u), 1.0)
    got = design_factor(pmfs, all_weights, all_weights, chosen, direct, rewards)
    assert want > 1.0 and got == pytest.approx(want, abs=1e-10)


def test_a_weight_that_was_never_seen_widens_the_interval() -> None:
    """Each of 1,000 rows has the weight 200 with probability .001, and no row has it."""
    rng = np.random.default_rng(0)
    pmfs = np.tile([0.999, 0.001], (1000, 1))
    rewards = (rng.random(1000) < 0.5).astype(float)
    log = Log(("a", "b"), np.zeros(1000, int), rewards, np.full(1000, 0.999), pmfs=pmfs)
    bare = Log(log.arms, log.chosen, rewards, log.propensities)
    known, unknown = (evaluate_policy(each, [0.8, 0.2], estimator="ips") for each in (log, bare))
    assert known.value == unknown.value
    assert known.high - known.low > 1.5 * (unknown.high - unknown.low)


def test_what_contexts_share_with_those_before_is_counted() -> None:
    rng = np.random.default_rng(0)
    v = np.zeros(500)
    for n in range(1, 500):
        v[n] = 0.8 * v[n - 1] + rng.normal()
    u = v + rng.normal(size=500)
    gaps = v - v.mean()
    share = sum(gaps[n] * gaps[n - 1] for n in range(1, 500)) / sum(gap**2 for gap in gaps)
    lags = math.ceil(1.1447 * (4 * share**2 / (1 - share**2) ** 2 * 500) ** (1 / 3))
    total = 0.0
    for lag in range(1, lags + 1):
        shared = sum((v[n] - v.mean()) * (v[n - lag] - v.mean()) for n in range(lag, 500)) / 500
        total += 2 * (1 - lag / (lags + 1)) * shared
    assert memory_factor(v, u) == pytest.approx(1 + total / u.var(), abs=1e-10)
    assert memory_factor(rng.permutation(v), u) == 1.0
    assert memory_factor(np.zeros(500), u) == 1.0


def test_rows_count_by_the_variance_that_earlier_rows_let_expect() -> None:
    rng = np.random.default_rng(0)
    pmfs, target = rng.dirichlet([2.0, 1.0, 0.5], 50), rng.dirichlet([1.0, 1.0, 1.0], 50)
    want, total = [], 1.0
    for n in range(50):
        want.append((total / (n + 1)) ** -0.5)
        total += sum(target[n, k] ** 2 / pmfs[n, k] for k in range(3))
    np.testing.assert_allclose(row_weights(target, pmfs), np.array(want) / np.mean(want), atol=1e-12)
