"""The parts of a log are evaluated each for itself, and say what they know of a policy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.bandits.evaluation.worlds import fixed_log

from credo.bandits import Log, evaluate_policy
from credo.bandits.evaluation import EstimatorName, IntervalName, arm_values, evaluate_over_time, log_support


@pytest.mark.parametrize("interval", ["likelihood", "bernstein"])
@pytest.mark.parametrize("name", ["ips", "sn-dr", "dr-os", "dr-adaptive", "direct"])
def test_a_part_is_evaluated_on_its_rows(name: EstimatorName, interval: IntervalName) -> None:
    log, target = fixed_log(150, 0)
    rewards = np.where(np.arange(150) % 5 == 0, np.nan, log.rewards)
    log = Log(log.arms, log.chosen, rewards, log.propensities, log.contexts, log.pmfs)
    known = np.flatnonzero(np.isfinite(rewards))
    values = arm_values(log.take(known))
    course = evaluate_over_time(log, target, parts=3, estimator=name, interval=interval)
    assert course.whole == evaluate_policy(log, target, estimator=name, interval=interval)
    assert [(part.first, part.last) for part in course.parts] == [(0, 40), (40, 80), (80, 120)]
    for part in course.parts:
        here = known[part.first : part.last]
        rows, model = log.take(here), values[part.first : part.last]
        want = evaluate_policy(
            rows,
            target[here],
            estimator=name,
            interval=interval,
            model=None if name == "ips" else model,
            reward_range=(0.0, 1.0) if interval == "bernstein" else None,
        )
        assert part.estimate == want
        assert part.on_policy == rows.rewards.mean()


def test_support_counts_rows_and_weights() -> None:
    log, _ = fixed_log(200, 0)
    support = log_support(log, "b")
    w = np.where(log.chosen == 1, 1 / log.propensities, 0.0)
    assert support.rows == 200
    assert support.unused == pytest.approx((w == 0).mean())
    assert support.ess == pytest.approx(w.sum() ** 2 / (w**2).sum())
    assert support.largest == tuple(sorted(w.tolist(), reverse=True)[:5])
    assert support.heaviest == pytest.approx(sum(support.largest) / w.sum())
    assert support.missing == 0.0
    pmfs = np.tile([0.5, 0.5, 0.0], (200, 1))
    two = Log(log.arms, log.chosen % 2, log.rewards, np.full(200, 0.5), pmfs=pmfs)
    assert log_support(two, [0.2, 0.4, 0.4]).missing == pytest.approx(0.4)
    assert "never makes 40% of its choices" in str(log_support(two, [0.2, 0.4, 0.4]))
    assert log_support(Log(two.arms, two.chosen, two.rewards, two.propensities), "a").missing is None


def test_a_part_that_knows_nothing_says_so(tmp_path: Path) -> None:
    chosen = np.r_[np.zeros(50, int), np.arange(50) % 2]
    log = Log(("a", "b"), chosen, np.arange(100.0) % 3, np.full(100, 0.5))
    course = evaluate_over_time(log, "b", parts=2, estimator="snips")
    first, second = course.parts
    assert first.estimate is None and second.estimate is not None and first.support.unused == 1.0
    assert np.isnan(course.table()[0]["value"])
    assert course.table()[1]["value"] == second.estimate.value
    assert str(course).splitlines()[1].split()[:4] == ["1-50", "nan", "nan", "nan"]
    assert course.plot(tmp_path / "course.svg").read_bytes()[:4] == b"<svg"
