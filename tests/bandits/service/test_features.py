"""Contexts by name: where they stand, how they are scaled, and what is missing."""

from __future__ import annotations

import datetime as dt
import json
import pathlib
from typing import Any

import numpy as np
import pytest
from tests.bandits.service.worlds import LINEAR, linear

import credo
from credo import bandits
from credo.bandits.logs.contexts import features_of
from credo.bandits.service.features import Features
from credo.bandits.service.inputs import FeatureEncoder

CYCLES = ("hour", "weekday")
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


def test_a_time_is_a_standardised_number_and_where_its_hour_and_weekday_stand() -> None:
    encoder = FeatureEncoder(Features(slots=8))
    noon = dt.datetime(2026, 11, 29, 12)  # a Sunday, on which six sevenths of the week are over
    hours = [0.0, 1.0, 5.0, 6.0]
    rows = [encoder.encode({"at": noon + dt.timedelta(hours=hour)}) for hour in hours]
    assert encoder.names[1:] == ("at", *(f"at: {wave}({one})" for one in CYCLES for wave in ("sin", "cos")))
    mean, sd = np.mean(hours[:3]), np.std(hours[:3], ddof=1)
    np.testing.assert_allclose(rows[3][1], (hours[3] - mean) / sd, rtol=1e-10)
    angle = 2 * np.pi * 18.0 / 24.0
    week = 2 * np.pi * (6.0 + 0.75) / 7.0
    cycles = [np.sin(angle), np.cos(angle), np.sin(week), np.cos(week)]
    np.testing.assert_allclose(rows[3][2:6], cycles, atol=1e-10)
    assert encoder.seen[0].kind == "time" and encoder.seen[0].numbers == 4


@pytest.mark.parametrize(
    "same",
    ["2026-11-29", dt.date(2026, 11, 29), np.datetime64("2026-11-29"), dt.datetime(2026, 11, 29)],
)
def test_a_time_is_the_same_in_every_spelling_also_in_the_log(same: Any, tmp_path: pathlib.Path) -> None:
    text = "2026-11-29T00:00:00" if isinstance(same, dt.datetime) else "2026-11-29"
    contexts = [{"at": dt.datetime(2026, 11, 28, 5)}, {"at": same}]
    vectors = FeatureEncoder(Features(slots=8)).encode_rows(contexts)
    plain = [{"at": "2026-11-28T05:00"}, {"at": "2026-11-29T00:00"}]
    assert np.array_equal(vectors, FeatureEncoder(Features(slots=8)).encode_rows(plain))
    log = tmp_path / "log.jsonl"
    bandit = bandits.Bandit(LINEAR, ["red", "blue"], features=8, log=log)
    saved = bandit.save(tmp_path / "bandit.credo")
    chosen = bandit.decide({"at": same}, id="one")
    assert bandit.decide({"at": text}, id="one").arm == chosen.arm
    bandit.reward("one", 1.0)
    bandit.close()
    again = bandits.Bandit.load(saved, log=log)
    assert again.schema == bandit.schema
    assert again.decide({"at": "2026-11-30"}).mean == bandit.decide({"at": "2026-11-30"}).mean


def test_a_text_of_several_words_is_the_sum_of_its_words() -> None:
    encoder = FeatureEncoder(Features(slots=20))
    one, other, both = (
        encoder.encode({"q": text})[1:17]
        for text in ("boil the rice", "fry some onions", "boil the rice fry some onions")
    )
    np.testing.assert_allclose(both * np.sqrt(6), (one + other) * np.sqrt(3), atol=1e-12)
    assert encoder.seen[0].kind == "words" and encoder.free == 3
    for same in ("boil", 3.0, ["boil"], True):  # what a name holds stays
        assert np.count_nonzero(encoder.encode({"q": same})[1:17]) == 1
    assert np.count_nonzero(encoder.encode({"city": "New York"})[17:19]) == 1  # two words are a value


def test_times_and_texts_without_places_share_those_of_others() -> None:
    encoder = FeatureEncoder(Features(slots=6, spare=3))
    encoder.encode({"a": 1.0, "b": 2.0})
    rows = [encoder.encode({"at": f"2026-11-{day:02}", "q": "a long text"}) for day in (1, 2, 9)]
    assert encoder.names == ("missing", "a", "b")
    assert all(np.isfinite(row).all() and row[3:].any() for row in rows)


def test_where_numbers_are_not_standardised_a_time_is_in_years_from_the_first() -> None:
    encoder = FeatureEncoder(Features(slots=8, standardise=False))
    days = ("2026-01-01", "2026-01-01", "2027-01-01")
    years = [float(encoder.encode({"at": day})[1]) for day in days]
    np.testing.assert_allclose(years, [0.0, 0.0, 365 / 365.2425], rtol=1e-12)


@pytest.mark.parametrize("wrong", ["soon", 3.0, 3, True, ["2026-11-29"]])
def test_a_name_that_holds_times_refuses_all_else(wrong: Any) -> None:
    encoder = FeatureEncoder(Features(slots=8))
    encoder.encode({"at": "2026-11-29T10:00"})
    before = encoder.to_dict()
    with pytest.raises(credo.CredoError, match="must have a time for 'at', as before"):
        encoder.encode({"at": wrong})
    assert encoder.to_dict() == before


def test_times_and_words_are_saved_bit_by_bit() -> None:
    encoder = FeatureEncoder(Features(slots=30))
    rows = [{"at": f"2026-11-{day:02}T10:{day}", "q": f"text number {day}"} for day in range(10, 20)]
    encoder.encode_rows(rows[:6])
    other = encoder.copy()
    assert np.array_equal(encoder.encode_rows(rows[6:]), other.encode_rows(rows[6:]))
    saved: Any = encoder.to_dict()
    saved["known"]["at"][2] = float("nan")
    with pytest.raises(credo.FormatError, match="first time of a saved context must be finite"):
        FeatureEncoder.restore(saved)


def test_a_bandit_learns_by_the_hour_of_a_time() -> None:
    bandit = bandits.Bandit(LINEAR, ["red", "blue"], features=8, seed=1)
    rng = np.random.default_rng(0)
    right = []
    for day in range(150):
        hour = float(rng.uniform(0, 24))
        decision = bandit.decide({"at": dt.datetime(2026, 1, 1) + dt.timedelta(days=day, hours=hour)})
        right.append((decision.arm == "red") == (hour < 12))
        bandit.reward(decision.id, float(right[-1]))
    assert np.mean(right[-50:]) > 0.8


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
