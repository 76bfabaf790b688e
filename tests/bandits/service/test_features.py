"""Contexts by name: where they stand, how they are scaled, and what is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.bandits.service.worlds import linear

import credo
from credo.bandits.service.features import FeatureEncoder, Features


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
        ({"b": 1.0, "deep": {"c": 1.0}}, "got a dict for 'deep'"),
        ({"b": 1.0, "table": [[1.0]]}, "got a list for 'table'"),
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
