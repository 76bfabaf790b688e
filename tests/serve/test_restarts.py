"""Whatever is restarted goes on as it was, bit by bit."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.serve.conftest import LINEAR, Host, hosting, ready, row

from credo.serve import service as serving
from credo.serve.options import ServiceOptions
from credo.serve.service import Service
from credo.serve.table_model import CHUNK
from credo.serve.verifying import verify
from credo.sessions import Session

BANDIT = {"kind": "bandit", "arms": ["red", "blue"], "agent": "beta", "features": 0, "window": 20}


def digests(client: Host, folder: Path) -> dict[str, str]:
    hosts = client.service.hosts
    return {name: one.model.digest(folder / f"{name}.credo") for name, one in hosts.items() if one.model}


def test_models_are_saved_after_so_many_lines_or_seconds_whoever_learns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service: Any = Service(tmp_path, ServiceOptions(snapshot_rows=3, snapshot_seconds=60.0))
    now = 1000.0
    monkeypatch.setattr("credo.serve.service.time.monotonic", lambda: now)
    saved: list[Any] = []
    monkeypatch.setattr(service.snapshots, "take", saved.append)

    def model(unsaved: int, challenger: Any = None) -> Any:
        return SimpleNamespace(stage="ready", unsaved=unsaved, saved_at=now, challenger=challenger)

    few, many, idle, beside = model(2), model(3), model(0), model(3)
    service.hosts = {"few": few, "many": many, "idle": idle, "parent": model(0, beside)}
    service._after([])
    assert saved == [many, beside]  # the first look is at all
    saved.clear()
    now += serving.LOOK / 2
    service._after([few])
    assert saved == []
    many.unsaved = 2
    now += 100.0
    service._after([idle])
    assert saved == [few, many, beside] and few.saved_at == idle.saved_at == now
    few.stage = "failed"
    now += 100.0
    service._after([])
    assert saved[3:] == [many, beside]
    service.store.close()
    service.learner.store.close()


@pytest.mark.optimised
def test_a_restart_gives_the_state_back_bit_by_bit(tmp_path: Path) -> None:
    folder, often = tmp_path / "service", ServiceOptions(snapshot_rows=15)
    with hosting(folder, options=often) as client:
        client.put("/v1/models/linear", json=LINEAR)
        client.put("/v1/models/shop", json=BANDIT)
        inferred = {"target": "y", "first": 20, "options": {"model": "linear"}}
        assert client.put("/v1/models/inferred", json=inferred).json()["needs"] == 20
        ready(client)
        for number in range(40):
            for name in ("linear", "inferred") if number < 25 else ("linear",):
                answer = client.post(f"/v1/models/{name}/learn", json=row(number))
                assert answer.status_code in (200, 202), answer.text
            if number % 3 == 0:
                client.post("/v1/models/linear/predict", json={"id": f"p{number}", "x": row(number)["x"]})
                arm = client.post("/v1/models/shop/decide", json={"id": f"d{number}"}).json()["arm"]
                reward = {"id": f"d{number}", "value": float(arm == "red")}
                assert client.post("/v1/models/shop/reward", json=reward).json()["status"] == "learned"
        ready(client)
        client.post("/v1/models/linear/label", json={"id": "p3", "y": row(3)["y"]})
        first = client.post("/v1/models/linear/learn", json=row(5)).json()
        late = client.post("/v1/models/inferred/learn", json=row(3)).json()
        assert late["duplicate"] and late["learned"]  # it was acknowledged before there was a model
        before = digests(client, tmp_path)
        assert set(before) == {"linear", "shop", "inferred"}
        kept = [client.service.store.snapshots(number) for number in (1, 2, 3)]
        assert all(len(one) <= 2 for one in kept) and len(kept[0]) == 2
    # the newest snapshot of the linear model is torn
    newest = sorted((folder / "snapshots").glob("1-*.credo"), key=lambda path: int(path.stem.split("-")[1]))[
        -1
    ]
    newest.write_bytes(newest.read_bytes()[:-100])
    verdicts = verify(folder)
    assert all(one.same_state and not one.other_answers for one in verdicts) and len(verdicts) == 3
    with hosting(folder) as client:
        ready(client)
        assert digests(client, tmp_path) == before
        (note,) = client.get("/v1/models/linear").json()["notes"]
        assert newest.name in note and "passed over" in note
        assert client.post("/v1/models/linear/learn", json=row(5)).json() == first
        again = client.post("/v1/models/shop/reward", json={"id": "d0", "value": 0.5})
        assert again.status_code == 409  # another reward was learned
        assert client.delete("/v1/models/linear").status_code == 204
        assert client.get("/v1/models/linear").status_code == 404
        assert not list((folder / "snapshots").glob("1-*"))
    with hosting(folder) as client:
        ready(client)
        assert sorted(client.service.hosts) == ["inferred", "shop"]


def test_a_reward_after_the_window_is_refused_and_the_bandit_stays(tmp_path: Path) -> None:
    with hosting(tmp_path / "service") as client:
        client.put("/v1/models/shop", json={**BANDIT, "window": 2})
        status = client.get("/readyz").status_code  # 503 from the moment on at which it was taken
        assert status == 503 or client.get("/v1/models/shop").json()["stage"] == "ready"
        ready(client)
        for number in range(4):
            decision = client.post("/v1/models/shop/decide", json={"id": f"d{number}"}).json()
            assert decision["arm"] in ("red", "blue") and 0 < decision["propensity"] <= 1
        version = client.service.hosts["shop"].model.bandit.version
        over = client.post("/v1/models/shop/reward", json={"id": "d0", "value": 1.0})
        assert over.status_code == 410 and "'d0' is over" in over.json()["detail"]
        assert client.post("/v1/models/shop/reward", json={"id": "d9", "value": 1.0}).status_code == 404
        assert client.service.hosts["shop"].model.bandit.version == version
        first = client.post("/v1/models/shop/decide", json={"id": "d3"}).json()
        assert first["duplicate"]
        bad = client.post("/v1/models/shop/decide", json={"id": "d5", "arms": ["green"]})
        assert bad.status_code == 422 and "green" in bad.json()["detail"]


def test_a_model_that_cannot_be_built_says_why(tmp_path: Path) -> None:
    with hosting(tmp_path / "service") as client:
        client.put("/v1/models/m", json={"target": "y", "first": 10, "options": {"model": "linear"}})
        for number in range(10):
            client.post("/v1/models/m/learn", json={"id": f"{number}", "x": {"a": number}, "y": "same"})
        end = time.monotonic() + 60
        while (model := client.get("/v1/models/m").json())["stage"] != "failed":
            assert time.monotonic() < end
            time.sleep(0.02)
        assert "always 'same'" in model["reason"]
        assert client.get("/v1/models/m/ready").status_code == 503
        assert client.get("/readyz").status_code == 200


@pytest.mark.optimised
def test_answers_that_were_not_written_before_a_crash_are_given_again(tmp_path: Path) -> None:
    with hosting(tmp_path / "service") as client:
        client.put("/v1/models/linear", json=LINEAR)
        ready(client)
        for one in map(row, range(12)):
            client.post("/v1/models/linear/predict", json={"id": one["id"], "x": one["x"]})
            client.post("/v1/models/linear/label", json={"id": one["id"], "y": one["y"]})
    with contextlib.closing(sqlite3.connect(tmp_path / "service" / "journal.db")) as db:
        said = db.execute("SELECT seq, answer FROM events ORDER BY seq").fetchall()
        db.execute("UPDATE events SET answer = NULL")
        db.execute("DELETE FROM snapshots")
        db.commit()
    with hosting(tmp_path / "service") as client:
        ready(client)
    with contextlib.closing(sqlite3.connect(tmp_path / "service" / "journal.db")) as db:
        assert db.execute("SELECT seq, answer FROM events ORDER BY seq").fetchall() == said
    assert len(said) == 24 and all(answer for _, answer in said)


@pytest.mark.optimised
def test_a_saved_session_goes_on_in_the_service(tmp_path: Path) -> None:
    rows = [{**row(number)["x"], "y": row(number)["y"]} for number in range(60)]
    session = Session.from_rows(rows[:30], "y", model="linear", chunk=CHUNK)
    session.learn(rows[:30])
    saved = session.save(tmp_path / "saved.credo").read_bytes()
    octets = {"Content-Type": "application/octet-stream"}
    with hosting(tmp_path / "service") as client:
        assert client.put("/v1/models/on", content=saved, headers=octets).status_code == 202
        ready(client)
        assert client.put("/v1/models/on", content=saved, headers=octets).status_code == 200
        damaged = client.put("/v1/models/off", content=saved[:-9], headers=octets)
        assert damaged.status_code == 422 and "the body" in damaged.json()["detail"]
        for number in range(30, 60):
            client.post("/v1/models/on/learn", json=row(number))
        before = digests(client, tmp_path)
    session.learn(rows[30:])
    assert before == {"on": hashlib.sha256(session.save(tmp_path / "all.credo").read_bytes()).hexdigest()}
    (verdict,) = verify(tmp_path / "service")
    assert verdict.same_state and verdict.lines == 30
    with hosting(tmp_path / "service") as client:
        ready(client)
        assert digests(client, tmp_path) == before
        assert client.delete("/v1/models/on").status_code == 204
    assert not list((tmp_path / "service" / "snapshots").iterdir())


@pytest.mark.optimised
def test_a_challenger_learns_every_row_and_takes_the_place(tmp_path: Path) -> None:
    """Rows come before, between and after; forecasts and labels lie in one group of a replay."""
    rival = {**LINEAR, "options": {"model": "linear", "prior_var": 0.01}}
    model = "/v1/models/linear"
    with hosting(tmp_path / "service", options=ServiceOptions(snapshot_rows=20)) as client:
        client.put(model, json=LINEAR)
        ready(client)

        def rows(numbers: range) -> list[object]:
            forecasts = []
            for one in map(row, numbers):
                kept = client.post(f"{model}/predict", json={"id": one["id"], "x": one["x"]}).json()
                label = client.post(f"{model}/label", json={"id": one["id"], "y": one["y"]}).json()
                assert label["forecast"] == kept["forecast"]
                forecasts.append(kept["forecast"])
            return forecasts

        rows(range(15))
        assert client.post(f"{model}/promote").status_code == 404
        assert client.put(f"{model}/challenger", json={**rival, "target": "z"}).status_code == 422
        assert client.put(f"{model}/challenger", json=rival).status_code == 202
        ready(client)
        assert client.put(f"{model}/challenger", json=rival).status_code == 200
        between = rows(range(15, 30))
        seen = client.get(model).json()
        assert seen["state"]["rows"] == seen["challenger"]["state"]["rows"] == 30
        theirs = seen["challenger"]["state"]
        assert seen["state"]["metrics"] != theirs["metrics"]
        assert client.post(f"{model}/promote").status_code == 200
        seen = client.get(model).json()
        assert seen["state"] == theirs and "challenger" not in seen
        assert seen["spec"]["options"]["prior_var"] == 0.01
        rows(range(30, 45))
        again = client.post(f"{model}/predict", json={"id": row(20)["id"], "x": row(20)["x"]}).json()
        assert again["forecast"] == between[5]
        before = digests(client, tmp_path)
    # a promoted model is the one that had learned all rows alone; answers of the earlier one stay
    (verdict,) = verify(tmp_path / "service")
    assert verdict.same_state and not verdict.other_answers and verdict.lines == 90
    with hosting(tmp_path / "service") as client:
        ready(client)
        assert digests(client, tmp_path) == before
    with hosting(tmp_path / "alone") as client:
        client.put(model, json=rival)
        ready(client)
        for number in range(45):
            client.post(f"{model}/learn", json=row(number))
        assert digests(client, tmp_path) == before
