"""Arms that calls bring with their features: other ones each time, and nothing is compiled for it."""

from __future__ import annotations

import pathlib
import shutil
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.bandits.service.test_arms import ROWS
from tests.bandits.service.test_replay import full_disk, same
from tests.bandits.service.worlds import LINE

import credo
from credo import bandits
from credo.bandits.service.features import Features
from credo.bandits.service.inputs import FeatureEncoder

FILMS: dict[str, Any] = {"long": {"min": 2.0, "kind": "war"}, "short": {"min": 0.5, "kind": "love"}}
NEWS: dict[str, Any] = {"a": {"min": 0.1, "new": True}, "b": {"min": 0.2}, "c": {"kind": "war", "min": 1.0}}


def make(arms: Any = (), **options: Any) -> bandits.Bandit:
    """A bandit with at most three arms; by default each call brings its own."""
    return bandits.Bandit(ROWS, arms or {}, features=2, arm_features=8, **options)


@pytest.mark.slow
def test_arms_that_a_call_brings_are_chosen_and_learned_as_those_that_stand() -> None:
    brings, stands = make(), make(FILMS)
    one = None
    for step in range(12):
        context = {"age": float(step % 5)}
        one, other = brings.decide(context, FILMS), stands.decide(context)
        assert one == other
        for bandit in (brings, stands):
            assert bandit.reward(one.id, float(one.arm == "long"))
    for left, right in zip(jax.tree.leaves(brings.belief), jax.tree.leaves(stands.belief), strict=True):
        np.testing.assert_array_equal(left, right)
    assert one is not None
    entries = list(brings._engine.window)
    assert all(entry.rows is entries[-1].rows and entry.arms is entries[-1].arms for entry in entries)
    assert brings.explain(one.id).mean == pytest.approx(stands.explain(one.id).mean)
    batch = brings.decide_batch([{"age": 1.0}, {"age": 2.0}], FILMS)
    assert batch == stands.decide_batch([{"age": 1.0}, {"age": 2.0}])
    assert brings.schema.arm_features == stands.schema.arm_features and brings.arms == ()


def test_arms_change_from_call_to_call_and_late_rewards_find_their_features() -> None:
    bandit, belief = make(), ROWS.init(LINE.init(0, (10,)))
    first = bandit.decide({"age": 1.0}, {"long": np.arange(8.0)})
    second = bandit.decide({"age": 2.0}, dict(zip("abc", np.eye(3, 8), strict=True)))
    third = bandit.observe({"age": 3.0}, "y", 0.25, propensity=0.5, arms={"x": np.ones(8), "y": -np.ones(8)})
    assert third and bandit.explain(third.id).decision.pmf == {"x": 0.5, "y": 0.5}
    bandit.reward(second.id, 2.0)
    bandit.reward(first.id, -1.0)
    for row, reward in [
        ([0.0, np.sqrt(2.0), *-np.ones(8)], 0.25),
        ([0.0, 0.0, *np.eye(3, 8)["abc".index(second.arm)]], 2.0),
        ([0.0, 0.0, *np.arange(8.0)], -1.0),
    ]:
        belief, _ = ROWS.update(belief, jnp.tile(jnp.asarray(row), (3, 1)), 1, reward)
    for left, right in zip(jax.tree.leaves(bandit.belief), jax.tree.leaves(belief), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-14)
    means = [bandit.decide({"age": 1.0}, {"long": sign * np.arange(8.0)}).mean for sign in (1.0, -1.0)]
    assert means[0]["long"] < 0 < means[1]["long"]  # of the same name with other features


