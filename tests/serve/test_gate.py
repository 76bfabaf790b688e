"""Who may ask at all: names, origins, kinds of bodies and scopes; and what one client's rows do to others."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.serve.conftest import LINEAR, Host, hosting, ready, row

from credo.core.errors import CredoError
from credo.serve import app, requests
from credo.serve import service as serving
from credo.serve.gate import Gate
from credo.serve.options import ServiceOptions
from credo.serve.tokens import Tokens

LEARN = "/v1/models/linear/learn"

FOREIGN: dict[str, dict[str, str]] = {
    "a rebound name": {"Host": "evil.example:8000"},
    "a name that begins like ours": {"Host": "127.0.0.1.evil.example"},
    "an address of the network": {"Host": "192.168.1.9:8000"},
    "a page of another origin": {"Origin": "https://evil.example"},
    "a page on another port": {"Origin": "http://127.0.0.1:9999"},
    "a page in a sandbox": {"Origin": "null"},
    "a form of another site": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    "a picture of another site": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
}


@pytest.mark.parametrize("case", FOREIGN)
def test_a_page_of_another_origin_neither_teaches_nor_lists_nor_removes(host: Host, case: str) -> None:
    before = host.get("/v1/models/linear").json()["seq"]
    asked = [
        host.post(LEARN, json=row(990), headers=FOREIGN[case]),
        host.put("/v1/models/other", json=LINEAR, headers=FOREIGN[case]),
        host.delete("/v1/models/linear", headers=FOREIGN[case]),
    ]
    if "form" not in case:  # a link may be followed
        asked.append(host.get("/v1/models", headers=FOREIGN[case]))
    for answer in asked:
        assert answer.status_code == 403, (case, answer.text)
        assert answer.json()["field"] in ("Host", "Origin", "Sec-Fetch-Site")
    assert host.get("/v1/models/linear").json()["seq"] == before


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "localhost:8000"},
        {"Host": "[::1]:8000"},
        {"Host": "127.0.0.2"},
        {"Origin": "http://127.0.0.1"},
        {"Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    ],
)
def test_our_own_page_a_program_and_a_link_are_let_in(host: Host, headers: dict[str, str]) -> None:
    assert host.get("/v1/models", headers=headers).status_code == 200


def test_a_name_that_was_given_is_let_in_and_closes_a_service_with_tokens() -> None:
    named = Gate(["models.example.org"], closed=False)
    named.require({b"host": b"Models.example.org:443"}, "GET")
    named.require({b"host": b"127.0.0.1:8000", b"origin": b"https://models.example.org"}, "POST")
    with pytest.raises(CredoError, match=r"got 'evil\.example'"):
        named.require({b"host": b"evil.example"}, "GET")
    Gate(closed=False).require({b"host": b"anything.example"}, "GET")
    with pytest.raises(CredoError, match="host_name must be a name without a port"):
        Gate(["models.example.org:443"])


@pytest.mark.parametrize(
    ("path", "headers", "words"),
    [
        (LEARN, {"Content-Type": "text/plain"}, "Content-Type must be application/json; got 'text/plain'."),
        (LEARN, {"Content-Type": ""}, "Content-Type must be application/json; got none."),
        (
            LEARN,
            {"Content-Type": "application/x-www-form-urlencoded"},
            "Content-Type must be application/json; got 'application/x-www-form-urlencoded'.",
        ),
        (LEARN, {"Content-Encoding": "gzip"}, "Content-Encoding must be left out; got 'gzip'."),
        (f"{LEARN}:batch", {"Content-Type": "text/plain"}, "Content-Type must be application/x-ndjson or"),
    ],
)
def test_a_body_says_what_it_is(host: Host, path: str, headers: dict[str, str], words: str) -> None:
    answer = host.post(path, content=json.dumps(row(991)), headers=headers)
    assert answer.status_code == 415 and answer.json()["detail"].startswith(words), answer.text


def test_a_specification_says_what_it_is(host: Host) -> None:
    for path in ("/v1/models/other", "/v1/models/linear/challenger"):
        assert (
            host.put(path, content=json.dumps(LINEAR), headers={"Content-Type": "text/plain"}).status_code
            == 415
        )


@pytest.mark.parametrize(
    "text",
    [
        '{"id": "n", "x": {"c": "\\ud800"}, "y": 1}',
        '{"id": "n", "x": {"\\ud800": 1}, "y": 1}',
        '{"id": "\\udc00", "x": {"a": 1}, "y": 1}',
        '{"id": "n", "\\ud800": 1}',
        '{"id": "n", "x": {"a": 1}, "y": "\\ud83d"}',
    ],
)
@pytest.mark.parametrize("route", ["learn", "predict", "label", "learn:batch", "predict:batch"])
def test_half_a_character_is_refused_and_all_threads_go_on(host: Host, route: str, text: str) -> None:
    answer = host.post(f"/v1/models/linear/{route}", content=text)
    assert answer.status_code == 400 and "JSON" in answer.json()["detail"], answer.text
    assert all(thread.is_alive() for thread in host.service._threads)
    assert host.get("/readyz").status_code == 200


def test_a_request_that_fails_in_the_writer_is_refused_alone(
    host: Host, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    append = host.service.store.append

    def fail(model: int, id: str, kind: str, content: Any) -> Any:
        if id == "broken":
            raise ZeroDivisionError("nobody thought of it")
        return append(model, id, kind, content)

    monkeypatch.setattr(host.service.store, "append", fail)
    answers = {}

    def send(id: str, number: int) -> None:
        answers[id] = host.post(LEARN, json={**row(number), "id": id}).status_code

    names = ["before", "broken", "after"]
    threads = [threading.Thread(target=send, args=(id, 980 + n)) for n, id in enumerate(names)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {"before": 200, "broken": 500, "after": 200}
    assert "nobody thought of it" in capsys.readouterr().err
    assert host.get("/livez").status_code == 200 and not host.service.failure


@pytest.mark.parametrize("name", ["credo-writer", "credo-learner", "credo-snapshots", "credo-builder"])
def test_a_thread_that_ends_ends_readiness_and_asks_for_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    asked = threading.Event()
    with hosting(tmp_path / "service") as client:
        service = client.service
        service.on_failure = asked.set
        assert client.get("/readyz").status_code == 200
        thread = next(one for one in service._threads if one.name == name)
        waits = thread._inbox if hasattr(thread, "_inbox") else thread._queue
        # what it takes next is nothing that it knows
        monkeypatch.setattr(thread, "_transact" if name == "credo-writer" else "_work", None, raising=False)
        if hasattr(waits, "take"):
            with waits.turn:
                waits._things.append(object())
                waits.turn.notify()
        else:
            waits.put(object())
        assert asked.wait(20.0)
        assert client.get("/readyz").status_code == client.get("/livez").status_code == 503
        assert service.failure.startswith(f"{name} ended (")
        refused = client.put("/v1/models/m", json=LINEAR)
        assert refused.status_code == 503 and "the service has failed" in refused.json()["detail"]


@pytest.mark.parametrize(("name", "step"), [("writer", "_transact"), ("learner", "_rows")])
def test_a_failure_of_work_that_was_borrowed_is_one_of_its_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, step: str
) -> None:
    monkeypatch.setattr(serving, "LONELY", -1.0)
    asked = threading.Event()
    with hosting(tmp_path / "service") as client:
        client.service.on_failure = asked.set
        assert client.put("/v1/models/linear", json=LINEAR).status_code == 202
        ready(client)
        assert client.post(LEARN, json=row(1)).status_code == 200
        monkeypatch.setattr(getattr(client.service, name), step, None)
        time.sleep(0.1)  # the thread waits, so that its work is borrowed
        assert client.post(LEARN, json=row(2)).status_code == 500
        assert asked.wait(20.0) and client.service.failure.startswith(f"credo-{name} ended (")
        refused = client.post(LEARN, json=row(3))
        assert refused.status_code == 503 and "the service has failed" in refused.json()["detail"]


def test_a_misspelt_column_is_named_and_many_new_ones_are_refused(host: Host) -> None:
    good = row(970)
    known = host.post(LEARN, json=good).json()
    assert "unknown" not in known and "missing" not in known
    misspelt = {**good["x"], "aa": 1.0}
    del misspelt["a"]
    answer = host.post("/v1/models/linear/predict", json={"x": misspelt}).json()
    assert answer["unknown"] == ["aa"] and answer["missing"] == ["a"] and "mean" in answer["forecast"]
    lines = "\n".join(json.dumps({"x": x}) for x in (good["x"], misspelt))
    first, second = map(
        json.loads, host.post("/v1/models/linear/predict:batch", content=lines).text.splitlines()
    )
    assert "unknown" not in first and second["unknown"] == ["aa"]
    wide = {f"new-{number}": 1.0 for number in range(requests.NEW + 1)}
    refused = host.post(LEARN, json={"id": "wide", "x": {**good["x"], **wide}, "y": 1.0})
    assert refused.status_code == 422
    assert refused.json()["detail"] == "x must bring at most 300 new columns; got 301."
    wider = {f"new-{number}": 1.0 for number in range(4_096)}
    refused = host.post(LEARN, json={"id": "wide", "x": {**good["x"], **wider}, "y": 1.0})
    assert refused.status_code == 422
    assert refused.json()["detail"] == "x must have at most 4,096 columns; got 4,099."


def test_the_most_columns_of_a_row_are_an_option(tmp_path: Path) -> None:
    with hosting(tmp_path, options=ServiceOptions(max_columns=4)) as client:
        assert client.put("/v1/models/linear", json=LINEAR).status_code == 202
        ready(client)
        cells = row(1)["x"]
        four = {"id": "four", "x": {**cells, "d": 1.0}, "y": 1.0}
        assert client.post(LEARN, json=four).status_code == 200
        five = {"id": "five", "x": {**cells, "d": 1.0, "e": 1.0}, "y": 1.0}
        refused = client.post(LEARN, json=five)
        assert refused.status_code == 422
        assert refused.json()["detail"] == "x must have at most 4 columns; got 5."
        assert client.get("/v1/models/linear").json()["learned"] == 1


def test_a_model_of_more_columns_than_the_limit_takes_a_row_that_lacks_one(tmp_path: Path) -> None:
    with hosting(tmp_path, options=ServiceOptions(max_columns=1)) as client:
        assert client.put("/v1/models/linear", json=LINEAR).status_code == 202
        ready(client)
        cells = {"a": 1.0, "b": 2.0}
        assert client.post(LEARN, json={"id": "two", "x": cells, "y": 1.0}).status_code == 200
        four = {"id": "four", "x": {**row(1)["x"], "d": 1.0}, "y": 1.0}
        assert client.post(LEARN, json=four).json()["detail"] == "x must have at most 3 columns; got 4."


def test_long_bodies_are_read_one_after_the_other_in_a_quarter_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter((0.0, 2.0, 10.0, 11.0))
    waits: list[float] = []
    reading: list[bool] = []

    async def receive() -> dict[str, Any]:
        return {"body": json.dumps({"a": "b" * app.LONG}).encode()}

    async def receive_short() -> dict[str, Any]:
        return {"body": b'{"a": 1}'}

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        reading.append(doors._long.locked())

    monkeypatch.setattr("credo.serve.app.time.perf_counter", lambda: next(clock))
    monkeypatch.setattr("credo.serve.app.asyncio.sleep", sleep)
    nothing: Any = None
    doors = app.Doors(nothing, nothing, nothing, nothing)

    async def read_all() -> list[dict[str, Any]]:
        return await asyncio.gather(*map(doors._read_content, (receive, receive, receive_short)))

    assert [one["a"] for one in asyncio.run(read_all())] == ["b" * app.LONG] * 2 + [1]
    assert waits == [6.0, 3.0] and reading == [True, True]


def test_a_strict_service_takes_no_new_column_and_lacks_none(tmp_path: Path) -> None:
    with hosting(tmp_path / "service", options=ServiceOptions(strict=True)) as client:
        assert client.put("/v1/models/linear", json=LINEAR).status_code == 202
        ready(client)
        x = row(0)["x"]
        for cells, words in (
            ({**x, "bb": 1.0}, "x.bb is no column; they are a, b, c. did you mean"),
            ({"a": 1.0}, "x.b is missing; null says that it is not known."),
        ):
            answer = client.post(LEARN, json={"id": "n", "x": cells, "y": 1.0})
            assert answer.status_code == 422 and answer.json()["detail"].startswith(words), answer.text
        assert client.post(LEARN, json=row(0)).status_code == 200


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("guarded")
    rights = ("read", "read,keep", "read,learn", "admin,read")
    scopes = {hashlib.sha256(right.encode()).hexdigest(): frozenset(right.split(",")) for right in rights}
    with hosting(folder, Tokens(scopes)) as client:
        admin = {"Authorization": "Bearer admin,read"}
        assert client.put("/v1/models/linear", json=LINEAR, headers=admin).status_code == 202
        ready(client)
        yield client


def test_a_forecast_that_is_kept_needs_a_right_of_its_own(guarded: Host) -> None:
    x = row(0)["x"]

    def status(token: str, content: dict[str, Any], route: str = "predict") -> int:
        headers = {"Authorization": f"Bearer {token}"}
        answer = guarded.post(f"/v1/models/linear/{route}", content=json.dumps(content), headers=headers)
        return int(answer.status_code)

    for route in ("predict", "predict:batch"):
        assert status("read", {"x": x}, route) == 200
        assert status("read", {"id": f"kept-{route}", "x": x}, route) == 403
        assert status("read,keep", {"id": f"kept-{route}", "x": x}, route) == 200
        assert status("read,learn", {"id": f"also-{route}", "x": x}, route) == 200


def test_head_is_answered_as_get_and_the_frameworks_pages_are_not(host: Host) -> None:
    for path in ("/livez", "/readyz", "/v1/models", "/v1/models/linear", "/", "/openapi.json"):
        whole, head = host.get(path), host.head(path)
        assert (head.status_code, head.content) == (whole.status_code, b"") == (200, b"")
        assert head.headers["content-type"] == whole.headers["content-type"]
    for path in ("/framework", "/framework/openapi.json", "/framework/swagger"):
        assert host.get(path).status_code == 404
    refused = host.options(LEARN)
    assert refused.status_code == 405 and refused.headers["allow"] == "POST"


def test_the_front_page_lists_the_models(host: Host) -> None:
    page = host.get("/")
    assert page.status_code == 200 and page.headers["content-type"].startswith("text/html")
    assert "/pages/index.js" in page.text and 'fetch("/v1/models"' in host.get("/pages/index.js").text
