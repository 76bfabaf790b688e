"""Rewards in parts and within a range, and choices that were made elsewhere."""

from __future__ import annotations

import json
import math
import pathlib
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bandits.service.test_replay import full_disk, same
from tests.bandits.service.worlds import LINE, LINEAR, XS, Clock, coins, linear

import credo
from credo import bandits
from credo.bandits import service


def _copies(bandit: bandits.Bandit, folder: pathlib.Path, **options: Any) -> list[bandits.Bandit]:
    """The bandit from its file, and from its log."""
    log = folder / "log.jsonl"
    there = pathlib.Path(tempfile.mkdtemp(dir=folder))
    saved = bandit.save(folder / "b.credo")
    clock = options.get("clock")
    return [
        bandits.Bandit.load(saved, log=shutil.copy(log, there / "c"), clock=clock),
        linear(log=shutil.copy(log, there / "d"), replay=True, **options),
    ]


def test_a_choice_made_elsewhere_is_learned_as_an_update_of_the_agent(tmp_path: pathlib.Path) -> None:
    bandit, belief = linear(log=tmp_path / "log.jsonl"), LINEAR.init(LINE.init(0, (4,)))
    for x in XS[:4]:
        assert bandit.observe(x, "blue", x[0], propensity=0.1).status == "learned"
        belief, _ = LINEAR.update(belief, jnp.asarray(x), 1, x[0])
    for left, right in zip(jax.tree.leaves(bandit.belief), jax.tree.leaves(belief), strict=True):
        np.testing.assert_array_equal(left, right)
    kinds = [json.loads(line)["kind"] for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert kinds == ["observed", "reward"] * 4 and bandit.counts == service.Counts(observed=4, learned=4)
    said = bandit.explain("0-0")
    assert said.reason == "'blue' was chosen elsewhere, with the probability 0.1."
    assert said.decision.propensity == 0.1 and said.decision.pmf == {"red": 0.9, "blue": 0.1}


def test_a_choice_made_elsewhere_is_idempotent_and_comes_back(tmp_path: pathlib.Path) -> None:
    clock = Clock()
    bandit = linear(log=tmp_path / "log.jsonl", clock=clock)
    bandit.forbid("blue")
    first = bandit.decide({"age": 1.0})
    human = {"age": 3.0, "kind": "x"}
    assert not bandit.observe(human, "blue", id="mine") and bandit.counts.pending == 2
    assert bandit.observe(human, "blue", 1.5, id="mine") == ("mine", "learned")
    assert [bandit.observe(human, "blue", value, id="mine").status for value in (1.5, 2.0, None)] == (
        ["duplicate", "conflict", "learned"]
    )
    assert bandit.observe({"age": 0.0}, "red", 1e300, id="bad").status == "refused"
    assert bandit.reward("bad", 0.5) and bandit.version == 3
    other = bandit.observe({"age": 2.0}, "red", 0.0, propensity={"red": 0.25, "blue": 0.75})
    with pytest.raises(credo.CredoError, match="the decision 'mine' was taken for others"):
        bandit.observe(human, "red", 1.5, id="mine")
    with pytest.raises(credo.CredoError, match="the decision 'mine' was taken for others"):
        bandit.decide(human, id="mine")
    for again in _copies(bandit, tmp_path, clock=clock):
        same(bandit, again)
        assert again.observe(human, "blue", 1.5, id="mine").status == "duplicate"
        assert math.isnan(again.explain("mine").decision.propensity)
        assert again.explain(other.id).decision.pmf == {"red": 0.25, "blue": 0.75}
        assert "probability that nobody knows" in again.explain("mine").reason
        assert again.reward(first.id, 1.0)
    bandit.reward(first.id, 1.0)
    log = bandits.Log.read(tmp_path / "log.jsonl")
    assert log.counts is not None and log.counts.unweighed == 2 and len(log) == 2
    assert log.propensities.tolist() == [first.propensity, 0.25] and log.rewards.tolist() == [1.0, 0.0]
    assert log.pmfs is not None and log.counts.sentences() == ("2 choices have no propensity (left out)",)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"propensity": 1.5}, "propensity must be a probability, above 0 and at most 1"),
        ({"propensity": float("nan")}, "or None where it is unknown; got nan"),
        ({"propensity": 0.0}, "propensity of the chosen arm must be above 0"),
        ({"propensity": {"red": 0.5, "blue": 0.2}}, "sum to 1; they sum to 0.7"),
        ({"propensity": {"blue": 1.0}}, "arm must be among the arms of the choice; got 'red'"),
        ({"arms": ["blue"]}, "arm must be among the arms of the choice; got 'red'"),
        ({"arm": "green"}, "arm must be one of the arms, 'red', 'blue'; got 'green'"),
        ({"reward": float("inf")}, "reward must be a finite number; got inf"),
        ({"reward": 3.0}, "reward must be from -1 to 2, which is the reward_range; got 3"),
        ({"context": {"age": float("inf")}}, "context must be finite, or None"),
    ],
)  # fmt: skip
def test_a_choice_that_cannot_be_is_refused_and_changes_nothing(options: dict[str, Any], words: str) -> None:
    bandit = linear(reward_range=(-1.0, 2.0))
    bandit.decide({"age": 1.0})
    before = bandit.belief, bandit.counts, bandit.features
    given: dict[str, Any] = {"context": {"age": 2.0, "new": 1.0}, "arm": "red", "reward": 1.0}
    with pytest.raises(credo.CredoError, match=words):
        bandit.observe(**given | options)
    assert (bandit.counts, bandit.features) == before[1:] and bandit.version == 0


