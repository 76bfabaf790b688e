"""Faults that others reported of bandits, and of estimates from their logs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credo
from credo import bandits
from credo.bandits import Log, evaluate_policy, policies
from credo.core.errors import CredoError, DataError

GREEDY = bandits.Agent(credo.BetaBernoulli(), 4, "arms", policies.Greedy())
COINS = bandits.Agent(credo.BetaBernoulli(), 4, "arms", bandits.Thompson(floor=0.02))


def coins(agent: Any = COINS, **options: Any) -> bandits.Bandit:
    """Four coins at most, three at first."""
    return bandits.Bandit(agent, ["a", "b", "c"], **options)


def play(bandit: bandits.Bandit, best: str, steps: int) -> list[str]:
    """The arms of so many decisions, of which one arm pays."""
    arms = []
    for _ in range(steps):
        decision = bandit.decide()
        bandit.reward(decision.id, 1.0 if decision.arm == best else 0.0)
        arms.append(decision.arm)
    return arms


def test_arms_that_are_equal_are_chosen_alike() -> None:
    """fidelity/mabwiser#13: of arms with the same expectation the first one is chosen at all times."""
    bandit = coins(GREEDY)
    decisions = [bandit.decide() for _ in range(60)]
    assert decisions[0].pmf == pytest.approx(dict.fromkeys("abc", 1 / 3))
    counts = Counter(decision.arm for decision in decisions)
    # at 20 expected choices, 6 is 3.8 standard deviations away
    assert min(counts[arm] for arm in "abc") >= 6


def test_without_a_context_the_arm_that_pays_is_chosen() -> None:
    """VowpalWabbit/vowpal_wabbit#1436: without context the first arm is predicted, whatever was learned."""
    bandit = coins(bandits.Agent(credo.BetaBernoulli(), 4, "arms", policies.EpsilonGreedy(0.4)))
    arms = play(bandit, "c", 40)
    assert Counter(arms[20:]).most_common(1)[0][0] == "c"
    last = bandit.decide()
    assert last.pmf["c"] == pytest.approx(0.6 + 0.4 / 3) and last.pmf["a"] == pytest.approx(0.4 / 3)


def test_a_decision_may_be_among_some_of_the_arms() -> None:
    """fidelity/mabwiser#74: an arm that cannot be shown now must be filtered out of the answer by hand."""
    bandit = coins()
    decisions = [bandit.decide(arms=["a", "b"]) for _ in range(30)]
    assert {decision.arm for decision in decisions} == {"a", "b"}
    for decision in decisions:
        assert decision.pmf["c"] == 0.0 and sum(decision.pmf.values()) == pytest.approx(1.0, abs=1e-12)
        assert decision.propensity == decision.pmf[decision.arm]
    assert bandit.decide(arms=["c"]).propensity == 1.0 and bandit.arms == ("a", "b", "c")


def test_an_arm_may_be_removed_and_come_back_as_a_new_one() -> None:
    """david-cortes/contextualbandits#32: to drop an arm fails, as its prior is in a tuple."""
    bandit = coins()
    play(bandit, "c", 20)
    waiting = bandit.decide(arms=["c"])
    bandit.remove_arm("c")
    assert set(play(bandit, "a", 20)) == {"a", "b"} and bandit.arms == ("a", "b")
    bandit.reward(waiting.id, 1.0)  # which comes too late for its arm
    bandit.add_arm("c")
    fresh = bandit.decide()
    assert fresh.mean["c"] == pytest.approx(0.5) and fresh.sd["c"] == pytest.approx(12**-0.5)
    assert fresh.mean["a"] > 0.8


@pytest.mark.parametrize("reward", [0.5, -1.0, 2.0])
def test_a_reward_that_is_no_outcome_of_a_coin_is_refused_and_not_learned(reward: float) -> None:
    """SMPyBandits/SMPyBandits#12: rewards that are not 0 or 1 ruin a posterior of two counts."""
    bandit = coins()
    decision = bandit.decide()
    assert bandit.reward(decision.id, reward) == "refused"
    assert bandit.decide().mean == pytest.approx(dict.fromkeys("abc", 0.5))
    assert bandit.counts.refused == 1


