"""What cannot be evaluated is refused in a sentence, and what is doubtful is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.bandits.evaluation.worlds import fixed_log

from credo.bandits import Log, evaluate_policy
from credo.bandits.evaluation import compare, evaluate_over_time
from credo.core.errors import CredoError

WORLD = fixed_log(200, 0)
BARE = fixed_log(200, 0, all_pmfs=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policy": "d"}, "policy must be an arm of the log, where it is a name; got 'd', and the arms are"),
        ({"policy": [0.5, 0.5]}, "policy must give probabilities of the shape"),
        ({"policy": [0.5, 0.5, 0.5]}, "policy must be probabilities that sum to 1; row 0 is"),
        ({"policy": object()}, "policy must be probabilities .* got object"),
        ({"policy": lambda x, allowed: [1.0]}, "policy must give 3 probabilities for a context, or the name"),
        ({"policy": lambda x: [1.0]}, r"policy must be a function of .*, `policy\(context, allowed\)`"),
        ({"policy": lambda x, allowed: "d"}, "policy must be an arm of the log, .* got 'd'"),
        ({"reward_range": 3}, "reward_range must be the least and the greatest reward"),
        ({"estimator": "ipw"}, "estimator must be one of ips, .*; got 'ipw'"),
        ({"interval": "normal"}, "interval must be one of likelihood, bootstrap, bernstein, sequence"),
        ({"level": 95}, r"level must be in \(0, 1\); got 95"),
        ({"clip": 0.0}, "clip must be finite and above 0"),
        ({"clip": 5.0, "estimator": "direct"}, "clip must be left out with `estimator='direct'`"),
        ({"model": np.ones((200, 3)), "estimator": "ips"}, "model must be left out with `estimator='ips'`"),
        ({"model": np.ones((3, 3))}, "model must give finite expected rewards of the shape"),
        ({"interval": "sequence", "estimator": "snips"}, "a sequence is known for ips and dr"),
        ({"interval": "sequence", "log": BARE.log}, "needs the probabilities of all arms"),
        ({"estimator": "dr-adaptive", "log": BARE.log}, "'dr-adaptive' needs the probabilities of all arms"),
        ({"clip": -1.0, "estimator": "dr-os"}, "clip must be finite and above 0"),
        ({"interval": "sequence", "estimator": "dr-ps"}, "a sequence is known for ips and dr"),
        ({"interval": "bernstein", "reward_range": (0.0, 0.5)}, "reward_range must hold all rewards"),
        ({"reward_range": (1.0, 0.0)}, "reward_range must be the least and the greatest reward"),
        ({"log": "log.jsonl"}, "log must be a Log; got str: read a file with `Log.read`"),
    ],
)
def test_a_request_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(CredoError, match=message):
        evaluate_policy(**{"log": WORLD.log, "policy": WORLD.target, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parts": 0}, "parts must be"),
        ({"parts": 11}, "parts must be at most 10, so that each has 20 rows .* got 11, and there are 200"),
        ({"parts": 2.5}, "parts must be"),
        ({"estimator": "ipw"}, "estimator must be one of ips"),
    ],
)
def test_a_course_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(CredoError, match=message):
        evaluate_over_time(WORLD.log, WORLD.target, **change)


def test_an_empty_comparison_is_refused() -> None:
    with pytest.raises(CredoError, match="policies must be a dict of one or more"):
        compare(WORLD.log, {})


def test_a_log_that_shares_no_choice_says_nothing() -> None:
    log = Log(("a", "b"), np.zeros(9, int), np.arange(9.0), np.full(9, 0.5))
    with pytest.raises(CredoError, match="it never does, so the log says nothing about it"):
        evaluate_policy(log, "b")


def test_a_log_without_rewards_says_nothing() -> None:
    log = Log(("a", "b"), np.zeros(9, int), np.full(9, np.nan), np.full(9, 0.5))
    with pytest.raises(CredoError, match="must have two or more rows with rewards; it has 0 among 9"):
        evaluate_policy(log, "a")


def test_an_arm_that_was_not_allowed_is_not_chosen_for_ever() -> None:
    allowed = np.array([[True, False]] * 3 + [[True, True]] * 3)
    log = Log(("a", "b"), np.zeros(6, int), np.ones(6), np.full(6, 0.5), allowed=allowed)
    with pytest.raises(CredoError, match="'b' is not allowed in 3 of 6 rows"):
        evaluate_policy(log, "b")
    with pytest.raises(CredoError, match="policy must be 0 for arms that are not allowed; in 3 of 6 rows"):
        evaluate_policy(log, [0.5, 0.5])


def _warnings(log: Log, policy: Any, **settings: Any) -> str:
    return " | ".join(evaluate_policy(log, policy, **settings).warnings)


def test_wrong_propensities_are_noticed() -> None:
    """Thompson sampling logged as if it drew arms uniformly (it happens)."""
    log = WORLD.log
    chosen = np.where(np.random.default_rng(0).random(200) < 0.8, 0, 1)
    wrong = Log(("a", "b"), chosen, log.rewards, np.full(200, 0.5))
    assert "propensities allow about" in _warnings(wrong, "a", estimator="ips")
    assert "the weights have the mean 1.45" in _warnings(wrong, "a", estimator="ips")
    pmfs = np.full((200, 2), 0.5)
    known = Log(("a", "b"), chosen, log.rewards, np.full(200, 0.5), pmfs=pmfs)
    assert "propensities allow about 100" in _warnings(known, "a", estimator="ips")
    ones = Log(("a", "b"), chosen, log.rewards, np.ones(200))
    assert "every propensity is 1" in _warnings(ones, "a", estimator="ips")
    for log, target in (fixed_log(400, 0), fixed_log(400, 0, all_pmfs=False)):
        assert not evaluate_policy(log, target).warnings


def test_what_weakens_an_estimate_is_said() -> None:
    rng = np.random.default_rng(0)
    pmfs = np.array([[0.99, 0.01, 0.0]] * 2000)
    chosen = (rng.random(2000) < 0.01).astype(int)
    log = Log(("a", "b", "c"), chosen, rng.random(2000), pmfs[0, chosen], None, pmfs)
    assert "rows count as only" in _warnings(log, "b", estimator="ips")
    assert "gives 50.00% of its choices to arms that the log never" in _warnings(log, [0.5, 0.0, 0.5])
    assert "are above 44.7" in _warnings(log, "b", estimator="clipped")
    assert "are left out" in _warnings(log, "b", estimator="switch", clip=50.0)
    assert "are shrunk, which biases the estimate; the interval does not" in _warnings(
        log, "b", estimator="dr-os", clip=50.0
    )
    assert "the interval is that of 'dr'" in _warnings(WORLD.log, WORLD.target, estimator="dr-os")
    assert "takes the model of the rewards as exact" in _warnings(log, "b", estimator="direct")
    bare = Log(log.arms, chosen, log.rewards, log.propensities)
    assert "log never chose (c)" in _warnings(bare, [0.5, 0.0, 0.5])
    assert "approximate" in _warnings(bare, "a", estimator="ips", interval="bernstein")
    same = Log(("a", "b"), chosen, np.ones(2000), np.full(2000, 0.5))
    assert "the likelihood sees no spread" in _warnings(same, [0.5, 0.5])
    assert "give `reward_range`" in _warnings(log, "a", estimator="ips", interval="sequence")


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("rewards", 1e160, r"rewards must be from -1e\+30 to 1e\+30; row 1 has 1e\+160"),
        ("rewards", -1e308, "row 1 has -1e"),
        ("propensities", 1e-200, "propensities must be at least 1e-30; row 1 has 1e-200"),
    ],
)
def test_numbers_whose_squares_are_beyond_all_numbers_are_refused(
    field: str, value: float, words: str
) -> None:
    told: dict[str, Any] = {"chosen": [0, 1], "rewards": [1.0, 0.0], "propensities": [0.5, 0.5]}
    told[field] = [told[field][0], value]
    with pytest.raises(CredoError, match=words) as refusal:
        Log(arms=("a", "b"), **told)
    assert refusal.value.field == field