def test_a_choice_that_could_not_be_written_leaves_no_trace_but_its_context(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bandit = linear(log=tmp_path / "log.jsonl")
    bandit.observe({"age": 1.0}, "red", 1.0)
    full_disk(bandit, monkeypatch)
    with pytest.raises(credo.DataError, match="no space"):
        bandit.observe({"age": 9.0}, "red", 1.0)
    assert bandit.counts.observed == bandit.version == 1
    bandit.observe({"age": 2.0}, "red", 1.0)
    for again in _copies(bandit, tmp_path):
        same(bandit, again)


def test_parts_of_a_reward_are_learned_as_their_sum_and_come_back(tmp_path: pathlib.Path) -> None:
    clock = Clock()
    options: dict[str, Any] = {"clock": clock, "timeout": 10.0, "on_missing": -1.0}
    bandit, whole = linear(log=tmp_path / "log.jsonl", **options), linear(**options)
    for one in (bandit, whole):
        one.decide_batch([{"age": 1.0}, {"age": 2.0}, {"age": 3.0}], ids=["a", "b", "c"])
    said = [bandit.reward("a", value, part=part) for value, part in [(1.0, "x"), (1.0, "x"), (2.0, "x")]]
    assert said == ["added", "duplicate", "conflict"] and not said[0] and bandit.version == 0
    assert bandit.reward_batch(["b", "a", "a", "a", "a"], [0.25, -0.5, 1e300, 2.0, 9.0],
                               parts=["x", "y", None, None, "z"]) == (
        ["added", "added", "refused", "learned", "conflict"]
    )  # fmt: skip
    assert bandit.reward("a", 2.0) == "duplicate" and bandit.reward("a", 2.5) == "conflict"
    assert bandit.counts.pending == 2 and bandit.counts.added == 3
    for again in _copies(bandit, tmp_path, **options):
        same(bandit, again)
        assert again.reward("b", 0.25, part="x") == "duplicate"
    clock.time = 11.0
    for one in (bandit, whole, *_copies(bandit, tmp_path, **options)):
        assert one.tick() == (3 if one is whole else 2)
    assert bandit.counts.summed == bandit.counts.imputed == 1  # c was silent
    whole = linear(**options)
    whole.decide_batch([{"age": 1.0}, {"age": 2.0}, {"age": 3.0}], ids=["a", "b", "c"])
    assert whole.reward("a", 2e300) == "refused" and whole.reward("a", 2.5) and whole.reward("b", 0.25)
    whole.tick(40.0)
    for left, right in zip(jax.tree.leaves(bandit.belief), jax.tree.leaves(whole.belief), strict=True):
        np.testing.assert_array_equal(left, right)
    log = bandits.Log.read(tmp_path / "log.jsonl")
    assert log.rewards.tolist() == [2.5, 0.25, -1.0] and log.counts is not None and log.counts.duplicates == 0
    open_sum = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()[:5]]
    np.testing.assert_array_equal(bandits.Log.read(open_sum).rewards, [math.nan] * 3)


def test_rewards_outside_the_range_are_refused_with_the_parts_before_them(tmp_path: pathlib.Path) -> None:
    bandit = coins(reward_range=(0, 1))
    ids = [bandit.decide().id for _ in range(2)]
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: bandit.reward(ids[0], 1.5), "reward must be from 0 to 1, .* got 1.5"),
        (lambda: bandit.reward("nobody", -1.0), "reward must be from 0 to 1, .* got -1"),
        (lambda: bandit.reward_batch(ids * 2, [0.75, 0.5, 0.25, 0.75], parts=["a", "a", "b", "b"]),
         "got 1.25 with the parts before it"),
        (lambda: bandit.reward(ids[0], 1.0, part=""), "part must be a text; got ''"),
    ]  # fmt: skip
    for act, words in refused:
        with pytest.raises(credo.CredoError, match=words):
            act()
    assert bandit.counts == service.Counts(decisions=2, pending=2)
    assert bandit.reward(ids[0], 0.75, part="a") == "added"
    loaded = bandits.Bandit.load(bandit.save(tmp_path / "b.credo"))
    for one in (bandit, loaded, bandit.fork(5)):
        with pytest.raises(credo.CredoError, match=r"got 1\.75 with the parts before it"):
            one.reward(ids[0], 1.0)
        assert one.reward(ids[0], 0.25) and one.reward(ids[0], 0.25) == "duplicate"
    log = bandits.Log(("a",), np.zeros(2, int), np.array([1.0, 2.0]), np.ones(2))
    with pytest.raises(credo.CredoError, match=r"reward must be from 0 to 1, .* got 2"):
        bandit.warm_start(log)
    for bad in ((1.0, 0.0), (0.0, math.inf), 3.0, (0.0, 1.0, 2.0)):
        with pytest.raises(credo.CredoError, match=r"reward_range must be two numbers"):
            coins(reward_range=bad)
    with pytest.raises(credo.CredoError, match="on_missing must be from 0 to 1"):
        coins(reward_range=(0.0, 1.0), on_missing=2.0)


def test_expected_rewards_are_answered_within_the_range() -> None:
    bandit, free = linear(reward_range=(0.0, 1.0)), linear()
    for x in XS[:10]:
        for one in (bandit, free):
            one.reward(one.decide(x).id, float(x[0] > 0))
    far = [one.decide(XS[0] * 9.0) for one in (bandit, free)]
    assert far[0].pmf == far[1].pmf and max(map(abs, far[1].mean.values())) > 1.5
    assert far[0].mean == {arm: min(max(mean, 0.0), 1.0) for arm, mean in far[1].mean.items()}
    assert bandit.explain(far[0].id).mean == far[0].mean == bandit.decide(XS[0] * 9.0, id=far[0].id).mean
