"""Rows of 64 clients at once give the belief that `credo learn` gives of the journal's rows."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from tests.serve.conftest import Host, hosting, ready

from credo.cli import main
from credo.serve import service
from credo.sessions import Session

CLIENTS, EACH = 64, 3


def row(client: int, number: int) -> dict[str, Any]:
    """A row whose cells all JSON numbers hold as they are; some clients learn by labels that come late."""
    rng = random.Random(1000 * client + number)
    a, b = rng.gauss(0, 1), rng.gauss(5, 3)
    return {"id": f"{client}-{number}", "x": {"a": a, "b": b, "c": "uvw"[number % 3]}, "y": 2 * a - b}


def send(host: Host, client: int, together: threading.Barrier) -> None:
    """What one client does, from a moment on at which all do: it asks, learns, and sends rows again."""
    together.wait()
    for number in range(EACH):
        one = row(client, number)
        late = client % 4 == 0 and number == EACH - 1
        kinds = ("predict", "label") if late else ("learn", "learn")
        bodies = ({"id": one["id"], "x": one["x"]}, {"id": one["id"], "y": one["y"]}) if late else (one, one)
        answers = [
            host.post(f"/v1/models/m/{kind}", json=body) for kind, body in zip(kinds, bodies, strict=True)
        ]
        assert [answer.status_code for answer in answers] == [200, 200], answers[-1].text
        assert late or answers[1].json()["duplicate"]


@pytest.mark.optimised
def test_rows_of_64_clients_give_the_belief_of_credo_learn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bits of the belief and of the moments, and the scores, whose sums are of groups, to 1e-12: the
    service groups rows by chance, the command by 100.
    """
    # all callers of a test client have one address, as a lone caller has
    monkeypatch.setattr(service, "LONELY", float("inf"))
    with hosting(tmp_path / "service") as host:
        # columns are inferred by both, from rows that hold all categories
        spec = {"target": "y", "first": CLIENTS, "options": {"model": "linear"}}
        assert host.put("/v1/models/m", json=spec).status_code == 202
        for client in range(CLIENTS):
            assert host.post("/v1/models/m/learn", json=row(client, EACH + client % 3)).status_code == 202
        ready(host)
        together = threading.Barrier(CLIENTS)
        threads = [threading.Thread(target=send, args=(host, client, together)) for client in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        served_by = host.service
        served = served_by.hosts["m"].model.session
        store, number = served_by.learner.store, served_by.hosts["m"].number
        lines = [event for events in store.events(number, 0, store.last()) for event in events]
        taken = [event for event in lines if event.kind != "predict"]
        learned = [{**(event.row or event.content).x, "y": event.content.y} for event in taken]
        assert len(learned) == CLIENTS * (1 + EACH) == served.rows_used
        assert served_by.writer.transactions < served_by.writer.lines  # they came together
    rows = tmp_path / "journal.jsonl"
    rows.write_text("".join(json.dumps(one) + "\n" for one in learned))
    monkeypatch.chdir(tmp_path)
    words = ["learn", str(rows), "--target", "y", "--model", "linear", "--out", "run"]
    assert main(words) == 0
    session = Session.load("run/belief.credo")
    assert session.rows_used == served.rows_used
    for ours, theirs in zip(jax.tree.leaves(served.belief), jax.tree.leaves(session.belief), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    moments = served.encoding.arrays(), session.encoding.arrays()
    assert moments[0].keys() == moments[1].keys() and len(moments[0]) > 3
    for name, array in moments[0].items():
        np.testing.assert_array_equal(array, moments[1][name])
    scores = served.metrics(), session.metrics()
    assert scores[0] == pytest.approx(scores[1], rel=1e-12) and scores[0]["rmse"] < 1.5