def test_brought_arms_come_back_from_a_file_and_from_a_log(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bandit = make(FILMS, log=tmp_path / "log.jsonl", shares={"long": (0.25, 1.0)})
    waiting = [bandit.decide({"age": 1.0}).id, bandit.decide({"age": 2.0}, NEWS).id]
    full_disk(bandit, monkeypatch)
    with pytest.raises(credo.DataError, match="no space"):
        bandit.decide({"age": 9.0}, {"late": {"colour": "red"}})
    assert "colour: red" in bandit._engine.inputs.actions.names  # type: ignore[union-attr]
    bandit.forbid("short")
    assert bandit.decide({"age": 3.0}, FILMS | {"x": {"min": 1.0}}).pmf["short"] == 0.0
    assert bandit.decide({"age": 3.0}, {**FILMS, "x": {"min": 1.0}}).pmf["long"] >= 0.25
    saved = bandit.save(tmp_path / "b.credo")
    waiting += [bandit.decide({"age": 2.0}, NEWS).id, bandit.decide({"age": 4.0}, {"v": {"min": 3.0}}).id]
    bandit.decide_batch([{"age": 5.0}, {"age": 6.0}], NEWS)
    assert bandit.observe({"age": 7.0}, "short", 1.0, arms=FILMS) and bandit.reward(waiting[1], 1.0)
    log = tmp_path / "log.jsonl"
    copies = [
        bandits.Bandit.load(saved, log=shutil.copy(log, tmp_path / "c")),
        make(FILMS, log=shutil.copy(log, tmp_path / "d"), replay=True, shares={"long": (0.25, 1.0)}),
        bandits.Bandit.load(bandit.save(tmp_path / "b.credo"), log=shutil.copy(log, tmp_path / "e")),
    ]
    for copy in copies:
        same(bandit, copy)
        assert all(copy.reward(id, 0.5) == "learned" for id in (waiting[0], *waiting[2:]))
        assert copy.version == bandit.version + 3
        np.testing.assert_array_equal(copy.belief.belief.mean, copies[0].belief.belief.mean)
    read = bandits.Log.read(log)
    assert read.contexts["actions"]["min"].shape == (len(read), len(read.arms))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda b: b.decide({"age": 1.0}), "arms must have one that may be chosen; there is no arm"),
        (lambda b: b.decide({"age": 1.0}, {}), "arms must have one that may be chosen; got no arm"),
        (lambda b: b.decide({"age": 1.0}, {key: {} for key in "wxyz"}), "as the agent has 3 arms"),
        (lambda b: b.decide({"age": 1.0}, {"a": {"min": "long"}}), "must have a number for 'min', as before"),
        (lambda b: b.decide({"age": 1.0}, {"a": np.ones(3)}), r"an array of 8 numbers, .* got array\(\[1"),
        (lambda b: b.decide({"age": 1.0}, {"a": np.ones(8), "b": {"min": 1.0}}), "the same for all arms"),
        (lambda b: b.decide({"age": "old"}, {"a": {"fresh": 1.0}}), "must have a number for 'age'"),
        (lambda b: b.observe({"age": 1.0}, "z", 1.0, arms=FILMS), "arm must be one of the arms"),
    ],
)  # fmt: skip
def test_arms_that_cannot_be_brought_are_refused_and_change_nothing(
    call: Callable[[bandits.Bandit], object], words: str
) -> None:
    bandit = make()
    bandit.decide({"age": 1.0}, FILMS)
    before = bandit._engine.inputs.to_dict()
    with pytest.raises(credo.CredoError, match=words):
        call(bandit)
    assert bandit._engine.inputs.to_dict() == before and bandit.counts.decisions == 1
    with pytest.raises(credo.CredoError, match="features of the arm 'a' need an agent with design='actions'"):
        bandits.Bandit(ROWS, ["a"]).decide(np.ones((1, 4)), {"a": {"min": 1.0}})


def test_rows_by_columns_are_those_one_by_one() -> None:
    settings = Features(slots=12, standardise=False, categories=2)
    rng = np.random.default_rng(0)
    rows: list[dict[str, Any]] = [
        {"x": float(rng.normal()), "n": int(rng.integers(9)), "t": "ab"[int(rng.integers(2))]}
        for _ in range(40)
    ]
    odd: list[list[dict[str, Any]]] = [
        [row | {"x": None} for row in rows],
        [row | {"x": True} for row in rows],
        [row | {"t": "c"} for row in rows],
        [row | {"n": 3.0, "tags": ["q"]} for row in rows],
        [rows[0], {"x": 1.0}],
    ]
    for table in (rows, *odd):
        one, other = FeatureEncoder(settings), FeatureEncoder(settings)
        for encoder in (one, other):
            encoder.encode({"x": 1.0, "n": 2.0, "t": "a", "more": 1.0})
            encoder.encode({"t": "b"})
        assert (one._by_columns(table) is not None) == (table is rows)
        np.testing.assert_array_equal(one.encode_rows(table), [other.encode(row) for row in table])
        assert one.to_dict() == other.to_dict()


def test_a_log_with_features_of_arms_is_learned_by_them(tmp_path: pathlib.Path) -> None:
    first, second = make(log=tmp_path / "log.jsonl"), make(log=tmp_path / "second.jsonl")
    for step in range(6):
        arms = FILMS if step % 2 else NEWS
        first.reward(first.decide({"age": float(step)}, arms).id, float(step))
    log = bandits.Log.read(tmp_path / "log.jsonl")
    log.write(tmp_path / "log.dsjson", format="dsjson")
    assert second.warm_start(log) == 6
    second.close()
    twin, other = make(log=tmp_path / "second.jsonl", replay=True), make()
    same(second, twin)
    assert other.warm_start(bandits.Log.read(tmp_path / "log.dsjson")) == 6
    for left, right in zip(jax.tree.leaves(first.belief), jax.tree.leaves(second.belief), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-12)
    plain = bandits.Bandit(ROWS, ["long", "short", "a"], params=LINE.init(0, (4,)))
    with pytest.raises(credo.CredoError, match="log must choose among the arms of the bandit"):
        plain.warm_start(log)
    assert plain.version == 0
