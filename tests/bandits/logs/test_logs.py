"""Logs: formats go out and come back, rewards find their decisions, and bad input gets a sentence."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from credo.bandits import Log
from credo.bandits.evaluation import evaluate_slates
from credo.bandits.logs import LogFormat, ReadCounts
from credo.core.errors import CredoError, DataError

CONTEXTS: dict[str, Any] = {
    "none": None,
    "numbers": np.array([[1.0, 2.5], [3.0, np.nan], [0.0, 1e-12]]),
    "of each arm": np.arange(18.0).reshape(3, 3, 2),
    "columns": {
        "age": np.array([31.0, np.nan, 7.0]),
        "device": np.array(["phone", None, "Büro"], dtype=object),
        "user": {"member": np.array([True, False, True])},
        "actions": {"price": np.arange(9.0).reshape(3, 3)},
    },
}


def _log(contexts: Any) -> Log:
    pmfs = np.array([[0.25, 0.75, 0.0], [0.1, 0.2, 0.7], [1 / 3, 1 / 3, 1 / 3]])
    return Log(
        arms=("red", "blue", "green, or not"),
        chosen=np.array([1, 2, 0]),
        rewards=np.array([1.5, np.nan, -2.0]),
        propensities=np.array([0.75, 0.7, 1 / 3]),
        contexts=contexts,
        pmfs=pmfs,
        allowed=pmfs > 0,
        times=np.array([1.0, 2.5, 1e9]),
        ids=np.array(["x", "y", "z"]),
    )


def _same(one: Log, other: Log) -> None:
    assert one.arms == other.arms
    for name in ("chosen", "rewards", "propensities", "pmfs", "allowed", "times", "ids"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert str(jax.tree.structure(one.contexts)) == str(jax.tree.structure(other.contexts))
    for left, right in zip(jax.tree.leaves(one.contexts), jax.tree.leaves(other.contexts), strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("kind", CONTEXTS)
def test_our_lines_come_back_as_they_were(kind: str, tmp_path: Path) -> None:
    log = _log(CONTEXTS[kind])
    log.write(tmp_path / "log.jsonl")
    _same(Log.read(tmp_path / "log.jsonl"), log)
    lines = (tmp_path / "log.jsonl").read_text(encoding="utf-8").splitlines()
    _same(Log.read(lines), log)
    _same(Log.read(io.StringIO("\n".join(lines))), log)


def test_dsjson_comes_back_as_it_was(tmp_path: Path) -> None:
    log = _log({key: value for key, value in CONTEXTS["columns"].items() if key != "actions"})
    log.write(tmp_path / "log.json", format="dsjson")
    back = Log.read(tmp_path / "log.json")
    assert back.counts is not None and back.counts.missing == 1
    _same(back, log)
    log = _log(CONTEXTS["of each arm"])
    log.write(tmp_path / "log.json", format="dsjson")
    back = Log.read(tmp_path / "log.json")
    np.testing.assert_array_equal(back.contexts["actions"]["x"][1:], CONTEXTS["of each arm"][1:])
    assert np.isnan(back.contexts["actions"]["x"][0, 2]).all()  # of an arm that was not allowed


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(-1e9, 1e9), st.floats(1e-9, 1.0)), min_size=1))
def test_numbers_come_back_bit_by_bit(rows: list[tuple[int, float, float]]) -> None:
    from credo.bandits.logs.json_lines import json_line
    from credo.bandits.logs.log import line_of

    chosen, rewards, propensities = map(np.array, zip(*rows, strict=True))
    log = Log(("a", "b", "c"), chosen, rewards, propensities)
    back = Log.read([json_line(line_of(log, row)).decode() for row in range(len(log))])
    np.testing.assert_array_equal(back.rewards, rewards)
    np.testing.assert_array_equal(back.propensities, propensities)


def test_dsjson_of_slots_has_a_decision_for_each() -> None:
    line = {
        "Timestamp": "2020-01-01T00:00:00Z",
        "EventId": "e",
        "c": {
            "user": {"age": 3},
            "_multi": [{"item": {"price": 1}}, {"item": {"price": 2}}, {"item": {"price": 3}}],
            "_slots": [{"slot": {"size": 2.0}}, {"slot": {"size": 1.0}}],
        },
        "_outcomes": [
            {"_label_cost": -1, "_id": "x", "_a": [1, 0, 2], "_p": [0.5, 0.25, 0.25], "_o": []},
            {"_id": "y", "_a": [2, 0], "_p": [0.75, 0.25], "_o": [{"v": 0.5}]},
        ],
    }
    log = Log.read([line])
    assert np.asarray(log.ids).tolist() == ["e", "e#2"] and log.arms == ("1", "2", "3")
    assert np.asarray(log.chosen).tolist() == [1, 2] and np.asarray(log.rewards).tolist() == [1.0, 0.5]
    assert np.asarray(log.propensities).tolist() == [0.5, 0.75]
    assert np.asarray(log.allowed).tolist() == [[True, True, True], [True, False, True]]
    assert np.asarray(log.pmfs).tolist() == [[0.25, 0.5, 0.25], [0.25, 0.0, 0.75]]
    assert np.asarray(log.contexts["slot"]["size"]).tolist() == [2.0, 1.0]
    assert np.asarray(log.contexts["user"]["age"]).tolist() == [3, 3]
    broken = {**line, "_outcomes": [{"_a": [0], "_p": []}]}
    assert Log.read([line, broken]).counts == ReadCounts(decisions=2, rewards=2, broken=1)
    found = evaluate_slates(Log.read([line, {**line, "EventId": "f"}]), ["2", "3"])
    assert found.rows == 2  # slates


def test_dsjson_of_a_decision_service() -> None:
    action = [
        {"_tag": name, "j": [{"roast": roast}]} for name, roast in (("Latte", "dark"), ("Mocha", "light"))
    ]
    line = {
        "_label_cost": -0.0,
        "_label_probability": 0.95,
        "_label_Action": 2,
        "_labelIndex": 1,
        "o": [{"v": 0.0, "EventId": "13118d", "ActionTaken": False}],
        "Timestamp": "2021-02-04T16:31:29.2460000Z",
        "Version": "1",
        "EventId": "13118d",
        "a": [2, 1],
        "c": {"FromUrl": [{"weather": "Sunny", "_hidden": 1}], "_multi": action},
        "p": [0.95, 0.05],
        "VWState": {"m": "x"},
    }
    log = Log.read([json.dumps(line)])
    assert (log.arms, log.chosen.tolist(), log.rewards.tolist()) == (("Latte", "Mocha"), [1], [0.0])
    assert log.pmfs is not None and log.pmfs.tolist() == [[0.05, 0.95]]
    assert log.contexts["FromUrl"]["weather"].tolist() == ["Sunny"]
    assert log.contexts["actions"]["j"]["roast"].tolist() == [["dark", "light"]]
    assert log.times is not None and log.times.tolist() == [1612456289.246]
    from_zero = Log.read([line | {"a": [1, 0], "_label_cost": None, "o": [{"v": 2}]}])
    assert from_zero.pmfs is not None and from_zero.pmfs.tolist() == [[0.05, 0.95]]
    assert from_zero.rewards.tolist() == [2.0]
    alone = Log.read([line | {"_skipLearn": True}, {"EventId": "13118d", "RewardValue": 3.0}])
    assert alone.rewards.tolist() == [3.0]


def _decision(id: str, **more: Any) -> dict[str, Any]:
    return {"kind": "decision", "id": id, "arms": ["a", "b"], "arm": "a", "propensity": 0.5, "time": 0} | more


def _reward(id: str, value: float, time: float = 1.0) -> dict[str, Any]:
    return {"kind": "reward", "id": id, "value": value, "time": time}


def test_rewards_find_their_decisions_and_the_rest_is_counted() -> None:
    log = Log.read(
        [
            _reward("2", 5.0),  # before its decision
            _decision("1"),
            _decision("2"),
            _decision("2", arm="b"),  # again
            _decision("3", reward=1.0),
            _decision("4"),
            _reward("1", 7.0),
            _reward("1", 8.0),  # again
            _reward("3", 9.0),  # again
            _reward("4", 1.0, time=61.0),  # late
            _reward("9", 1.0),  # unknown
            "{broken",
            {"kind": "reward"},
        ],
        window=60.0,
    )
    np.testing.assert_array_equal(log.rewards, [7.0, 5.0, 1.0, np.nan])
    assert log.counts == (4, 3, 1, 3, 1, 1, 2, 0)
    assert log.counts is not None
    assert log.counts.sentences()[1] == "1 reward has no decision (left out)"


def test_arms_that_come_and_go() -> None:
    lines = [_decision("1"), _decision("2", arms=["b", "c"], arm="c", pmf={"b": 0.5, "c": 0.5})]
    log = Log.read(lines)
    assert log.arms == ("a", "b", "c")
    assert log.allowed.tolist() == [[True, True, False], [False, True, True]]
    assert log.pmfs is None  # one row does not say


def test_contexts_may_be_dicts_or_a_frame() -> None:
    pd = pytest.importorskip("pandas")
    rows = [{"age": 31.0, "device": "phone"}, {"age": 40.0, "device": "desk"}]
    for contexts in (rows, pd.DataFrame(rows)):
        log = Log(("a", "b"), np.array([0, 1]), np.ones(2), np.full(2, 0.5), contexts)
        assert log.contexts["age"].tolist() == [31.0, 40.0]
        assert log.take([1]).contexts["device"].tolist() == ["desk"]


OPEN_BANDIT = """,timestamp,item_id,position,click,propensity_score,user_feature_0,\
user-item_affinity_0,user-item_affinity_1,user-item_affinity_2
0,2019-11-24,1,3,0,0.25,81ce,0.0,2.0,0.0
1,2019-11-25,0,1,1,0.5,03a5,1.0,0.0,0.0
"""


def test_the_open_bandit_data_set(tmp_path: Path) -> None:
    folder = tmp_path / "men"
    folder.mkdir()
    (folder / "men.csv").write_text(OPEN_BANDIT)
    (folder / "item_context.csv").write_text("item_id,item_feature_0\n0,1.5\n1,2.5\n2,0.5\n")
    for source in (folder, folder / "men.csv"):
        log = Log.read(source)
        assert (log.arms, log.chosen.tolist()) == (("0", "1", "2"), [1, 0])
        assert log.propensities.tolist() == [0.25, 0.5]
        assert log.rewards.tolist() == [0.0, 1.0]
        assert log.contexts["user_feature_0"].tolist() == ["81ce", "03a5"]
        assert log.contexts["actions"]["user-item_affinity"].tolist() == [[0.0, 2.0, 0.0], [1.0, 0.0, 0.0]]
    assert len(Log.read(io.StringIO(OPEN_BANDIT)).arms) == 2  # as far as it knows
    with pytest.raises(DataError, match="has no propensity"):
        Log.read(io.StringIO("item_id,position,click\n1,2,0\n"))
    with pytest.raises(DataError, match="position, click is missing"):
        Log.read(io.StringIO("item_id,propensity_score\n1,0.5\n"))


VW = {"_label_cost": 1, "_label_probability": 0.5, "_labelIndex": 0, "a": [1, 2], "EventId": "1"}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([_decision("1", propensity=None)], "line 1 of the log has no propensity, .* cannot be found out"),
        (
            [_decision("1"), _decision("2", propensity=0.0)],
            "line 2 of the log must have a propensity above 0",
        ),
        ([{"arm": "a", "reward": 1.0}], "line 1 of the log is no line of a log: .* its keys are arm, reward"),
        ([_reward("1", 1.0)], "must hold one or more decisions; it has none"),
        (["{broken"], "it has none; the first line that could not be read is line 1 of the log"),
        ([_decision("1", context=[1.0]), _decision("2", context=[1.0, 2.0])], "must have one length"),
        ([_decision("1", pmf={"a": 0.5, "b": 0.6})], "pmfs must be probabilities that sum to 1"),
        ([_decision("1", pmf={"a": 0.4, "b": 0.6})], "must be the entries of the chosen arms in pmfs"),
        ([_decision("1", arm="c")], "row 0 chose 'c', which was not"),
        ([VW, VW | {"EventId": "2", "pdrop": 0.5}], "thinned at one rate .* 2 rates from 0 to 0.5"),
    ],
)
def test_lines_that_are_no_log_get_a_sentence(lines: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Log.read(lines)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"propensities": None}, "the log has no propensity, .* record `Choice.propensity`"),
        ({"propensities": [0.5, np.nan]}, "row 1 of the log has no propensity"),
        ({"propensities": [0.5, 1.5]}, "propensities must be above 0 and at most 1; row 1 has 1.5"),
        ({"chosen": [0, 2]}, r"chosen must be in 0..1; row 1 has 2"),
        ({"chosen": ["a", "c"]}, "chosen must be one of the arms a, b; row 1 has 'c'"),
        ({"chosen": []}, "chosen must hold the number of one arm"),
        ({"rewards": [1.0]}, r"rewards must have the shape \(2,\)"),
        ({"rewards": ["x", "y"]}, "rewards must be an array of numbers"),
        ({"rewards": [1.0, np.inf]}, "rewards must be finite, or NaN"),
        ({"arms": ("a", "a")}, "arms must have different names"),
        ({"arms": "ab"}, "arms must be the names of one or more arms"),
        ({"allowed": [[True, True], [True, False]]}, "row 1 chose 'b', which was not"),
        ({"contexts": np.ones(3)}, "contexts must have 2 rows"),
    ],
)
def test_arrays_that_are_no_log_get_a_sentence(change: dict[str, Any], message: str) -> None:
    good = {"arms": ("a", "b"), "chosen": [0, 1], "rewards": [1.0, 0.0], "propensities": [0.5, 0.5]}
    with pytest.raises(DataError, match=message):
        Log(**{**good, **change})


def test_sources_that_cannot_be_read_get_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        Log.read(tmp_path / "nowhere.jsonl")
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(DataError, match="is empty"):
        Log.read(tmp_path / "empty.jsonl")
    with pytest.raises(DataError, match="must be the folder of one campaign"):
        Log.read(tmp_path)
    for odd in (5, b"{}", [5]):
        with pytest.raises(DataError, match=r"must be (a path|text)"):
            Log.read(odd)  # type: ignore[arg-type]
    wrong: Any = "csv"
    with pytest.raises(CredoError, match="format must be one of credo, dsjson, open-bandit; got 'csv'"):
        Log.read([], format=wrong)
    no_csv: LogFormat = "open-bandit"
    with pytest.raises(CredoError, match="format must be credo or dsjson to write a log"):
        _log(None).write(tmp_path / "x", format=no_csv)
