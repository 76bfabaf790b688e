"""Decisions with ids, and rewards that come late, twice, or never."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bandits.service.worlds import COINS, LINE, LINEAR, XS, Clock, coins, linear

import credo
from credo import bandits
from credo.bandits import service
from credo.bandits.service.bandit import _reason, _share


def _same(one: object, other: object) -> bool:
    return bool(jax.tree.all(jax.tree.map(lambda a, b: bool(jnp.array_equal(a, b)), one, other)))


def test_decisions_and_rewards_are_those_of_the_agent_bit_by_bit() -> None:
    bandit, key = linear(seed=3), jax.random.key(3)
    belief = LINEAR.init(LINE.init(0, (4,)))
    for step, x in enumerate(XS[:8]):
        own = jax.random.fold_in(jax.random.fold_in(key, 0), step)
        choice = LINEAR.decide(belief, jnp.asarray(x), own, jnp.ones(2, bool))
        decision = bandit.decide(x)
        assert decision.arm == ("red", "blue")[int(choice.arm)]
        assert decision.propensity == float(choice.propensity) == decision.pmf[decision.arm]
        assert list(decision.mean.values()) == choice.mean.tolist()
        assert list(decision.sd.values()) == choice.sd.tolist()
        own = jax.random.fold_in(jax.random.fold_in(key, 1), step)
        belief, _ = LINEAR.update(belief, jnp.asarray(x), choice.arm, x[0], key=own)
        assert bandit.reward(decision.id, x[0])
    assert _same(bandit.belief, belief) and bandit.version == 8


def test_late_rewards_are_learned_as_in_a_delayed_replay() -> None:
    bandit, delay = linear(), 5
    belief, waiting = LINEAR.init(LINE.init(0, (4,))), []
    for x in XS[:20]:
        waiting.append((bandit.decide(x), x))
        if len(waiting) > delay:
            decision, then = waiting.pop(0)
            bandit.reward(decision.id, then.sum())
            arm = ("red", "blue").index(decision.arm)
            belief, _ = LINEAR.update(belief, jnp.asarray(then), arm, then.sum())
    assert _same(bandit.belief, belief) and bandit.counts.pending == delay


def test_an_id_has_one_decision_and_one_reward() -> None:
    bandit = coins()
    decision = bandit.decide(id="mine")
    belief = bandit.belief
    assert bandit.decide(id="mine") == decision and bandit.counts.decisions == 1
    assert not bandit.reward("other", 1.0) and bandit.reward("other", 1.0) == "unknown"
    assert _same(bandit.belief, belief)
    assert bandit.reward("mine", 1.0) == "learned"
    belief = bandit.belief
    assert bandit.reward("mine", 1.0) == "duplicate" and _same(bandit.belief, belief)
    assert bandit.reward("mine", 0.0) == "conflict" and _same(bandit.belief, belief)
    assert bandit.decide(id="mine") == decision and bandit.version == 1
    own = [bandit.decide().id for _ in range(3)]
    assert own == ["0-1", "0-2", "0-3"]
    taken = bandit.decide(id="0-5")
    assert bandit.decide().id != taken.id
    assert bandit.counts == service.Counts(
        decisions=6, pending=5, learned=1, duplicate=1, conflict=1, unknown=2
    )


@pytest.mark.parametrize("missing", ["drop", 0.0])
def test_a_decision_leaves_the_window_by_number_or_by_time(missing: Any) -> None:
    clock = Clock()
    bandit = coins(window=3, timeout=10.0, on_missing=missing, clock=clock)
    first = bandit.decide()
    assert first.expires == 10.0
    assert [bandit.decide() for _ in range(3)] and bandit.counts.pending == 3
    assert bandit.reward(first.id, 1.0) == "expired" and bandit.version == (missing == 0.0)
    with pytest.raises(credo.CredoError, match="window of the decision '0-0' is over"):
        bandit.decide(id=first.id)
    clock.time = 9.0
    fifth = bandit.decide()
    clock.time = 5.0  # a clock that goes back
    assert bandit.tick() == 0 and bandit.tick(10.0) == 2 and bandit.counts.pending == 1
    assert bandit.reward(fifth.id, 1.0) == "learned"
    assert bandit.tick(100.0) == 0
    learned = 0 if missing == "drop" else 4
    counts = bandit.counts
    assert (counts.dropped, counts.imputed) == (4 - learned, learned)
    assert bandit.version == learned + 1 and int(bandit.belief.t) == learned + 1
    assert counts.expired == 1 and counts.pending == 0


def test_batches_are_loops() -> None:
    one, other = linear(), linear()
    one.decide(XS[0], id="old")
    other.decide(XS[0], id="old")
    ids = [None, "own", "old", "own", *[None] * 15]
    xs = XS[:19].copy()
    xs[2], xs[3] = xs[0], xs[1]
    loop = [one.decide(x, id=id) for x, id in zip(xs, ids, strict=True)]
    assert other.decide_batch(xs, ids=ids) == loop
    names = [decision.id for decision in loop]
    values = xs[:, 0].tolist()
    statuses = [one.reward(id, value) for id, value in zip(names, values, strict=True)]
    assert other.reward_batch(names, values) == statuses
    assert statuses.count(service.RewardStatus.DUPLICATE) == 1
    assert _same(one.belief, other.belief) and one.counts == other.counts
    assert one.decide(XS[20]) == other.decide(XS[20])
    assert other.decide_batch([]) == [] and other.reward_batch([], []) == []


def test_refused_batches_change_nothing() -> None:
    bandit = linear()
    decision = bandit.decide({"age": 3.0})
    before, names = bandit.belief, bandit.features
    with pytest.raises(credo.CredoError, match="reward must be a finite number; got nan"):
        bandit.reward_batch([decision.id, "x"], [1.0, float("nan")])
    with pytest.raises(credo.CredoError, match="must have a number for 'age', as before"):
        bandit.decide_batch([{"age": 1.0, "b": 1.0}, {"c": "red", "age": "old"}])
    assert _same(bandit.belief, before) and bandit.features == names
    assert bandit.counts == service.Counts(decisions=1, pending=1)
    assert bandit.decide({"age": 3.0}).id == "0-1"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda b: b.reward("0-0", float("nan")), "reward must be a finite number; got nan"),
        (lambda b: b.reward("0-0", float("inf")), "reward must be a finite number; got inf"),
        (lambda b: b.reward("0-0", 10**400), "reward must be a finite number; got 1000"),
        (lambda b: b.reward("0-0", "good"), "reward must be a finite number; got 'good'"),
        (lambda b: b.decide([1.0, float("nan"), 0.0, 0.0]), "context must be finite"),
        (lambda b: b.decide([1.0, 2.0]), r"context must have the shape \(4,\), as before; got .*\(2,\)"),
        (lambda b: b.decide(None), "got no context"),
        (lambda b: b.decide("phone"), "context must be None, an array of numbers"),
        (lambda b: b.decide({"x": object()}), "got a object for 'x'"),
        (lambda b: b.decide({1: 2.0}), "context must have texts for names"),
        (lambda b: b.decide({"x": float("inf")}), "context must be finite, or None"),
        (lambda b: b.decide(XS[0], ["green"]), r"arm must be one of the arms, 'red', 'blue'; got 'green'"),
        (lambda b: b.decide(XS[0], []), "names none that is allowed"),
        (lambda b: b.decide(XS[0], "red"), "arms must be a list of names"),
        (lambda b: b.decide(XS[0], id=7), "id must be a text; got 7"),
        (lambda b: b.decide(XS[1], id="0-0"), "id must be a new one for another context or other arms"),
        (lambda b: b.decide(XS[0], ["red"], id="0-0"), "the decision '0-0' was taken for others"),
        (lambda b: b.decide_batch(XS[:2], ids=["a", "a"]), "the decision 'a' was taken for others"),
        (lambda b: b.decide({"x": 10**400}), "context must be finite, or None"),
        (lambda b: b.explain("nope"), "id must be that of a decision in the window; got 'nope'"),
        (lambda b: b.forbid("rad"), "did you mean 'red'"),
        (lambda b: b.add_arm("red"), "there is a 'red'"),
        (lambda b: b.add_arm("green"), "arms must be at most 2"),
        (lambda b: b.add_arm("green", {"price": 1.0}), "arms must be at most 2"),
        (lambda b: b.decide_batch([XS[0]], ids=[]), "ids must be as many as contexts, 1"),
        (lambda b: b.reward_batch(["0-0"], []), "values must be as many as ids"),
        (lambda b: b.fork(0), "seed must be another one"),
        (lambda b: b.warm_start("log.jsonl"), "log must be a bandits.Log"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_and_changes_nothing(
    call: Callable[[bandits.Bandit], object], words: str
) -> None:
    bandit = linear()
    bandit.decide(XS[0])
    before, counts = bandit.belief, bandit.counts
    with pytest.raises(credo.CredoError, match=words):
        call(bandit)
    assert _same(bandit.belief, before) and bandit.counts == counts
    assert bandit.decide(XS[1]).id == "0-1"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"arms": ["a"] * 2}, "there is a 'a'"),
        ({"arms": list("abcde")}, "arms must be 1 to 4 names"),
        ({"arms": [""]}, "texts for names"),
        ({"arms": "abc"}, "list of names"),
        ({"arms": {"a": {"x": 1.0}}}, "arms must be names"),
        ({"window": 0}, "window must be a whole number at least 1"),
        ({"timeout": 0.0}, "timeout must be finite and above 0"),
        ({"on_missing": "keep"}, "on_missing must be 'drop' or the reward"),
        ({"on_missing": float("nan")}, "on_missing must be 'drop' or the reward"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"features": 1}, "features must be a whole number at least 2"),
    ],
)  # fmt: skip
def test_options_that_cannot_be_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(credo.CredoError, match=words):
        bandits.Bandit(COINS, **options)


def test_an_explanation_says_what_the_data_have_said() -> None:
    bandit = coins(window=50)
    decision = bandit.decide()
    for _ in range(30):
        bandit.reward(decision.id, float(decision.arm == "a"))
        decision = bandit.decide()
    said = bandit.explain(decision.id)
    assert said.decision == decision and said.status == "pending" and said.version == 30
    assert said.greedy == "a" and said.explored == (decision.arm != "a")
    assert said.mean["a"] > 0.8 and said.prior_mean["a"] == 0.5 and said.floor == 0.02
    assert sum(said.best.values()) == pytest.approx(1.0) and said.best["a"] > 0.9
    assert 0.5 < said.data_share["a"] <= 1.0 and said.prior_sd["a"] > said.sd["a"]
    shares = {name: 1.0 - (said.sd[name] / sd) ** 2 for name, sd in said.prior_sd.items()}
    assert said.data_share == pytest.approx(shares) and min(shares.values()) < 0.9
    assert [_share(*sds) for sds in ((2.0, 1.0), (0.0, 1.0), (1.0, 0.0))] == [0.0, 1.0, 0.0]
    assert "largest" in said.reason or "explored" in said.reason
    bandit.forbid("a")
    bandit.forbid("b")
    assert bandit.explain(bandit.decide().id).reason == "'c' was the only arm that was allowed."


def test_an_explanation_names_the_arms_among_which_a_policy_chose() -> None:
    why = []
    for width in (2.0, 10.0):
        agent = bandits.Agent(credo.BetaBernoulli(), 4, "arms", bandits.UCB(width))
        bandit = bandits.Bandit(agent, ["a", "b", "c", "d"])
        bandit.forbid("d")
        for arm, value in (("a", 1.0), ("b", 0.0)):
            bandit.reward(bandit.decide(arms=[arm]).id, value)
        why.append(bandit.explain(bandit.decide().id))
        assert why[-1].decision.propensity == 1.0 and "only" not in why[-1].reason
    among = "among 3 allowed arms ('a', 'b' and 'c') with the probability 1"
    assert why[0].reason == f"'a' was chosen {among}: it has the largest expected reward, 0.667 +- 0.24."
    expects = "it expects 0.5 +- 0.29 where 'a' expects 0.667 +- 0.24"
    assert why[1].reason == f"'c' was explored {among}, as it may be the better one: {expects}."
    many = _reason(why[0].decision, "a", 0.0, [f"arm {number}" for number in range(25)])
    assert many.count("'arm ") == 20 and "and 5 more" in many


def test_readers_never_see_half_a_belief() -> None:
    count = 60
    bandit, alone = coins(), coins()
    waiting = [one.id for one in bandit.decide_batch([None] * count)]
    assert [one.id for one in alone.decide_batch([None] * count)] == waiting
    means = {}
    for step, id in enumerate(waiting):
        means[step] = alone.decide().mean
        alone.reward(id, step % 2)
    means[count] = alone.decide().mean
    seen: list[bandits.ArmDecision] = []
    errors: list[Exception] = []
    stop = threading.Event()

    def read() -> None:
        try:
            while not stop.is_set():
                seen.append(bandit.decide())
        except Exception as error:
            errors.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for step, id in enumerate(waiting):
        assert bandit.reward(id, step % 2) == "learned"
        until = len(seen) + 3 * (step % 4 == 0)
        while len(seen) < until and not errors:
            time.sleep(0.0005)
    stop.set()
    for reader in readers:
        reader.join()
    assert not errors and len({decision.version for decision in seen}) > 5
    assert all(decision.mean == means[decision.version] for decision in seen)
    assert len({decision.id for decision in seen}) == len(seen)
    assert bandit.counts.decisions == len(seen) + count and bandit.version == count


def test_memory_is_bounded_by_the_window() -> None:
    bandit = coins(window=20)
    for step in range(300):
        decision = bandit.decide()
        if step % 3:
            bandit.reward(decision.id, 1.0)
    engine = bandit._engine
    assert len(engine.window) == 20 and len(engine.window.gone) == 20
    assert sum(engine.window.waiting) == bandit.counts.pending <= 20


def test_means_stay_numpy_free_for_callers() -> None:
    decision = coins().decide()
    assert {type(value) for value in decision.pmf.values()} == {float}
    assert type(decision.propensity) is float and not isinstance(decision.mean["a"], np.generic)


@pytest.mark.slow
@pytest.mark.parametrize("design", ["arms", "actions"])
def test_a_bandit_starts_units_and_scales_for_contexts_of_its_design(design: Any) -> None:
    learner = credo.extended_kalman(credo.Model(LINE, credo.Normal(0.25)))
    agent = bandits.Agent(learner, 2, design, scale="online", units="online")
    bandit = bandits.Bandit(agent, ["a", "b"], features=4)
    for x in XS[:12]:
        row = np.stack([x, -x]) if design == "actions" else x
        assert bandit.reward(bandit.decide(row).id, 5.0 + x[0])
    assert bandit.belief.units is not None and float(bandit.belief.units.scale) > 0.0
    assert bandit.belief.scaler is not None and int(bandit.belief.units.first.filled) == 0


def test_arms_with_features_need_no_context() -> None:
    learner = credo.extended_kalman(credo.Model(LINE, credo.Normal(0.25)))
    arms = {"a": {"price": 1.0, "new": True}, "b": {"price": 2.0, "new": False}}
    bandit = bandits.Bandit(
        bandits.Agent(learner, 2, "actions"), arms, params=LINE.init(0, (4,)), arm_features=4
    )
    assert bandit.reward(bandit.decide(arms=["b"]).id, 1.0)
    (entry,) = bandit._engine.window
    np.testing.assert_array_equal(bandit._engine.x_of(entry), [[0.0, 1.0, 1.0, 0.0], [0.0, 2.0, -1.0, 0.0]])
