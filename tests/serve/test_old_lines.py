"""Old lines leave the journal for files, and nothing that can be done with them is lost."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests.serve.conftest import LINEAR, Host, hosting, ready, row

from credo.core.errors import CredoError
from credo.serve import writing
from credo.serve.journal_store import Store
from credo.serve.options import ServiceOptions
from credo.serve.verifying import verify

MODEL = "/v1/models/linear"
OPTIONS = ServiceOptions(snapshot_rows=10, keep=1e-7)  # lines are old after 9 ms


def digest(client: Host, folder: Path) -> str:
    return str(client.service.hosts["linear"].model.digest(folder / "digest.credo"))


def fill(client: Host, numbers: range) -> None:
    for one in map(row, numbers):
        assert client.post(f"{MODEL}/learn", json=one).status_code == 200


def moved(client: Host, count: int) -> list[Any]:
    """The files of old lines, once there are so many lines in them."""
    end = time.monotonic() + 60
    while sum(one.lines for one in client.service.learner.store.archives(1)) < count:
        assert time.monotonic() < end
        time.sleep(0.02)
        client.get(MODEL)
    archives: list[Any] = client.service.learner.store.archives(1)
    return archives


@pytest.mark.optimised
def test_old_lines_lie_in_files_from_which_all_can_be_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "LEAST", 5)
    folder = tmp_path / "service"
    with hosting(folder, options=OPTIONS) as client:
        client.put(MODEL, json=LINEAR)
        ready(client)
        kept = client.post(f"{MODEL}/predict", json={"id": "p", "x": row(99)["x"]})
        late = client.post(f"{MODEL}/label", json={"id": "p", "y": 1.0})
        assert late.status_code in (200, 410) and kept.status_code == 200
        fill(client, range(40))
        moved(client, 20)
        last = row(39)
        time.sleep(0.02)
        again = client.post(f"{MODEL}/learn", json=last)
        assert again.status_code == 410, again.text
        assert again.json()["detail"].startswith("id must be at most 1e-07 days old; '0-39' came ")
        client.post(f"{MODEL}/predict", json={"id": "q", "x": row(98)["x"]})
        time.sleep(0.02)
        label = client.post(f"{MODEL}/label", json={"id": "q", "y": 1.0})
        assert label.status_code == 410 and label.json()["field"] == "id"
        before = digest(client, tmp_path)
    (verdict,) = verify(folder)
    assert verdict.same_state and not verdict.other_answers and not verdict.notes
    lines = verdict.lines
    assert lines >= 42
    with hosting(folder, options=OPTIONS) as client:  # a challenger learns from files and journal
        ready(client)
        assert digest(client, tmp_path) == before
        assert client.put(f"{MODEL}/challenger", json={**LINEAR, "levels": [0.5]}).status_code == 202
        ready(client)
        seen = client.get(MODEL).json()
        assert seen["challenger"]["state"]["metrics"] == seen["state"]["metrics"]
        assert client.delete(f"{MODEL}/challenger").status_code == 204
    snapshots = sorted((folder / "snapshots").glob("1-*"))
    whole = [path.read_bytes() for path in snapshots]
    for path in snapshots:
        path.write_bytes(b"torn")
    with hosting(folder, options=OPTIONS) as client:  # the lines alone are enough
        ready(client)
        assert digest(client, tmp_path) == before
    for path, content in zip(snapshots, whole, strict=True):
        path.write_bytes(content)
    for path in (folder / "archive").iterdir():
        path.unlink()
    (verdict,) = verify(folder)  # what is left is compared, and what is not is said
    assert verdict.same_state and verdict.lines < lines
    assert "cannot be read from" in verdict.notes[-1] and "after the older snapshot" in verdict.notes[-1]
    for path in snapshots:
        path.write_bytes(b"torn")
    with hosting(folder, options=OPTIONS) as client:
        end = time.monotonic() + 60
        while (model := client.get(MODEL).json())["stage"] != "failed":
            assert time.monotonic() < end
            time.sleep(0.02)
        assert "lines 1 to" in model["reason"] and "cannot be read from" in model["reason"]


def test_a_model_that_is_gone_has_no_lines_to_move(tmp_path: Path) -> None:
    store = Store(tmp_path / "journal", write=True)
    try:
        assert store.movable(7, time.time(), 10) == []
    finally:
        store.close()


def test_days_that_cannot_be_are_refused() -> None:
    with pytest.raises(CredoError, match="remember must be at most as many days as `keep`, 2; got 3"):
        ServiceOptions(remember=3, keep=2)
    with pytest.raises(CredoError, match="keep"):
        ServiceOptions(keep=0)