def test_a_bandit_that_was_saved_has_learned_what_it_had_learned(tmp_path: Path) -> None:
    """VowpalWabbit/vowpal_wabbit#3116: a model that was saved predicts as one that learned nothing."""
    bandit = coins(seed=3)
    play(bandit, "b", 20)
    again = bandits.Bandit.load(bandit.save(tmp_path / "bandit.credo"))
    first, second = bandit.decide(), again.decide()
    assert second.mean == first.mean and second.pmf == first.pmf and first.mean["b"] > 0.7
    assert play(again, "a", 10) == play(bandit, "a", 10)


CHOSEN = np.array([0, 1, 1, 0, 2, 0, 1, 2, 0, 1])
PMFS = np.array([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2]] * 5)
REWARDS = np.array([1.0, 0.0, 2.0, 1.5, 0.5, 0.0, 1.0, 3.0, 2.0, 0.25])
TARGET = np.array([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]] * 5)
MODEL = np.tile([1.0, 0.5, 2.0], (10, 1))
LOG = Log(("a", "b", "c"), CHOSEN, REWARDS, PMFS[np.arange(10), CHOSEN], pmfs=PMFS)


def test_the_doubly_robust_estimate_weighs_by_the_policy_that_is_evaluated() -> None:
    """david-cortes/contextualbandits#67: doubly robust weights leave out the policy that is evaluated."""
    rows = np.arange(10)
    weights = TARGET[rows, CHOSEN] / PMFS[rows, CHOSEN]
    expected = (TARGET * MODEL).sum(1) + weights * (REWARDS - MODEL[rows, CHOSEN])
    estimate = evaluate_policy(LOG, TARGET, estimator="dr", model=MODEL)
    assert estimate.value == pytest.approx(expected.mean(), abs=1e-10)
    simple = evaluate_policy(LOG, TARGET, estimator="ips")
    assert simple.value == pytest.approx((weights * REWARDS).mean(), abs=1e-10)


def test_a_propensity_of_zero_is_refused_by_its_row() -> None:
    """BiomedSciAI/causallib#9: a propensity of zero makes an infinite weight, and the estimate NaN."""
    propensities = PMFS[np.arange(10), CHOSEN].copy()
    propensities[4] = 0.0
    with pytest.raises(DataError, match="propensities must be above 0 and at most 1; row 4 has 0"):
        Log(("a", "b", "c"), CHOSEN, REWARDS, propensities)
    pmfs = PMFS.copy()
    pmfs[4] = [0.5, 0.5, 0.0]  # where the arm 2 was chosen
    with pytest.raises(DataError, match="row 4"):
        Log(("a", "b", "c"), CHOSEN, REWARDS, PMFS[np.arange(10), CHOSEN], pmfs=pmfs)


def test_an_estimate_from_a_log_of_hardly_any_overlap_is_a_number_and_says_so() -> None:
    """grf-labs/grf#406: propensities of hardly more than zero make an average effect NaN."""
    pmfs = np.tile([1.0 - 1e-6, 1e-6], (40, 1))
    chosen = np.r_[np.zeros(39, int), 1]
    log = Log(("a", "b"), chosen, np.linspace(0.0, 1.0, 40), pmfs[np.arange(40), chosen], pmfs=pmfs)
    estimate = evaluate_policy(log, "b", estimator="ips")
    assert np.isfinite(estimate.value) and any("count as only" in warning for warning in estimate.warnings)


def test_an_arm_that_is_forbidden_for_a_while_keeps_what_it_learned() -> None:
    """fidelity/mabwiser#99: an arm that does not apply now can only be dropped, with all that it learned."""
    bandit = coins()
    play(bandit, "c", 20)
    known = bandit.decide().mean["c"]
    bandit.forbid("c")
    assert set(play(bandit, "a", 10)) == {"a", "b"} and bandit.decide().pmf["c"] == 0.0
    with pytest.raises(CredoError, match="'c'"):
        bandit.decide(arms=["c"])
    bandit.allow("c")
    assert bandit.decide().mean["c"] == known > 0.6
