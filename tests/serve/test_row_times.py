"""Rows of a model with a unit of time step it by the time between them, live, restarted and replayed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from tests.serve.conftest import LINEAR, Host, hosting, ready, row

from credo.serve.options import ServiceOptions
from credo.serve.table_model import CHUNK
from credo.serve.verifying import verify
from credo.sessions import Options, Session, TableEncoding

OPTIONS: dict[str, Any] = {"model": "linear", "drift": "walk:0.01"}
TIMED = {**LINEAR, "options": OPTIONS, "time_unit": "hour", "lateness": 0.5}
START, HOUR = 1_700_000_000.0, 3600.0
LEARN, PREDICT = "/v1/models/timed/learn", "/v1/models/timed/predict"


def timed(number: int, seconds: float) -> dict[str, Any]:
    """A row of a time, which every third says as text."""
    text = datetime.fromtimestamp(seconds, UTC).isoformat()
    return {**row(number), "time": text if number % 3 == 0 else seconds}


TIMES = (START + np.cumsum(np.random.default_rng(2).integers(1, 40_000, 20))).tolist()
TIMES[13] = TIMES[12] - 1000.0  # late, and still learned
LAST = TIMES[-1]
OLD = LAST - 0.6 * HOUR


def teach(client: Host) -> None:
    """Let a new model learn the rows, the last of them by a label that comes later."""
    client.put("/v1/models/timed", json=TIMED)
    ready(client)
    for number, seconds in enumerate(TIMES[:-1]):
        assert client.post(LEARN, json=timed(number, seconds)).status_code == 200
    last = timed(len(TIMES) - 1, LAST)
    ahead = client.post(PREDICT, json={name: last[name] for name in ("id", "x", "time")}).json()
    now = client.post(PREDICT, json={"x": last["x"]}).json()
    assert ahead["forecast"]["mean"] == now["forecast"]["mean"]
    assert ahead["forecast"]["sd"] > now["forecast"]["sd"]
    label = client.post("/v1/models/timed/label", json={"id": last["id"], "y": last["y"]}).json()
    assert label["learned"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with hosting(tmp_path_factory.mktemp("timed")) as client:
        client.put("/v1/models/linear", json=LINEAR)
        teach(client)
        yield client


def test_the_belief_is_that_of_a_session_whose_rows_have_these_times(service: Host) -> None:
    model = service.service.hosts["timed"].model
    schema = model.spec.schema()
    session = Session.create(TableEncoding(schema), Options(**OPTIONS), chunk=CHUNK)
    rows = [{**row(number)["x"], "y": row(number)["y"]} for number in range(len(TIMES))]
    session.learn(rows, times=np.maximum.accumulate(TIMES) / HOUR)
    assert model.session.clock == session.clock
    for ours, theirs in zip(*(jax.tree.leaves(one.belief) for one in (model.session, session)), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_times_that_cannot_be_are_refused(service: Host) -> None:
    model = service.service.hosts["timed"].model
    before = model.session.clock
    other = {**row(900), "id": "another"}
    too_late = (
        f"time must be at least {LAST - 0.5 * HOUR:.16g}, the latest row's less a lateness of 0.5 hours"
    )
    for path, body, sentence in (
        (LEARN, other, "time is missing: rows of this model have times (time_unit)."),
        (LEARN, {**other, "time": "soon"}, "time must be seconds since 1970 or ISO 8601 text; got 'soon'."),
        (LEARN, {**other, "time": True}, "time must be a number; got True."),
        (LEARN, {**other, "time": -1e300}, "time must be a time of the years 1 to now; got -1e+300."),
        (LEARN, {**other, "time": "9999-01-01"}, "time must be at most a day ahead of now, 20"),
        (LEARN, timed(901, OLD), too_late),
        (PREDICT, {"id": "p", "x": other["x"]}, "time is missing"),
        (PREDICT, {"x": other["x"], "time": START}, too_late),
        (
            "/v1/models/linear/learn",
            timed(1, START),
            "time must be left out: this model has no time_unit; got 170",
        ),
    ):
        answer = service.post(path, json=body)
        assert answer.status_code == 422 and answer.json()["detail"].startswith(sentence), answer.text
    rows = "\n".join(
        service.build_request("POST", "/", json=timed(n, h)).content.decode()
        for n, h in ((910, LAST + 5.0 * HOUR), (911, LAST))
    )
    assert "lateness" in service.post(f"{LEARN}:batch", content=rows).text
    assert model.session.clock == before
    assert service.post(LEARN, json=timed(4, TIMES[4])).json()["duplicate"]  # a repeat may be old
    assert service.post(LEARN, json=timed(4, TIMES[5])).status_code == 409
    for spec, sentence in (
        ({"time_unit": "fortnight"}, "time_unit must be one of second, minute"),
        ({"lateness": -1}, "lateness must be finite and at least 0; got -1"),
    ):
        refused = service.put("/v1/models/other", json={**LINEAR, **spec})
        assert refused.status_code == 422 and refused.json()["detail"].startswith(sentence), refused.text
    refused = service.put("/v1/models/linear/challenger", json=TIMED)
    assert refused.json()["detail"] == "time_unit must be left out, as 'linear' has none; got 'hour'."
    service.service.hosts["timed"].model.session.save(saved := Path(service.service.folder) / "timed.credo")
    refused = service.put(
        "/v1/models/saved", content=saved.read_bytes(), headers={"Content-Type": "application/octet-stream"}
    )
    assert (
        refused.json()["detail"]
        == "the body must be a saved session whose rows have no times; its rows have them."
    )


@pytest.mark.optimised
def test_restarts_and_replays_give_the_same_bits(tmp_path: Path) -> None:
    folder = tmp_path / "service"
    with hosting(folder, options=ServiceOptions(snapshot_rows=7)) as client:
        teach(client)
        digest = client.service.hosts["timed"].model.digest(tmp_path / "digest.credo")
    assert all(one.same_state and not one.other_answers for one in verify(folder))
    with hosting(folder) as client:
        old = client.post(LEARN, json=timed(901, OLD))  # before the model is there
        assert old.status_code == 422 and "lateness" in old.text
        ready(client)
        assert client.service.hosts["timed"].model.digest(tmp_path / "digest.credo") == digest
