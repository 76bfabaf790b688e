"""What bandits take in the library, they take through the service: contexts, parts, choices, arms."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serve.conftest import Host, hosting, ready

from credo import bandits
from credo.core.errors import DataError
from credo.serve.hosting import BanditModel
from credo.serve.journal_log import log_lines
from credo.serve.specs import BanditSpec
from credo.serve.verifying import verify

MENU: dict[str, Any] = {"latte": {"roast": "dark", "price": 3.0}, "tea": {"item": {"price": 2.0}}}
CONTEXT = {"sky": {"cold": True}, "tags": ["new", "mobile"]}
SHOP: dict[str, Any] = {"kind": "bandit", "arms": ["red", "blue"], "agent": "linear", "features": 6}
BROUGHT: dict[str, Any] = {
    "kind": "bandit",
    "agent": "linear",
    "brought": 4,
    "features": 4,
    "arm_features": 8,
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bandits")


@pytest.fixture(scope="module")
def shops(place: Path) -> Iterator[Host]:
    with hosting(place / "service") as client:
        assert client.put("/v1/models/shop", json=SHOP).status_code == 202
        assert client.put("/v1/models/brought", json=BROUGHT).status_code == 202
        ready(client)
        yield client
    # all that the tests did is replayed from its lines, in groups of another size, bit by bit
    verdicts = verify(place / "service")
    assert len(verdicts) == 2 and all(one.same_state and not one.other_answers for one in verdicts)


@pytest.fixture
def digest(shops: Host, place: Path) -> Callable[[str], str]:
    """The digest of the state of a bandit."""
    return lambda name: str(shops.service.hosts[name].model.digest(place / "digest.credo"))


def post(client: Host, path: str, content: dict[str, Any], status: int = 200) -> dict[str, Any]:
    answer = client.post(f"/v1/models/{path}", json=content)
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.slow
def test_nested_contexts_tags_and_parts_of_rewards(shops: Host) -> None:
    decision = post(shops, "shop/decide", {"id": "d1", "context": CONTEXT})
    assert post(shops, "shop/decide", {"id": "d1", "context": CONTEXT})["arm"] == decision["arm"]
    part = {"id": "d1", "value": 0.25, "part": "purchase-1"}
    assert post(shops, "shop/reward", part)["status"] == "added"
    assert post(shops, "shop/reward", part)["duplicate"]
    post(shops, "shop/reward", {**part, "value": 0.5}, 409)
    assert post(shops, "shop/reward", {**part, "part": "purchase-2"})["status"] == "added"
    assert post(shops, "shop/reward", {"id": "d1", "value": 0.5})["status"] == "learned"
    names = [name for name in shops.service.hosts["shop"].model.bandit.features if name]
    assert any("sky.cold" in name for name in names) and any("tags" in name for name in names)


def test_a_choice_that_was_made_elsewhere_is_learned_once(shops: Host) -> None:
    bandit: bandits.Bandit = shops.service.hosts["shop"].model.bandit
    before = bandit.version
    seen = {"id": "o1", "context": CONTEXT, "arm": "blue", "reward": 1.0, "propensity": 0.5}
    assert post(shops, "shop/observe", seen)["status"] == "learned" and bandit.version == before + 1
    assert post(shops, "shop/observe", seen)["duplicate"] and bandit.version == before + 1
    later = {"id": "o2", "context": CONTEXT, "arm": "red", "propensity": {"red": 0.5, "blue": 0.5}}
    post(shops, "shop/observe", later)
    assert post(shops, "shop/reward", {"id": "o2", "value": 0.0})["status"] == "learned"


def test_a_slate_is_decided_and_rewarded_by_its_places(shops: Host) -> None:
    ask = {"id": "list-1", "context": CONTEXT, "size": 2}
    slate = post(shops, "shop/decide", ask)
    first, second = slate["places"]
    assert slate["arms"] == [first["arm"], second["arm"]] and set(slate["arms"]) == {"red", "blue"}
    assert slate["propensity"] == first["propensity"] * second["propensity"] and second["propensity"] == 1.0
    assert post(shops, "shop/decide", ask) == slate | {"duplicate": True}
    post(shops, "shop/decide", {"id": "list-1", "context": CONTEXT}, 409)
    reward = {"id": "list-1", "values": [0, 1], "seen": [1, 0.5]}
    assert post(shops, "shop/reward", reward)["statuses"] == ["learned", "learned"]
    assert post(shops, "shop/reward", reward)["duplicate"]
    bandit: bandits.Bandit = shops.service.hosts["shop"].model.bandit
    window = bandit._engine.window
    values = [window.get(name).reward for name in ("list-1", "list-1#2")]  # type: ignore[union-attr]
    assert values == [0.0, 2.0]  # 1 / 0.5
    post(shops, "shop/decide", {"id": "list-2", "context": CONTEXT, "size": 2})
    assert post(shops, "shop/reward", {"id": "list-2", "values": [1, 0]})["statuses"] == ["learned", None]


def test_decisions_bring_their_arms(shops: Host) -> None:
    decision = post(shops, "brought/decide", {"id": "d1", "context": CONTEXT, "arms": MENU})
    assert decision["arm"] in MENU and set(decision["pmf"]) <= set(MENU)
    assert post(shops, "brought/reward", {"id": "d1", "value": 1.0})["status"] == "learned"
    other = {"soup": {"price": 1.0}, "cake": {"price": 4.0}, "pie": {}}
    assert post(shops, "brought/decide", {"id": "d2", "arms": other, "context": {}})["arm"] in other
    alone = BanditModel.start(BanditSpec(agent="linear", brought=4, features=4, arm_features=8)).bandit
    assert alone.decide(CONTEXT, MENU, id="d1").pmf[decision["arm"]] == decision["propensity"]


def test_policies_are_evaluated_on_the_journal(shops: Host, place: Path) -> None:
    single = post(shops, "shop/decide", {"id": "log-1", "context": CONTEXT})
    post(shops, "shop/reward", {"id": "log-1", "value": 0.25, "part": "a"})
    post(shops, "shop/reward", {"id": "log-1", "value": 0.25})
    slate = post(shops, "shop/decide", {"id": "log-2", "context": CONTEXT, "size": 2})
    post(shops, "shop/reward", {"id": "log-2", "values": [0, 1], "seen": [1, 0.5]})
    odds = {"red": 0.75, "blue": 0.25}
    post(shops, "shop/observe", {"id": "log-3", "context": {}, "arm": "red", "reward": 1, "propensity": odds})
    post(shops, "shop/decide", {"id": "log-4", "context": CONTEXT, "arms": ["green"]}, 422)
    post(shops, "shop/decide", {"id": "log-5", "context": CONTEXT, "size": 2})
    post(shops, "shop/reward", {"id": "log-5", "values": [1, 0]})  # whose lower place nobody saw
    lines = [line for line in log_lines(place / "service", "shop") if line["id"].startswith("log-")]
    log = bandits.Log.read(lines, format="credo")
    first, second = slate["places"]
    assert np.asarray(log.rewards)[:4].tolist() == [0.5, 0.0, 2.0, 1.0]
    said = [single["propensity"], first["propensity"], second["propensity"], 0.75]
    np.testing.assert_allclose(np.asarray(log.propensities)[:4], said, rtol=1e-6)
    assert [log.arms[arm] for arm in np.asarray(log.chosen)[:3].tolist()] == [single["arm"], *slate["arms"]]
    assert len(log) == 6 and np.isnan(np.asarray(log.rewards)[5])
    assert np.asarray(log.allowed)[2].sum() == 1  # the arm that the first place had left
    brought = list(log_lines(place / "service", "brought"))
    assert all(line["features"] for line in brought if line["kind"] == "decision")
    with pytest.raises(DataError, match="has no model 'shops'"):
        list(log_lines(place / "service", "shops"))


DEEP: Any = {}
for _ in range(9):
    DEEP = {"in": DEEP}
CASES: dict[str, tuple[str, dict[str, Any], int, str]] = {
    "number": (
        "shop/reward",
        {"id": "d1", "value": "high"},
        422,
        "value must be a finite number; got 'high'.",
    ),
    "infinite": ("shop/reward", {"id": "d1", "value": 10**400}, 422, "value must be a finite number"),
    "part": ("shop/reward", {"id": "d1", "value": 1, "part": ""}, 422, "part must be a text of 1 to 200"),
    "decision": ("shop/reward", {"id": "none", "value": 1}, 404, "id must be that of a decision"),
    "deep": ("shop/decide", {"id": "n", "context": DEEP}, 422, "context.in.in.in"),
    "list": ("shop/decide", {"id": "n", "context": {"tags": [[1]]}}, 422, "context.tags.0 must be a number"),
    "arm": ("shop/decide", {"id": "n1", "arms": ["green"]}, 422, "arm"),
    "arms": ("shop/decide", {"id": "n", "arms": "red"}, 422, "arms must be a list of names, an object"),
    "many": (
        "brought/decide",
        {"id": "n2", "context": {}, "arms": {f"{k}": {} for k in range(9)}},
        422,
        "arms",
    ),
    "chance": ("shop/observe", {"id": "n3", "arm": "red", "propensity": 2.0}, 422, "propensity"),
    "chosen": ("shop/observe", {"id": "n4", "arm": "green", "reward": 1.0}, 422, "arm"),
    "size": ("shop/decide", {"id": "n6", "size": 0}, 422, "size must be a whole number in 1..1000"),
    "places": ("shop/decide", {"id": "n7", "size": 3}, 422, "size must be at most the number of arms"),
    "beside": ("shop/reward", {"id": "d1", "value": 1, "values": [1]}, 422, "value must be left out beside"),
    "seen": ("shop/reward", {"id": "d1", "value": 1, "seen": "all"}, 422, "seen must be left out without"),
    "half": (
        "shop/reward",
        {"id": "d1", "values": [1], "seen": "half"},
        422,
        "seen must be 'cascade', 'all'",
    ),
    "none": ("shop/reward", {"id": "d1", "values": []}, 422, "values must be a list of 1 to 1,000 numbers"),
    "nothing": ("shop/observe", {"id": "n5"}, 422, "arm is missing."),
}


@pytest.mark.parametrize("case", CASES)
def test_what_cannot_be_is_refused_and_changes_no_bandit(
    shops: Host, digest: Callable[[str], str], case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, content, status, sentence = CASES[case]
    name = path.partition("/")[0]
    latest = shops.service.hosts[name].model.latest  # the time of the latest line is part of the state
    monkeypatch.setattr(shops.service.store, "now", lambda: latest)
    other = {**content, "id": content["id"] + "0"}  # whose line may be the first, which sets the time
    shops.post(f"/v1/models/{path}", content=json.dumps(other))
    before = digest(name)
    answer = shops.post(f"/v1/models/{path}", content=json.dumps(content))
    assert answer.status_code == status and answer.json()["detail"].startswith(sentence), answer.text
    assert digest(name) == before


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"arms": ["a", "b"]}, "arms must be left out if decisions bring theirs"),
        ({"brought": 1}, "brought must be"),
        ({"features": 0}, "features must be at least 2"),
        ({"agent": "beta"}, "agent must not be beta"),
    ],
)
def test_bandits_that_cannot_be_are_refused(shops: Host, change: dict[str, Any], sentence: str) -> None:
    answer = shops.put("/v1/models/other", json={**BROUGHT, **change})
    assert answer.status_code == 422 and answer.json()["detail"].startswith(sentence)
