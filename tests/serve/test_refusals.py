"""What is refused is refused by a sentence with field, value and what is allowed, and changes nothing."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.serve.conftest import LINEAR, Host, hosting, ready, row

from credo.core.errors import CredoError, DataError
from credo.core.integers import LARGEST_SEED
from credo.core.setting import settings_of
from credo.recipes.options import Options
from credo.serve import app, requests, writing
from credo.serve.tokens import Tokens, require_loopback
from credo.serve.verifying import verify

LEARN = "/v1/models/linear/learn"

CASES = {
    "bad JSON": ('{"id": "n", ', 400, "the body must be JSON"),
    "no object": ("[1]", 400, "the body must be a JSON object; got [1]."),
    "NaN": ('{"id": "n", "x": {"a": NaN}, "y": 1}', 422, "x.a must be a finite number; got nan."),
    "1e400": ('{"id": "n", "x": {"a": 1e400}, "y": 1}', 422, "x.a must be a finite number; got inf."),
    "long number": (f'{{"id": "n", "x": {{"a": 1{"0" * 400}}}, "y": 1}}', 422, "x.a must be a finite number"),
    "text": ('{"id": "n", "x": {"a": "one"}, "y": 1}', 422, "x.a must be a number; got 'one'."),
    "truth": ('{"id": "n", "x": {"a": true}, "y": 1}', 422, "x.a must be a number; got True."),
    "nested": ('{"id": "n", "x": {"c": [1]}, "y": 1}', 422, "x.c must be a number, a text"),
    "target": ('{"id": "n", "x": {"a": 1}, "y": "high"}', 422, "y must be a number; got 'high'."),
    "no target": ('{"id": "n", "x": {"a": 1}}', 422, "y is missing."),
    "target inside": ('{"id": "n", "x": {"y": 1}, "y": 1}', 422, "x must not hold the target, 'y'."),
    "no id": ('{"x": {"a": 1}, "y": 1}', 422, "id must be a text of 1 to 200 characters"),
    "field": ('{"id": "n", "x": {"a": 1}, "y": 1, "when": 2}', 422, "when is no field of this"),
}


@pytest.mark.table
@pytest.mark.parametrize("case", CASES)
def test_a_row_that_cannot_be_is_refused(host: Host, digest: Callable[[], str], case: str) -> None:
    body, status, sentence = CASES[case]
    before = digest()
    answer = host.post(LEARN, content=body)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert answer.json()["detail"].startswith(sentence) and answer.json()["detail"].endswith(".")
    assert digest() == before


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({}, "target is missing."),
        ({"target": 3}, "target must be the name of a column; got 3."),
        ({"target": "y", "kind": "tree"}, "kind must be one of table, bandit; got 'tree'."),
        ({"target": "y", "colums": {}}, "colums is no field of a table"),
        ({"target": "y", "columns": {"a": "float"}}, "columns.a must be one of number, truth"),
        ({"target": "y", "options": {"depth": 3}}, "options.depth is no option of a learner"),
        ({"target": "y", "options": {"seed": -1}}, "options.seed must be a whole number in 0..4294967295"),
        ({"target": "y", "options": {"method": "bogg"}}, "options.method must be one of bong, blr, bog"),
        ({"target": "y", "options": {"model": 3}}, "options.model must be a text; got 3."),
        ({"target": "y", "levels": [0.5, 1]}, "levels.1 must be between 0 and 1; got 1."),
        ({"target": "y", "first": 3.5}, "first must be a whole number in 10..10000; got 3.5."),
        ({"target": "y", "base": "x"}, "base must be a SHA-256; got 'x'."),
        ({"target": "y", "task": "ranking"}, "task must be one of classification, regression, count"),
        ({"kind": "bandit", "arms": ["a"]}, "arms must be at least two different names; got ['a']."),
        ({"kind": "bandit", "arms": ["a", "b"], "policy": "luck"}, "policy"),
        ({"kind": "bandit", "arms": ["a", "b"], "agent": "luck"}, "agent"),
        ({"kind": "bandit", "arms": ["a", "b"], "agent": "network", "features": 0}, "agent"),
    ],
)
def test_a_model_that_cannot_be_is_refused(host: Host, spec: dict[str, object], sentence: str) -> None:
    answer = host.put("/v1/models/other", json=spec)
    assert answer.status_code == 422 and answer.json()["detail"].startswith(sentence)
    assert [model["name"] for model in host.get("/v1/models").json()["models"]] == ["linear"]


def test_names_and_paths_stay_inside(host: Host) -> None:
    assert host.put("/v1/models/linear", json=LINEAR).status_code == 200
    assert host.put("/v1/models/linear", json={**LINEAR, "levels": [0.5]}).status_code == 409
    for name in ("..", "%2e%2e", "..%2f..%2fetc", ".hidden", "a%00b", "a b", "x" * 101):
        assert host.put(f"/v1/models/{name}", json=LINEAR).status_code in (404, 405, 422)
        assert host.post(f"/v1/models/{name}/learn", json=row(0)).status_code in (404, 405, 422)
    for path in ("/pages/..%2fapp.py", "/pages/app.py", "/models/..%2f..%2fjournal.db"):
        assert host.get(path).status_code == 404
    assert host.get("/v1/models/linear/learn").status_code == 405
    assert host.post("/v1/models/linear/decide", json={"id": "d"}).status_code == 404
    assert host.post("/v1/models/none/learn", json=row(0)).json()["detail"] == (
        "name must be that of a model; there is none called 'none'."
    )


def test_large_bodies_batches_and_queues_are_refused(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    assert host.post(LEARN, content=b" " * (app.BODY + 1)).status_code == 413
    monkeypatch.setattr(requests, "BATCH", 2)
    refused = host.post(f"{LEARN}:batch", content="{}\n{}\n{}\n")
    assert refused.status_code == 413 and refused.json()["detail"].startswith("a batch must have at most 2")
    monkeypatch.setattr(host.service.writer, "waiting", writing.WAITING)
    full = host.post(LEARN, json=row(999))
    assert full.status_code == 429 and full.json()["detail"].startswith("4,096 lines wait")


def test_a_full_disk_is_said_and_gone_again(host: Host, digest: Callable[[], str]) -> None:
    before, store = digest(), host.service.store
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    long = [{**row(number, 77), "id": f"full-{number}" + "x" * 150} for number in range(200)]
    answers = [host.post(LEARN, json=one) for one in long]
    statuses = {answer.status_code for answer in answers}
    store._db.execute("PRAGMA max_page_count = 1000000000")
    assert statuses == {200, 507} and digest() != before
    for one, answer in zip(long, answers, strict=True):
        again = host.post(LEARN, json=one)
        assert again.status_code == 200 and ("duplicate" in again.json()) == (answer.status_code == 200)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("guarded")
    lines = [
        f"{hashlib.sha256(scope.encode()).hexdigest()} {scope}  # a comment" for scope in ("read", "learn")
    ]
    lines.append(f"{hashlib.sha256(b'root').hexdigest()} read,learn,admin")
    (folder / "tokens").write_text("\n".join(lines))
    with hosting(folder / "service", Tokens.read(folder / "tokens")) as client:
        yield client


def test_tokens_allow_what_their_scopes_say(guarded: Host) -> None:
    def status(method: str, path: str, token: str | None) -> int:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        answer = guarded.request(method, path, headers=headers, json={})
        return int(answer.status_code)

    assert status("GET", "/livez", None) == status("GET", "/readyz", None) == 200
    for method, path, scope in (
        ("GET", "/v1/models", "read"),
        ("GET", "/metrics", "read"),
        ("POST", "/v1/models/m/learn", "learn"),
        ("POST", "/v1/models/m/predict", "read"),
        ("PUT", "/v1/models/m", "admin"),
        ("DELETE", "/v1/models/m", "admin"),
    ):
        assert status(method, path, None) == status(method, path, "guess") == 401
        for token in ("read", "learn"):
            assert (status(method, path, token) == 403) == (token != scope)
        assert status(method, path, "root") in (200, 404, 422)
    refusal = guarded.get("/v1/models", headers={"Authorization": "Bearer secret-guess"})
    assert refusal.headers["www-authenticate"] == "Bearer" and "secret-guess" not in refusal.text
    assert "root" not in guarded.get("/metrics", headers={"Authorization": "Bearer root"}).text


def test_files_of_tokens_and_open_addresses_are_refused(tmp_path: Path) -> None:
    for text in ("", "abc read", f"{'a' * 64} write", f"{'a' * 64}"):
        (tmp_path / "tokens").write_text(text)
        with pytest.raises(DataError, match="tokens"):
            Tokens.read(tmp_path / "tokens")
    with pytest.raises(CredoError, match=r"host must be 127\.0\.0\.1"):
        require_loopback("0.0.0.0")
    for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8"):
        require_loopback(host)


def test_the_page_asks_no_other_host(host: Host) -> None:
    pages = Path(app.PAGES)
    for file in pages.iterdir():
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|//[a-z]+\.|@import|url\(", text), file
    page = host.get("/models/linear")
    assert page.status_code == 200 and "default-src 'self'" in page.headers["content-security-policy"]
    assert host.get("/pages/view.js").headers["content-type"].startswith("text/javascript")
    assert "credo_journal_lines_total" in host.get("/metrics").text
    assert host.get("/openapi.json").json()["openapi"].startswith("3.1")
    ready(host)


def test_bodies_that_come_too_slowly_are_refused(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "SECONDS", 0.05)

    async def ask(path: str) -> list[dict[str, Any]]:
        sent: list[dict[str, Any]] = []
        heads = [(b"content-length", b"100"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "headers": heads}
        scope |= {
            "query_string": b"",
            "scheme": "http",
            "server": ("x", 80),
            "client": ("x", 1),
            "root_path": "",
        }
        parts: list[dict[str, Any]] = [{"type": "http.request", "body": b'{"id": ', "more_body": True}]

        async def receive() -> dict[str, Any]:
            if not parts:
                await asyncio.sleep(60)
            return parts.pop()

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await host.app({**scope, "http_version": "1.1"}, receive, send)
        return sent

    for path in (LEARN, f"{LEARN}:batch"):
        start, body = asyncio.run(ask(path))
        assert start["status"] == 408, (path, body)
        assert b"the body must come within 0.05 seconds." in body["body"]


def test_long_batches_and_unknown_classes_are_refused(host: Host, digest: Callable[[], str]) -> None:
    before = digest()
    long = host.post(f"{LEARN}:batch", content=b" " * (app.BATCH_BODY + 1))
    assert long.status_code == 413 and "a batch 16,777,216" in long.json()["detail"]
    fixed = {
        "target": "y",
        "columns": {"a": "number"},
        "classes": ["no", "yes"],
        "options": LINEAR["options"],
    }
    assert host.put("/v1/models/fixed", json=fixed).status_code == 202
    ready(host)
    row = {"id": "c", "x": {"a": 1.0}}
    learned = host.post("/v1/models/fixed/learn", json={**row, "y": "yes"})
    assert learned.json()["forecast"]["probs"] == pytest.approx({"no": 0.5, "yes": 0.5}, abs=1e-6)
    for id, y in (("d", "maybe"), ("e", 1), ("f", True)):
        refused = host.post("/v1/models/fixed/learn", json={**row, "id": id, "y": y})
        assert refused.status_code == 422
        assert refused.json()["detail"] == f"y must be one of the classes no, yes; got {y!r}."
    assert host.get("/v1/models/fixed").json()["state"]["rows"] == 1 and digest() == before
    assert host.delete("/v1/models/fixed").status_code == 204


def test_weights_that_cannot_be_are_refused(host: Host, digest: Callable[[], str]) -> None:
    before = digest()
    for weight in (0, -1, 1e9, "2", True):
        refused = host.post(LEARN, json={**row(900), "weight": weight})
        assert refused.status_code == 422 and refused.json()["detail"].startswith("weight must be")
    assert digest() == before


def test_a_damaged_line_of_the_journal_is_said_by_its_number(tmp_path: Path) -> None:
    with hosting(tmp_path / "service") as client:
        assert client.put("/v1/models/linear", json=LINEAR).status_code == 202
        ready(client)
        for number in range(5):
            client.post(LEARN, json=row(number))
    for snapshot in (tmp_path / "service/snapshots").glob("*.credo"):
        snapshot.unlink()
    journal = tmp_path / "service/journal.db"
    for seq, damaged in ((3, b'{"x":{"a":1.0'), (2, b'{"x":{"c":"\xff"},"y":1.0}')):
        with sqlite3.connect(journal) as db:
            db.execute("UPDATE events SET content = ? WHERE seq = ?", (damaged, seq))
        with pytest.raises(DataError, match=rf"line {seq} of the journal is damaged"):
            verify(tmp_path / "service")
    with hosting(tmp_path / "service") as client:
        end = time.monotonic() + 60.0
        while (model := client.get("/v1/models").json()["models"][0])["stage"] != "failed":
            assert time.monotonic() < end
            time.sleep(0.01)
        assert "line 2 of the journal is damaged" in model["reason"]


def test_a_batch_longer_than_what_may_wait_is_taken(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "WAITING", 4)
    monkeypatch.setattr(host.service.writer, "waiting", 1)
    lines = "\n".join(json.dumps(row(number, 7)) for number in range(10))
    answer = host.post(f"{LEARN}:batch", content=lines)
    assert answer.status_code == 200 and answer.text.count('"learned":true') == 10


def test_the_document_says_of_options_what_their_declaration_says(host: Host) -> None:
    table = host.get("/openapi.json").json()["components"]["schemas"]["TableSpec"]["properties"]
    options = table["options"]
    assert list(options["properties"]) == options["propertyNames"]["enum"] == list(settings_of(Options))
    seed, noise = options["properties"]["seed"], options["properties"]["noise_var"]
    assert (seed["minimum"], seed["maximum"], seed["type"]) == (0, LARGEST_SEED, ["integer", "null"])
    assert noise["type"] == ["number", "null", "string"] and "input" in noise["description"]
    assert options["properties"]["budget"]["enum"] == ["fast", "default", "thorough", None]
