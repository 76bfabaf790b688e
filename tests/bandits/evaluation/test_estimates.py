"""The estimators agree with loops over rows, are unbiased where they should be, and share properties."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from tests.bandits.evaluation.worlds import MEANS, TARGET, VALUE, fixed_log

from credo.bandits import Log, evaluate_policy
from credo.bandits.evaluation import ESTIMATORS, AgentPolicy, EstimatorName, arm_values, compare


def _by_loop(log: Log, target: np.ndarray, q: np.ndarray, name: str, c: float) -> float:
    numerator = direct = total = count = ratios = 0.0
    for n in range(log.rows):
        arm, r = log.chosen[n], log.rewards[n]
        w = target[n, arm] / log.propensities[n]
        if name in ("clipped", "dr-ps"):
            w = min(w, c)
        if name in ("switch", "switch-slope") and w > c:
            w = 0.0
        if name == "dr-os":
            w = c * c * w / (w * w + c * c)
        h = (n + 1.0) ** 0.5 / (1.0 + ratios) ** 0.5 if name == "dr-adaptive" else 1.0
        v = 0.0
        for k in range(len(log.arms)):
            v += target[n, k] * q[n, k]
            ratios += target[n, k] ** 2 / log.pmfs[n, k] if log.pmfs is not None else 0.0
        if name in ("ips", "snips", "clipped"):
            numerator += w * r
        else:
            direct += h * v
            numerator += 0.0 if name == "direct" else h * w * (r - q[n, arm])
        total += w
        count += h
    return direct / count + numerator / (total if name in ("snips", "sn-dr") else count)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_is_a_loop_over_rows(name: EstimatorName) -> None:
    log, target = fixed_log(300, 0)
    q = np.random.default_rng(1).random((300, 3))
    models = name not in ("ips", "snips", "clipped")
    clip = 1.5 if name in ("clipped", "switch", "dr-ps", "dr-os", "switch-slope") else None
    got = evaluate_policy(log, target, estimator=name, model=q if models else None, clip=clip)
    assert got.value == pytest.approx(_by_loop(log, target, q, name, 1.5), abs=1e-10)
    assert got.clip == clip
    w = target[np.arange(300), log.chosen] / log.propensities
    assert got.weights_max == pytest.approx(w.max())
    if name in ("ips", "dr", "direct"):
        assert got.ess == pytest.approx(w.sum() ** 2 / (w**2).sum())


@pytest.mark.parametrize("name", ["dr-ps", "dr-os", "switch-slope"])
def test_a_bound_that_the_log_chooses_leaves_the_interval_of_dr(name: EstimatorName) -> None:
    others = 0
    for seed in range(5):
        log, target = fixed_log(300, seed)
        q = np.random.default_rng(1).random((300, 3))
        got = evaluate_policy(log, target, estimator=name, model=q)
        whole = evaluate_policy(log, target, estimator="dr", model=q)
        assert (got.low, got.high) == (min(whole.low, got.value), max(whole.high, got.value))
        if got.clip is None:
            assert got.value == whole.value
            continue
        again = evaluate_policy(log, target, estimator=name, model=q, clip=got.clip)
        assert got.value == again.value
        others += (again.low, again.high) != (got.low, got.high)
    assert others > 0


@pytest.mark.parametrize("name", ["ips", "dr"])
def test_the_mean_over_all_logs_is_the_value(name: EstimatorName) -> None:
    """All logs of two rows: the regressions of dr see one row, and are wrong, which does no harm."""
    pmfs, value = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]), 0.0
    rows = list(itertools.product(range(2), range(3), range(2)))
    for first, second in itertools.product(rows, rows):
        x, chosen, won = np.array([first, second]).T
        p = pmfs[x, chosen]
        chance = np.prod(0.5 * p * np.where(won, MEANS[x, chosen], 1 - MEANS[x, chosen]))
        log = Log(("a", "b", "c"), chosen, won.astype(float), p, x.astype(float))
        value += chance * evaluate_policy(log, TARGET[x], estimator=name).value
    assert value == pytest.approx(VALUE, abs=1e-12)


@given(st.integers(0, 10**6), st.integers(2, 40), st.integers(2, 4))
def test_the_policy_of_the_log_is_worth_what_the_log_earned(seed: int, rows: int, arms: int) -> None:
    rng = np.random.default_rng(seed)
    pmfs = rng.dirichlet(np.ones(arms), rows) * 0.9 + 0.1 / arms
    chosen = np.array([rng.choice(arms, p=row) for row in pmfs])
    p = pmfs[np.arange(rows), chosen]
    log = Log(tuple(map(str, range(arms))), chosen, rng.normal(size=rows), p, None, pmfs)
    for name in ("ips", "snips", "clipped"):
        estimate = evaluate_policy(log, pmfs, estimator=name)
        assert estimate.value == pytest.approx(log.rewards.mean(), abs=1e-12)
        assert estimate.ess == pytest.approx(rows)


@given(st.integers(0, 10**6), st.floats(-5, 5), st.floats(0.1, 10))
def test_self_normalised_values_move_with_the_units_of_the_reward(
    seed: int, shift: float, scale: float
) -> None:
    log, target = fixed_log(60, seed % 50)
    moved = Log(log.arms, log.chosen, shift + scale * log.rewards, log.propensities, log.contexts)
    for name in ("snips", "sn-dr", "dr", "direct"):
        one, other = (evaluate_policy(each, target, estimator=name, seed=seed).value for each in (log, moved))
        assert other == pytest.approx(shift + scale * one, abs=1e-8)


def test_a_row_is_predicted_from_other_rows() -> None:
    log, _ = fixed_log(100, 2)
    other = log.rewards.copy()
    other[7] = 1.0 - other[7]
    changed = Log(log.arms, log.chosen, other, log.propensities, log.contexts)
    assert (arm_values(log)[7] == arm_values(changed)[7]).all()
    assert not (arm_values(log) == arm_values(changed)).all()
    before = arm_values(log, before=True) == arm_values(changed, before=True)
    assert before[:10].all() and not before[10:].all()


def test_the_direct_model_is_a_posterior_mean_at_the_rate_of_greatest_evidence() -> None:
    log, _ = fixed_log(40, 3)
    got, x = arm_values(log, before=True), np.asarray(log.contexts)
    train = np.arange(38)  # the last of 20 blocks has two rows
    z = np.stack([np.ones(40), (x - x[train].mean()) / x[train].std()], axis=1)
    mean = log.rewards[train].mean()
    y, noise = log.rewards - mean, log.rewards[train].var()
    rates = [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0]

    def fitted(parts: list[np.ndarray], start: np.ndarray) -> list[np.ndarray]:
        def evidence(rate: float) -> float:
            total = 0.0
            for part in parts:
                cov: Any = noise * (np.eye(len(part)) + z[part] @ z[part].T / rate)
                total += float(multivariate_normal.logpdf(y[part] - z[part] @ start, cov=cov))
            return total

        rate = max(rates, key=evidence)
        return [
            start + np.linalg.solve(z[p].T @ z[p] + rate * np.eye(2), z[p].T @ (y[p] - z[p] @ start))
            for p in parts
        ]

    (pooled,) = fitted([train], np.zeros(2))
    each = fitted([train[log.chosen[train] == arm] for arm in range(3)], pooled)
    wanted = np.stack([mean + z[38:] @ weights for weights in each], axis=1)
    np.testing.assert_allclose(got[38:], np.clip(wanted, 0.0, 1.0), atol=1e-10)


def test_features_of_each_arm_carry_over_to_arms_that_were_never_chosen() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3, 2))
    chosen = rng.integers(0, 2, 400)
    rewards = x[np.arange(400), chosen] @ np.array([1.0, -0.5])
    log = Log(("a", "b", "c"), chosen, rewards, np.full(400, 0.5), x)
    wanted = x[:, 2] @ np.array([1.0, -0.5])
    assert np.abs(arm_values(log)[:, 2] - np.clip(wanted, rewards.min(), rewards.max())).mean() < 0.02


def test_kinds_of_policies_say_the_same() -> None:
    log, target = fixed_log(50, 4)

    class Chunks:
        def pmfs(self, contexts: np.ndarray, allowed: np.ndarray) -> np.ndarray:
            return np.asarray(TARGET[contexts.astype(int)])

    class Choice(NamedTuple):
        pmf: jax.Array

    class Agent:
        def decide(self, belief: Any, x: Any, key: Any, allowed: Any = None) -> Choice:
            return Choice(belief[x.astype(int)])

    wanted = evaluate_policy(log, target, estimator="ips")
    assert evaluate_policy(log, Chunks(), estimator="ips") == wanted
    assert evaluate_policy(log, AgentPolicy(Agent(), jnp.array(TARGET)), estimator="ips") == wanted
    assert evaluate_policy(log, lambda x, allowed: TARGET[int(x)], estimator="ips") == wanted
    assert evaluate_policy(log, "b", estimator="ips") == evaluate_policy(
        log, [0.0, 1.0, 0.0], estimator="ips"
    )


def test_a_comparison_holds_what_evaluate_says(tmp_path: Path) -> None:
    log, target = fixed_log(400, 5)
    table = compare(log, {"new": target, "b": "b"}, estimator=["snips", "dr"], seed=3)
    assert table["new", "dr"] == evaluate_policy(log, target, seed=3)
    assert table["b", "snips"] == evaluate_policy(log, "b", estimator="snips", seed=3)
    assert [row["policy"] for row in table.table()] == ["new", "new", "b", "b"]
    assert table.plot(tmp_path / "policies.svg").read_bytes()[:4] == b"<svg"
    assert str(table).splitlines()[-1].split()[:3] == ["the", "log", f"{log.rewards.mean():.4g}"]


def test_rewards_that_are_missing_are_left_out() -> None:
    log, target = fixed_log(100, 6)
    rewards = np.where(np.arange(100) < 40, np.nan, log.rewards)
    lost = Log(log.arms, log.chosen, rewards, log.propensities, log.contexts)
    estimate = evaluate_policy(lost, target, estimator="snips")
    assert estimate.value == evaluate_policy(log.take(slice(40, None)), target[40:], estimator="snips").value
    assert estimate.rows == 60
    assert "40 of 100 decisions have no reward" in estimate.warnings[0]


def test_the_bound_of_the_weights_is_the_root_of_the_rows() -> None:
    log, target = fixed_log(100, 7)
    default = evaluate_policy(log, target, estimator="clipped")
    assert default.value == evaluate_policy(log, target, estimator="clipped", clip=math.sqrt(100)).value
