"""What the service answers is what a session over the rows of its journal says."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from tests.serve.conftest import LINEAR, Host, hosting, ready, row

from credo.serve.specs import TableSpec
from credo.serve.table_model import CHUNK
from credo.sessions import Options, Session, TableEncoding

LEARN = "/v1/models/linear/learn"


def session_of(host: Host) -> tuple[Session, list[Any]]:
    """A session that has learned the rows of the journal one by one, and what it said of each."""
    service = host.service
    hosted = service.hosts["linear"]
    spec: TableSpec = hosted.spec
    schema = spec.schema()
    assert schema is not None
    session = Session.create(TableEncoding(schema), Options(model="linear"), chunk=CHUNK)
    forecasts = []
    for events in service.learner.store.events(hosted.number, 0, service.learner.store.last(), 7):
        for event in events:
            if event.kind != "predict":
                x, weight = (event.row or event.content).x, event.content.weight
                (forecast,), _ = session.forecast_then_learn(
                    [{**x, "y": event.content.y}], weights=None if weight is None else [weight]
                )
                forecasts.append((event.seq, forecast))
    return session, forecasts


def test_answers_are_the_forecasts_before_learning_with_their_scores(host: Host) -> None:
    answers = {}
    for number in range(40, 60):
        heavy = {"weight": 2.5} if number % 5 == 0 else {}
        answer = host.post(LEARN, json={**row(number), **heavy}).json()
        answers[answer["seq"]] = answer
    session, forecasts = session_of(host)
    said = {seq: forecast for seq, forecast in forecasts}
    for seq, answer in answers.items():
        assert answer["forecast"] == {"mean": said[seq].mean[0], "sd": said[seq].sd[0]}
        assert answer["nlpd"] == said[seq].nlpd[0] and answer["learned"]
    model = host.service.hosts["linear"].model
    for ours, theirs in zip(
        jax.tree.leaves(model.session.belief), jax.tree.leaves(session.belief), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_a_repeat_gets_the_first_answer_and_other_content_is_refused(host: Host) -> None:
    first = host.post(LEARN, json=row(100)).json()
    again = host.post(LEARN, json=row(100))
    assert again.status_code == 200 and again.json() == {**first, "duplicate": True}
    other = host.post(LEARN, json={**row(100), "y": 0.0})
    assert other.status_code == 409 and "0-100" not in other.json()["field"]
    assert other.json()["detail"] == "id must be a new one for another row; '0-100' has come with another."


def test_a_label_scores_the_answer_that_was_given(host: Host) -> None:
    x, y = row(200)["x"], row(200)["y"]
    free = host.post("/v1/models/linear/predict", json={"x": x}).json()
    kept = host.post("/v1/models/linear/predict", json={"x": x, "id": "late"}).json()
    assert kept["forecast"] == free["forecast"] and "seq" not in free
    for number in range(201, 205):
        host.post(LEARN, json=row(number))
    label = host.post("/v1/models/linear/label", json={"id": "late", "y": y})
    mean, sd = kept["forecast"]["mean"], kept["forecast"]["sd"]
    assert label.json()["forecast"] == kept["forecast"]
    expected = 0.5 * ((y - mean) / sd) ** 2 + np.log(sd) + 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(label.json()["nlpd"], expected, rtol=1e-12)
    assert host.post("/v1/models/linear/label", json={"id": "late", "y": y}).json()["duplicate"]
    assert host.post("/v1/models/linear/label", json={"id": "late", "y": y + 1}).status_code == 409
    assert host.post("/v1/models/linear/label", json={"id": "none", "y": y}).status_code == 404


def test_a_batch_is_answered_in_order_and_taken_whole_or_not_at_all(host: Host) -> None:
    rows = [row(number) for number in range(300, 320)]
    body = "\n".join(map(json.dumps, rows))
    answers = [json.loads(line) for line in host.post(f"{LEARN}:batch", content=body).text.splitlines()]
    assert [answer["seq"] for answer in answers] == sorted(answer["seq"] for answer in answers)
    assert len(answers) == 20 and all(answer["learned"] for answer in answers)
    before = host.get("/v1/models/linear").json()["seq"]
    new, clash = row(320), {**rows[3], "y": 9.0}
    refused = host.post(f"{LEARN}:batch", content=f"{json.dumps(new)}\n{json.dumps(clash)}\n")
    assert refused.status_code == 409 and host.get("/v1/models/linear").json()["seq"] == before
    assert "duplicate" not in host.post(LEARN, json=new).json()
    forecasts = host.post(
        "/v1/models/linear/predict:batch", content="\n".join(json.dumps({"x": one["x"]}) for one in rows[:3])
    )
    assert len(forecasts.text.splitlines()) == 3


@pytest.mark.optimised
def test_rows_of_many_clients_give_the_belief_of_a_session_over_the_journal(host: Host) -> None:
    def client(seed: int) -> None:
        for number in range(12):
            assert host.post(LEARN, json=row(number, seed)).status_code == 200
            x = row(number, seed)["x"]
            assert host.post("/v1/models/linear/predict", json={"x": x}).status_code == 200

    threads = [threading.Thread(target=client, args=(seed,)) for seed in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    session, forecasts = session_of(host)
    model = host.service.hosts["linear"].model
    assert len(forecasts) == session.rows_used == model.session.rows_used
    for ours, theirs in zip(
        jax.tree.leaves(model.session.belief), jax.tree.leaves(session.belief), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.slow
def test_the_lines_that_models_took_are_counted_by_their_kind(tmp_path: Path) -> None:
    with hosting(tmp_path / "service") as client:
        client.put("/v1/models/linear", json=LINEAR)
        client.put("/v1/models/linear/challenger", json={**LINEAR, "columns": {"a": "number"}})
        client.put("/v1/models/shop", json={"kind": "bandit", "arms": ["red", "blue"], "agent": "beta"})
        ready(client)
        x = row(9)["x"]
        for path, content in (
            *(("linear/learn", row(number)) for number in range(3)),
            ("linear/predict", {"id": "later", "x": x}),
            ("linear/predict", {"x": x}),
            ("linear/label", {"id": "later", "y": 1.0}),
            ("shop/decide", {"id": "one"}),
            ("shop/reward", {"id": "one", "value": 1.0}),
        ):
            assert client.post(f"/v1/models/{path}", json=content).status_code == 200
        lines = client.get("/metrics").text.splitlines()
    counts = {("linear", "learn"): 4, ("linear", "predict"): 2, ("linear", "bandit"): 0}
    counts |= {("shop", "learn"): 0, ("shop", "predict"): 0, ("shop", "bandit"): 2}
    for (name, kind), count in counts.items():
        assert f'credo_lines_taken_total{{kind="{kind}",model="{name}"}} {count:.1f}' in lines
