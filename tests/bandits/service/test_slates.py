"""Slates of a `Bandit`: decisions that share a context, and what of them is learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credo
from credo import bandits
from credo.bandits.evaluation import evaluate_slates
from credo.bandits.policies import EpsilonGreedy

ARMS: tuple[str, ...] = ("a", "b", "c", "d")


def bandit(**options: Any) -> bandits.Bandit:
    agent = bandits.Agent(credo.BetaBernoulli(), 4, "arms", EpsilonGreedy(0.5))
    return bandits.Bandit(agent, ARMS, **options)


def test_a_slate_is_decisions_among_the_arms_that_are_left_and_the_same_for_its_id(tmp_path: Path) -> None:
    shop = bandit(log=tmp_path / "log.jsonl")
    slate = shop.decide_slate(size=3, id="mine")
    assert len(set(slate.arms)) == 3 and slate.id == "mine"
    assert [one.id for one in slate.decisions] == ["mine", "mine#2", "mine#3"]
    for place, one in enumerate(slate.decisions):
        assert all(one.pmf[above] == 0 for above in slate.arms[:place])
        np.testing.assert_allclose(sum(one.pmf.values()), 1.0, rtol=1e-6)
    np.testing.assert_allclose(slate.propensity, np.prod([one.propensity for one in slate.decisions]))
    shop.add_arm("e") if len(shop.arms) < 4 else shop.forbid(slate.arms[0])
    assert shop.decide_slate(size=3, id="mine").arms == slate.arms
    shop.close()
    again = bandit(log=tmp_path / "log.jsonl", replay=True)
    assert again.decide_slate(size=3, id="mine") == slate


def test_a_slate_stays_whatever_becomes_of_its_arms_and_gets_the_places_that_it_lacks() -> None:
    shop = bandit()
    slate = shop.decide_slate(size=2, id="x")
    shop.remove_arm(slate.arms[0])
    shop.forbid(slate.arms[1])
    assert shop.decide_slate(size=2, id="x") == slate
    longer = shop.decide_slate(size=4, id="x")
    assert longer.decisions[:2] == slate.decisions and len(set(longer.arms)) == 4
    with pytest.raises(credo.CredoError, match="size must be at least that of the slate 'x', 4; got 2"):
        shop.decide_slate(size=2, id="x")
    with pytest.raises(credo.CredoError, match="number of arms that may be chosen, 4; got 5"):
        shop.decide_slate(size=5, id="x")


def test_places_below_the_first_click_of_a_cascade_teach_nothing() -> None:
    shop, plain = bandit(), bandit()
    slate = shop.decide_slate(size=3)
    said = shop.reward_slate(slate.id, [0, 1, 0])
    assert [None if one is None else str(one) for one in said] == ["learned", "learned", None]
    for arm, value in zip(slate.arms, [0, 1], strict=False):
        plain.observe(None, arm, value)
    assert shop.decide().mean == plain.decide().mean
    assert shop.counts.pending == 1 + 1  # the place that nobody saw, and the decision after it
    assert [str(one) for one in shop.reward_slate(slate.id, [0, 1, 0]) if one is not None] == [
        "duplicate"
    ] * 2
    assert [str(one) for one in shop.reward_slate("nobody", [0, 0])] == ["unknown"] * 2
    assert all(shop.reward_slate(shop.decide_slate(size=2).id, [1, 1], seen="all"))


def test_a_reward_is_divided_by_the_probability_that_its_place_is_seen() -> None:
    def counting() -> bandits.Bandit:
        agent = bandits.Agent(credo.GammaPoisson(), 4, "arms", bandits.UCB(1.0))
        return bandits.Bandit(agent, ARMS)

    shop, plain = counting(), counting()
    slate = shop.decide_slate(size=2)
    assert all(shop.reward_slate(slate.id, [1.0, 2.0], seen=[1.0, 0.5]))
    for arm, value in zip(slate.arms, [1.0, 4.0], strict=True):
        plain.observe(None, arm, value)
    assert shop.decide().mean == plain.decide().mean


def test_the_log_of_slates_says_what_another_order_would_have_earned(tmp_path: Path) -> None:
    liked: dict[str, float] = dict(zip(ARMS, (0.1, 0.2, 0.5, 0.8), strict=True))
    rng = np.random.default_rng(0)
    shop = bandit(log=tmp_path / "log.jsonl")
    for _ in range(300):
        slate = shop.decide_slate(size=2)
        first = rng.random() < liked[slate.arms[0]]
        shop.reward_slate(slate.id, [float(first), float(not first and rng.random() < liked[slate.arms[1]])])
    shop.close()
    log = bandits.Log.read(tmp_path / "log.jsonl")
    found = evaluate_slates(log, ["d", "c"], estimator="rips")
    assert found.rows == 300 and found.low < 0.8 + 0.2 * 0.5 < found.high
    worst = evaluate_slates(log, ["a", "b"], estimator="rips")
    assert worst.value < found.low and worst.ess < found.ess


@pytest.mark.parametrize(
    ("options", "call", "words"),
    [
        ({}, lambda shop: shop.decide_slate(size=5), "size must be at most the number of arms.*, 4; got 5"),
        ({}, lambda shop: shop.decide_slate(size=2, id="a#2"), "without '#'; got 'a#2'"),
        ({"shares": {"a": (0.1, 0.5)}}, lambda shop: shop.decide_slate(size=2), "size must be 1 where arms"),
        ({}, lambda shop: shop.decide_slate(arms=["a", "x"], size=1), "x"),
        (
            {},
            lambda shop: shop.reward_slate(shop.decide_slate(size=2).id, [1]),
            "as many as the places.*2; got 1",
        ),
        (
            {},
            lambda shop: shop.reward_slate(shop.decide_slate(size=2).id, [1, 0], seen=[1.0, 0.0]),
            "seen must be 'all', 'cascade', or a probability above 0",
        ),
        (
            {"on_missing": 0.0},
            lambda shop: shop.reward_slate(shop.decide_slate(size=2).id, [1, 0]),
            "seen must be 'all' or probabilities where on_missing is a reward",
        ),
    ],
)
def test_what_cannot_be_a_slate_is_refused(options: dict[str, Any], call: Any, words: str) -> None:
    shop = bandit(**options)
    with pytest.raises(credo.CredoError, match=words):
        call(shop)
    assert shop.counts.learned == 0
