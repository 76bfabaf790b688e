"""Arms by name, which come and go."""

from __future__ import annotations

import pathlib
import shutil
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from tests.bandits.service.worlds import COINS, LINE, XS, coins, linear

import credo
from credo import bandits
from credo.bandits.policies.guarded import nearest_between

ROWS = bandits.Agent(credo.extended_kalman(credo.Model(LINE, credo.Normal(0.25))), 3, "actions")


def test_a_removed_arm_learns_its_late_rewards_and_then_its_slot_is_free() -> None:
    bandit = coins()
    bandit.add_arm("d")
    late = next(one for one in (bandit.decide() for _ in range(99)) if one.arm == "b")
    for one in [entry.id for entry in bandit._engine.window if entry.arm == "b" and entry.id != late.id]:
        bandit.reward(one, 1.0)
    bandit.remove_arm("b")
    assert list(bandit.arms) == ["a", "c", "d"] and "b" not in bandit.decide().pmf
    with pytest.raises(credo.CredoError, match="there are 3, and 1 that were removed wait for rewards"):
        bandit.add_arm("e")
    learned = float(bandit.agent.expect(bandit.belief, None).mean[1])
    assert bandit.reward(late.id, 1.0) == "learned"
    assert float(bandit.agent.expect(bandit.belief, None).mean[1]) > learned
    version = bandit.version
    bandit.add_arm("e")
    assert list(bandit.arms) == ["a", "e", "c", "d"] and bandit.version == version + 1
    assert bandit.decide().mean["e"] == 0.5 and bandit.decide().sd["e"] == pytest.approx(12**-0.5)
    assert bandit.decide(id=late.id) == late


def test_a_new_arm_may_inherit() -> None:
    bandit = coins()
    for _ in range(3):
        bandit.reward(bandit.decide(arms=["b"]).id, 1.0)
    mean = bandit.decide(arms=["a"]).mean["b"]
    bandit.remove_arm("b")
    with pytest.raises(credo.CredoError, match="inherit must be the name of a removed arm"):
        bandit.add_arm("x", inherit="a")
    bandit.add_arm("x", inherit="b")
    assert bandit.decide().mean["x"] == mean > 0.5


def test_forbidden_arms_stay_out_until_they_are_allowed() -> None:
    bandit = coins()
    bandit.forbid("a")
    decisions = bandit.decide_batch([None] * 30)
    assert {one.arm for one in decisions} == {"b", "c"} and decisions[0].pmf["a"] == 0.0
    assert bandit.decide(arms=["b", "a"]).pmf == {"a": 0.0, "b": 1.0, "c": 0.0}
    bandit.forbid("b")
    bandit.forbid("c")
    assert bandit.forbidden == {"a", "b", "c"}
    with pytest.raises(credo.CredoError, match="arms must have one that may be chosen; all arms are forb"):
        bandit.decide()
    bandit.allow("b")
    assert bandit.decide().arm == "b"


def test_outputs_are_not_used_twice() -> None:
    net = credo.Linear(3)
    agent = bandits.Agent(credo.extended_kalman(credo.Model(net, credo.Normal(0.25))), 3, "outputs")
    bandit = bandits.Bandit(agent, ["a", "b"], features=4)
    bandit.remove_arm("a")
    bandit.add_arm("c")
    assert list(bandit.arms) == ["b", "c"]
    with pytest.raises(credo.CredoError, match="no output is left that no arm has had; let it `inherit`"):
        bandit.add_arm("d")
    bandit.add_arm("d", inherit="a")
    assert list(bandit.arms) == ["d", "b", "c"]


def test_a_belief_without_a_prior_has_no_new_arms_in_old_slots() -> None:
    bandit = bandits.Bandit(COINS, belief=COINS.init())
    bandit.remove_arm("0")
    with pytest.raises(credo.CredoError, match="the prior is not known"):
        bandit.add_arm("x")
    assert bandit.explain(bandit.decide().id).prior_mean == {}


