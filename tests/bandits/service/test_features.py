"""Contexts by name: where they stand, how they are scaled, and what is missing."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pytest
from tests.bandits.service.worlds import linear

import credo
from credo import bandits
from credo.bandits.logs.contexts import features_of
from credo.bandits.service.features import FeatureEncoder, Features

DEEP: Any = {"a": 1.0}
for _ in range(21):
    DEEP = {"a": DEEP}


def test_numbers_are_standardised_by_those_before_them() -> None:
    encoder, ages = FeatureEncoder(Features(slots=4)), np.random.default_rng(0).normal(40.0, 9.0, 50)
    for step, age in enumerate(ages):
        x = encoder.encode({"age": age})
        if step > 1:
            z = (age - ages[:step].mean()) / ages[:step].std(ddof=1)
            assert x[1] == pytest.approx(np.clip(z, -np.sqrt(step), np.sqrt(step)), rel=1e-12)
        else:
            assert x[1] == 0.0
    assert 0 < encoder.encode({"age": 1e9}, learn=False)[1] < 1e-9  # absurd, and as good as missing
    flat = FeatureEncoder(Features(slots=4))
    assert [flat.encode({"a": 3.0})[1] for _ in range(5)] == [0.0] * 5


def test_texts_have_places_until_these_run_out() -> None:
    encoder = FeatureEncoder(Features(slots=8, categories=2))
    for device in ("phone", "desk", "tv", "phone"):
        x = encoder.encode({"device": device, "new": device == "tv"})
    assert encoder.names == ("missing", "device: other", "device: phone", "new", "device: desk")
    assert x.tolist() == [0.0, 0.0, 1.0, -1.0, 0.0, 0.0, 0.0, 0.0]
    assert encoder.encode({"device": "watch", "new": True}).tolist()[:5] == [0.0, 1.0, 0.0, 1.0, 0.0]
    small = FeatureEncoder(Features(slots=3))
    small.encode({"device": "phone"})
    assert small.encode({"device": "desk"}).tolist() == [0.0, 1.0, 0.0]


def test_what_is_missing_is_zero_and_marked() -> None:
    encoder = FeatureEncoder(Features(slots=8))
    for age in (20.0, 40.0):
        assert encoder.encode({"age": age, "device": "phone"})[0] == 0.0
    for context in (
        {"age": None, "device": "phone"},
        {"device": "phone"},
        {"age": float("nan"), "device": "phone"},
    ):
        assert encoder.encode(context).tolist() == [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    assert encoder.encode({"fresh": None, "age": 30.0, "device": "phone"})[0] == 0.0
    assert "fresh" not in encoder.names


def test_lists_of_numbers_take_a_place_each() -> None:
    encoder = FeatureEncoder(Features(slots=8, standardise=False))
    x = encoder.encode({"picture": np.array([1.5, -2.0]), "zip": "123", "n": np.int64(3)})
    assert x.tolist() == [0.0, 1.5, -2.0, 0.0, 1.0, 3.0, 0.0, 0.0]
    assert encoder.encode({"picture": [0.0, 1.0], "zip": 123, "n": 1}).tolist()[3:5] == [0.0, 1.0]


def test_a_name_without_a_place_shares_one_that_its_hash_chooses() -> None:
    encoder = FeatureEncoder(Features(slots=4, standardise=False))
    encoder.encode({"a": 1.0, "b": True, "c": 3.0})
    names = [f"new {number}" for number in range(200)]
    with pytest.warns(UserWarning, match="more names in context than the 4 places, and 'new 0' shares one"):
        alone = np.stack([encoder.encode({name: 2.0}) for name in names])
    assert alone[:, 0].all() and ((alone[:, 1:] != 0).sum(axis=1) == 1).all()
    assert set((alone[:, 1:] != 0).argmax(axis=1).tolist()) == {0, 1, 2}
    together = encoder.encode({"a": 1.0, "b": True, "c": 3.0, names[0]: 2.0, names[1]: 2.0})
    np.testing.assert_array_equal(together[1:], [1.0, 1.0, 3.0] + alone[0, 1:] + alone[1, 1:])
    assert encoder.names == ("missing", "a", "b", "c")
    places = [encoder.encode({"text": value})[1:].argmax() for value in "abcdefgh"]
    assert len(set(places)) > 1 and places[0] == encoder.encode({"text": "a"})[1:].argmax()


def test_shared_numbers_are_standardised_and_saved() -> None:
    encoder = FeatureEncoder(Features(slots=2))
    encoder.encode({"a": 0.0})
    with pytest.warns(UserWarning, match="shares one"):
        own = [encoder.encode({"a": None, "new": value})[1] for value in (10.0, 20.0, 30.0, 100.0)]
    np.testing.assert_allclose(own, [0.0, 0.0, np.sqrt(2.0) * 1.5 / 1.5, np.sqrt(3.0)], atol=1e-12)
    again = FeatureEncoder.restore(encoder.to_dict())
    assert again.encode({"new": 50.0}).tolist() == encoder.encode({"new": 50.0}).tolist()
    assert again.to_dict() == encoder.to_dict()
    broken = encoder.to_dict()
    broken["shared"] = {"2": broken["shared"]["1"]}
    with pytest.raises(credo.FormatError, match="shared places"):
        FeatureEncoder.restore(broken)


@pytest.mark.parametrize(
    ("context", "words"),
    [
        ({"age": "old"}, "must have a number for 'age', as before; got 'old'"),
        ({"age": float("-inf")}, "context must be finite"),
        ({"b": 1.0, "deep": {"c": {1.0}}}, "got a set for 'deep.c'"),
        ({"b": 1.0, "tags": ["x", [1.0]]}, "got a list for 'tags'"),
        ({"b": 1.0, "deep": {1: 1.0}}, "texts for names; got 1"),
        ({"a.b": 1.0, "a": {"b": 2.0}}, "must have different names; 'a.b' comes twice"),
        ({"age": ["old"]}, "must have a number for 'age', as before"),
        (DEEP, "must be at most 20 objects and lists deep"),
    ],
)
def test_a_refused_context_leaves_the_encoder_as_it_was(context: Any, words: str) -> None:
    encoder = FeatureEncoder(Features(slots=4))
    encoder.encode({"age": 1.0})
    before = encoder.to_dict()
    with pytest.raises(credo.CredoError, match=words):
        encoder.encode(context)
    assert encoder.to_dict() == before


def test_a_restored_encoder_goes_on_bit_by_bit() -> None:
    rng, encoder = np.random.default_rng(0), FeatureEncoder(Features(slots=12, categories=3))
    rows = [{"a": rng.normal(), "b": str(rng.integers(6)), "c": [rng.normal()] * 2} for _ in range(30)]
    for row in rows[:20]:
        encoder.encode(row)
    other = encoder.copy()
    for row in rows[20:]:
        assert np.array_equal(encoder.encode(row), other.encode(row))
    assert encoder.to_dict() == other.to_dict()


def test_contexts_by_name_are_learned() -> None:
    bandit = linear(seed=1)
    rng = np.random.default_rng(0)
    right = []
    for _ in range(150):
        night = bool(rng.integers(2))
        decision = bandit.decide({"night": night, "hour": rng.normal()})
        right.append((decision.arm == "red") == night)
        bandit.reward(decision.id, float(right[-1]))
    assert np.mean(right[-50:]) > 0.85
    assert bandit.features == ("missing", "night", "hour")


@pytest.mark.parametrize(
    "forge",
    [
        lambda saved: saved["known"]["a"].__setitem__(0, 3),  # a place is left out
        lambda saved: saved["known"]["b"].__setitem__(0, 1),  # two names have one place
        lambda saved: saved.update(used=2),
        lambda saved: saved["settings"].update(slots=2),  # more are taken than there are
    ],
)
def test_places_that_cannot_be_are_refused(forge: Any) -> None:
    encoder = FeatureEncoder(Features(slots=4))
    encoder.encode({"a": 1.0, "b": 2.0})
    saved: Any = encoder.to_dict()
    assert FeatureEncoder.restore(saved).to_dict() == saved
    forge(saved)
    with pytest.raises(credo.FormatError, match="places of a saved context must be 0 to"):
        FeatureEncoder.restore(saved)


def test_objects_are_flattened_and_tags_are_values_of_one_text() -> None:
    encoder = FeatureEncoder(Features(slots=9, standardise=False, categories=3))
    deep = {"user": {"age": 3.0, "home": {"at": [[1.0, 2.0]]}}, "tags": ["new", "mobile", "new"]}
    names = ["user.age", "user.home.at[0][0]", "user.home.at[0][1]"]
    assert encoder.encode(deep).tolist() == [0.0, 3.0, 1.0, 2.0, 0.0, 1.0, 1.0, 0.0, 0.0]
    assert encoder.names == ("missing", *names, "tags: other", "tags: new", "tags: mobile")
    assert encoder.encode(deep | {"tags": np.array(["old", "mobile"])}).tolist()[4:] == [
        0.0,
        0.0,
        1.0,
        1.0,
        0.0,
    ]
    assert encoder.encode(deep | {"tags": ["a", "b", "new"]}).tolist()[4:] == [1.0, 1.0, 0.0, 0.0, 0.0]
    assert encoder.encode(deep | {"tags": []}).tolist() == [0.0, 3.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert encoder.encode(deep | {"tags": None, "none": []})[0] == 1.0
    assert encoder.seen[-1] == ("tags", "text", (4, 5, 6, 7), ("new", "mobile", "old"), 0, 0.0, 0.0)


def test_spare_places_are_for_what_comes_late_and_disturb_no_other() -> None:
    encoder = FeatureEncoder(Features(slots=8, standardise=False, categories=2, spare=3))
    first = {"a": 2.0, "text": "x"}
    own = encoder.encode(first)
    assert own.tolist() == [0.0, 2.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0] and encoder.free == 1
    late = [f"late {number}" for number in range(40)]
    seen = np.stack([encoder.encode(first | {name: 5.0}) for name in ("b", *late)])
    np.testing.assert_array_equal(
        seen[1:, :4], np.broadcast_to(own[:4], (40, 4)) + np.eye(4)[0]
    )  # b is missing
    assert set(seen[1:, 5:].argmax(axis=1).tolist()) == {0, 1, 2} and (seen[1:, 5:].sum(axis=1) == 5.0).all()
    other = encoder.encode({"text": "y", "tags": ["p", "q"]})
    assert other[2] == 1.0 and other[3] == 0.0 and other[5:].sum() == 3.0  # y, p and q have shares
    said = [name for names in encoder.shared.values() for name in names]
    assert sorted(said) == sorted([*late, "text=y", "tags=p", "tags=q"]) and set(encoder.shared) == {5, 6, 7}
    again = FeatureEncoder.restore(json.loads(json.dumps(encoder.to_dict())))
    assert again.to_dict() == encoder.to_dict() and again.shared == encoder.shared
    broken = encoder.to_dict()
    broken["hashed"]["late 3"] = 8
    with pytest.raises(credo.FormatError, match="shared places"):
        FeatureEncoder.restore(broken)
    with pytest.raises(credo.CredoError, match=r"spare must be a whole number in 0\.\.6"):
        Features(slots=8, spare=7)


def test_a_schema_and_an_explanation_say_which_names_share_a_place() -> None:
    bandit = linear()
    assert bandit.schema.shape is None and bandit.schema.free == 3
    with pytest.warns(UserWarning, match="shares one"):
        for age in (1.0, 2.0, 3.0):
            decision = bandit.decide({"user": {"age": age}, "kind": "x", "new": 1.0 + age})
    schema = bandit.schema
    assert schema.shape == (4,) and schema.features[0] == ("user.age", "number", (1,), (), 3, 2.0, 1.0)
    ((place, names),) = schema.shared.items()
    assert names == (bandit.features[place], "new") and f"place {place} is shared by" in str(schema)
    why = bandit.explain(decision.id)
    assert why.shared == (names,)
    arrays = linear()
    arrays.decide(np.ones(4))
    assert str(arrays.schema) == "contexts of the shape (4,)"


def test_logs_have_nested_contexts_and_tags(tmp_path: pathlib.Path) -> None:
    first, second = (linear(log=tmp_path / f"{number}.jsonl") for number in range(2))
    tags = [["x"], [], ["x", "y"], None]
    for number in range(8):
        context = {"a": {"a": number % 3}, "t": tags[number % 4]}
        first.reward(first.decide(context).id, float(number))
    log = bandits.Log.read(tmp_path / "0.jsonl")
    assert log.contexts["t"].tolist() == [("x",), (), ("x", "y"), None] * 2
    log.write(tmp_path / "again.jsonl")
    assert bandits.Log.read(tmp_path / "again.jsonl").contexts["t"].tolist() == log.contexts["t"].tolist()
    assert second.warm_start(log) == 8 and second.schema == first.schema
    shared, own = features_of(log.contexts, 8, 2)
    assert own is None
    np.testing.assert_array_equal(shared[:4, -2:], [[1.0, 0.0], [0.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
