"""A bandit in a file: it goes on bit by bit, and damage is noticed."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bandits.service.worlds import COINS, LINE, LINEAR, XS, Clock, coins, linear, nameless

import credo
from credo import bandits
from credo.streams import checkpoint


def _played(**options: Any) -> bandits.Bandit:
    bandit = linear(**options)
    for step, x in enumerate(XS[:12]):
        decision = bandit.decide({"a": x[0], "kind": "even" if step % 2 else "odd"})
        if step % 3:
            bandit.reward(decision.id, x[0])
    bandit.forbid("red")
    bandit.allow("red")
    return bandit


def test_a_loaded_bandit_goes_on_bit_by_bit(tmp_path: pathlib.Path) -> None:
    clock = Clock()
    bandit = _played(window=9, timeout=60.0, on_missing=0.25, clock=clock)
    late = [entry.id for entry in bandit._engine.window if entry.status is None]
    other = bandits.Bandit.load(bandit.save(tmp_path / "b.credo"), clock=clock)
    assert other.counts == bandit.counts and other.arms == bandit.arms and len(late) == 3
    for step, x in enumerate(XS[12:24]):
        context = {"a": x[0], "kind": "odd"}
        decision = bandit.decide(context, id=f"id{step}" if step % 2 else None)
        twin = other.decide(context, id=decision.id if step % 2 else None)
        assert nameless(twin) == nameless(decision)
        assert bandit.reward(late[step % 3], 1.0) == other.reward(late[step % 3], 1.0)
        assert bandit.reward(decision.id, x[1]) and other.reward(twin.id, x[1])
        clock.time += 7.0
    bandit.remove_arm("red")
    other.remove_arm("red")
    bandit.add_arm("green")
    other.add_arm("green")
    assert nameless(bandit.decide({"a": 1.0})) == nameless(other.decide({"a": 1.0}))
    assert bandit.counts == other.counts and bandit.features == other.features
    assert all(map(jnp.array_equal, jax.tree.leaves(bandit.belief), jax.tree.leaves(other.belief)))
    assert bandit.explain("id11") == other.explain("id11")


def test_copies_with_other_seeds_explore_otherwise(tmp_path: pathlib.Path) -> None:
    bandit = coins()
    waiting = bandit.decide().id
    bandit.save(tmp_path / "b.credo")
    copies = [bandits.Bandit.load(tmp_path / "b.credo", seed=5), bandit.fork(5), bandit]
    arms = [[one.arm for one in copy.decide_batch([None] * 20)] for copy in copies]
    assert arms[0] == arms[1] != arms[2]
    ids = [copy.decide().id for copy in copies]
    assert ids[2] == "0-21" and all(id.startswith("5.") and id.endswith("-21") for id in ids[:2])
    assert ids[0] != ids[1]
    assert [copy.reward(waiting, 1.0).value for copy in copies] == ["learned"] * 3
    assert coins(seed=5).decide().id == "5-0"


def test_actions_with_features_and_their_own_functions_are_saved(tmp_path: pathlib.Path) -> None:
    learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.25)))
    agent = bandits.Agent(learner, 3, "actions")
    arms = {"a": {"price": 1.0}, "b": {"price": 2.0}}
    bandit = bandits.Bandit(agent, arms, params=jnp.zeros(6), features=3, arm_features=3)
    bandit.reward(bandit.decide({"age": 3.0}).id, 1.0)
    path = bandit.save(tmp_path / "b.credo")
    with pytest.raises(credo.FormatError, match="uses your function"):
        bandits.Bandit.load(path)
    other = bandits.Bandit.load(path, agent)
    bandit.add_arm("c", {"price": 3.0, "new": True})
    other.add_arm("c", {"price": 3.0, "new": True})
    assert nameless(other.decide({"age": 4.0})) == nameless(bandit.decide({"age": 4.0}))


def test_an_agent_is_saved_with_its_belief(tmp_path: pathlib.Path) -> None:
    belief, _ = LINEAR.update(LINEAR.init(LINE.init(0, (4,))), jnp.asarray(XS[0]), 1, 1.0)
    path = credo.save(tmp_path / "b.credo", LINEAR, belief)
    agent, loaded = credo.load(path, LINEAR)
    assert agent == LINEAR and loaded == belief
    assert bandits.Bandit(agent, belief=loaded).decide(XS[1]).version == 0
    with pytest.raises(
        credo.FormatError, match=r"must be of the kind Learner; got Agent: pass .*Bandit\.load"
    ):
        credo.load(path)


def forged(record: Any, part: str, place: tuple[int, ...]) -> Any:
    """The record with -1 in a place of an array in it."""
    name, _, rest = part.partition(".")
    inner = getattr(record, name)
    changed = forged(inner, rest, place) if rest else inner.at[place].set(-1.0)
    return credo.replace(record, **{name: changed})


@pytest.mark.parametrize(
    ("part", "place", "words"),
    [
        ("first.rows", (0, 2), "must have weights of at least 0"),
        ("known", (1,), "must have a scale of at least 0"),
        ("moments.values", (0,), "must have counts and variances of at least 0"),
        ("moments.values", (3,), "must have counts and variances of at least 0"),
    ],
)
def test_rewards_that_wait_for_their_units_are_saved_and_forged_ones_refused(
    part: str, place: tuple[int, ...], words: str, tmp_path: pathlib.Path
) -> None:
    agent = credo.replace(LINEAR, units="online")
    belief = agent.init(LINE.init(0, (4,)), context=np.zeros(4))
    belief, _ = agent.update(belief, jnp.asarray(XS[0]), 1, 1.0)
    path = credo.save(tmp_path / "b.credo", agent, belief)
    assert credo.load(path, agent)[1] == belief
    path = credo.save(path, agent, credo.replace(belief, units=forged(belief.units, part, place)))
    with pytest.raises(credo.FormatError, match=rf"belief\.units\.{part} {words}"):
        credo.load(path, agent)


def test_a_damaged_file_is_refused_in_a_sentence(tmp_path: pathlib.Path) -> None:
    path = coins().save(tmp_path / "b.credo")
    data = path.read_bytes()
    for place in (5, len(data) // 3, len(data) - 3):
        (tmp_path / "x.credo").write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(credo.FormatError):
            bandits.Bandit.load(tmp_path / "x.credo")
    (tmp_path / "x.credo").write_bytes(data[: len(data) // 2])
    with pytest.raises(credo.FormatError, match="cut short"):
        bandits.Bandit.load(tmp_path / "x.credo")
    with pytest.raises(credo.DataError, match="no saved learner"):
        bandits.Bandit.load(tmp_path / "none.credo")
    coin = credo.BetaBernoulli()
    credo.save(tmp_path / "coin.credo", coin, coin.init())
    with pytest.raises(credo.FormatError, match="by a program that kept no bandit"):
        bandits.Bandit.load(tmp_path / "coin.credo")
    with pytest.raises(credo.FormatError, match="was saved by another model"):
        bandits.Bandit.load(path, LINEAR)


FORGERIES: dict[str, Callable[[dict[str, Any], dict[str, np.ndarray]], object]] = {
    "no 'count'": lambda meta, arrays: meta.pop("count"),
    "whole number at least 0; got -1": lambda meta, arrays: meta.update(count=-1),
    "window must be a whole number": lambda meta, arrays: meta["window"].update(size=0),
    "on_missing must be": lambda meta, arrays: meta.update(on_missing="keep"),
    "different names in 4 slots": lambda meta, arrays: meta["arms"].update(slots=["a", "a", None, None]),
    "numbers must have the shape": lambda meta, arrays: arrays.update(numbers=np.zeros((1, 4, 3))),
    "slot 3 has none": lambda meta, arrays: meta["entries"][0].__setitem__(2, 3),
    "malformed": lambda meta, arrays: meta["entries"][0].__setitem__(8, "eaten"),
    "prior must have the shapes": lambda meta, arrays: arrays.update({"prior/0": np.zeros(9)}),
    "rows must be the features": lambda meta, arrays: arrays.update(rows=np.zeros((4, 2))),
    "places of a saved context": lambda meta, arrays: meta["inputs"]["contexts"].update(used=9),
    "no 'epoch'": lambda meta, arrays: meta.pop("epoch"),
    "times must be finite": lambda meta, arrays: meta["time"].update(behind=float("inf")),
    "another version": lambda meta, arrays: meta.update(bandit=99),
}


@pytest.mark.parametrize("words", FORGERIES)
def test_a_file_whose_parts_do_not_fit_is_refused(words: str, tmp_path: pathlib.Path) -> None:
    bandit = coins()
    bandit.decide()
    saved = checkpoint.read(bandit.save(tmp_path / "b.credo"), kind=bandits.Agent)
    FORGERIES[words](saved.meta, saved.arrays)
    path = checkpoint.save(
        tmp_path / "x.credo", saved.learner, saved.belief, meta=saved.meta, arrays=saved.arrays
    )
    with pytest.raises(credo.FormatError, match=words):
        bandits.Bandit.load(path)


def test_a_failed_save_leaves_the_older_file(tmp_path: pathlib.Path) -> None:
    path = coins().save(tmp_path / "b.credo")
    before = path.read_bytes()
    if os.geteuid() == 0:
        blocked = tmp_path / "file"
        blocked.write_text("")
        with pytest.raises(credo.DataError, match="cannot write"):
            coins(seed=1).save(blocked / "b.credo")
    assert path.read_bytes() == before and os.listdir(tmp_path).count("b.credo") == 1
    assert nameless(bandits.Bandit.load(path, COINS).decide()) == nameless(coins().decide())