@pytest.mark.slow
def test_arms_with_features_are_told_apart_by_them() -> None:
    films = {"long": {"minutes": 2.0, "kind": "war"}, "short": {"minutes": 0.5, "kind": "love"}}
    bandit = bandits.Bandit(ROWS, films, features=2, arm_features=8, products=True)
    rng = np.random.default_rng(0)
    right = []
    for _ in range(120):
        night = bool(rng.integers(2))
        decision = bandit.decide({"night": night})
        right.append((decision.arm == "long") == night)
        bandit.reward(decision.id, float(right[-1]))
    assert np.mean(right[-40:]) > 0.85
    bandit.add_arm("epic", {"minutes": 2.0, "kind": "war"})
    decision = bandit.decide({"night": True})
    assert decision.mean["epic"] == pytest.approx(decision.mean["long"])
    assert decision.mean["epic"] > decision.mean["short"]
    bandit.remove_arm("epic")
    with pytest.raises(credo.CredoError, match="features of the arm 'x' must be given by name"):
        bandit.add_arm("x")
    assert list(bandit.arms) == ["long", "short"]
    with pytest.warns(UserWarning, match="more names in features than the 8 places"):
        bandit.add_arm("x", {str(n): 1.0 for n in range(9)})
    assert list(bandit.arms) == ["long", "short", "x"]


def test_arms_without_features_have_the_rows_of_the_context() -> None:
    bandit = bandits.Bandit(ROWS, ["a", "b"], params=LINE.init(0, (4,)))
    decision = bandit.decide(XS[:2])
    assert bandit.reward(decision.id, 1.0)
    bandit.add_arm("c")
    assert set(bandit.decide(XS[:3]).pmf) == {"a", "b", "c"}
    with pytest.raises(credo.CredoError, match="a row for each of the 3 arms"):
        bandit.decide(XS[:2])
    bandit.remove_arm("b")
    with pytest.raises(credo.CredoError, match="need an agent with design='actions'"):
        bandit.add_arm("d", {"price": 1.0})


def test_a_model_that_does_not_fit_is_refused_before_anything_changes() -> None:
    bandit = linear()
    with pytest.raises(credo.CredoError, match="4"):
        bandit.decide(np.ones(7))
    assert bandit.counts.decisions == 0 and bandit.decide(np.ones(4)).id == "0-0"


@pytest.mark.slow
def test_an_arm_that_goes_takes_the_rewards_with_it_that_wait_for_their_units() -> None:
    learner = credo.extended_kalman(credo.Model(credo.Linear(), credo.Normal(0.25)))
    agent = bandits.Agent(learner, 2, "arms", units="online")
    bandit = bandits.Bandit(agent, ["a", "b"], features=4)
    x = np.random.default_rng(0).normal(size=(5, 4))
    for step, arm in enumerate("abaab"):
        assert bandit.reward(bandit.decide(x[step], [arm]).id, 10.0 + step)
    bandit.remove_arm("a")
    bandit.add_arm("c")
    units = bandit.belief.units
    assert units is not None and int(units.first.filled) == 2
    np.testing.assert_allclose(units.first.rows[:2], [[1.0, 11.0, 1.0], [1.0, 14.0, 1.0]])
    np.testing.assert_allclose(units.first.context[:2], x[[1, 4]])
    np.testing.assert_array_equal(units.first.rows[2:, 2], 0.0)


@pytest.mark.slow
def test_shares_bound_the_probabilities_of_named_arms_and_come_back(tmp_path: pathlib.Path) -> None:
    def make(path: pathlib.Path, replay: bool = False) -> bandits.Bandit:
        return coins(shares={"a": (0.1, 0.3), "b": (0.2, 1.0)}, log=path, replay=replay)

    bandit, free = make(tmp_path / "log.jsonl"), coins()
    for value in (1.0, 0.0) * 10:
        for one in (bandit, free):
            one.reward(one.decide(arms=["a"]).id, 1.0)
            one.reward(one.decide(arms=["c"]).id, value)
    own, wanted = bandit.decide(), free.decide()
    low, high = np.array([0.1, 0.2, 0.0]), np.array([0.3, 1.0, 1.0])
    np.testing.assert_allclose(
        list(own.pmf.values()), _nearest(list(wanted.pmf.values()), low, high), atol=1e-10
    )
    assert wanted.pmf["a"] > 0.8 and own.pmf["a"] == 0.3 and own.pmf["b"] >= 0.2
    assert all(abs(one.pmf["a"] - 0.3) < 1e-12 for one in bandit.decide_batch([None] * 3))
    bandit.forbid("b")  # 0.3 and 1 are left
    assert bandit.decide().pmf == pytest.approx({"a": 0.3, "b": 0.0, "c": 0.7})
    bandit.set_share("c", (0.8, 0.9))
    assert bandit.decide().pmf == pytest.approx({"a": 0.2, "b": 0.0, "c": 0.8})
    assert bandit.decide(arms=["a"]).pmf["a"] == 1.0
    with pytest.raises(credo.CredoError, match=r"sum to at least 1; they sum to 0\.5"):
        bandit.set_share("c", (0.0, 0.2))
    with pytest.raises(credo.CredoError, match=r"sum to at most 1; they sum to 1\.05"):
        bandit.set_share("c", (0.95, 1.0))
    assert bandit.shares == {"a": (0.1, 0.3), "b": (0.2, 1.0), "c": (0.8, 0.9)}
    saved = bandit.save(tmp_path / "b.credo")
    log = shutil.copy(tmp_path / "log.jsonl", tmp_path / "c")
    copies = [bandits.Bandit.load(saved), make(pathlib.Path(log), replay=True), bandit.fork(7)]
    for one in copies:
        assert one.shares == bandit.shares and one.decide().pmf == pytest.approx(bandit.decide().pmf)
    bandit.set_share("a", None)
    bandit.remove_arm("c")
    assert bandit.shares == {"b": (0.2, 1.0)} and bandit.decide().pmf["a"] == 1.0


def test_many_arms_have_the_nearest_probabilities() -> None:
    rng = np.random.default_rng(0)
    wanted, low, high = (
        rng.dirichlet(np.full(300, 0.1)),
        rng.uniform(0, 2e-3, 300),
        rng.uniform(4e-3, 3e-2, 300),
    )
    found = nearest_between(*map(jnp.asarray, (wanted, low, high)))
    np.testing.assert_allclose(found, _nearest(wanted.tolist(), low, high), rtol=0, atol=1e-12)


def _nearest(wanted: list[float], low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The nearest probabilities between bounds, by halving the interval of the water level."""
    below, above = -2.0, 2.0
    for _ in range(80):
        level = (below + above) / 2
        total = np.clip(np.array(wanted) + level, low, high).sum()
        below, above = (level, above) if total < 1 else (below, level)
    return np.clip(np.array(wanted) + below, low, high)


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ({"a": 0.5}, "least and the largest probability of an arm; got 0.5 for 'a'"),
        ({"a": (0.5, 0.2)}, "not below the least"),
        ({"a": (0.0, 0.0)}, "a largest probability above 0"),
        ({"a": (-0.5, 0.2)}, "shares must be"),
        ({"z": (0.0, 0.2)}, "arm must be one of the arms"),
        ({"a": (0.6, 1.0), "b": (0.6, 1.0)}, "sum to at most 1; they sum to 1.2"),
        ({name: (0.0, 0.2) for name in "abc"}, "sum to at least 1; they sum to 0.6"),
    ],
)  # fmt: skip
def test_shares_that_cannot_be_are_refused(shares: Any, words: str) -> None:
    with pytest.raises(credo.CredoError, match=words):
        coins(shares=shares)
