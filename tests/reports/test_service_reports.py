"""Faults that others reported of services, and of commands that write predictions."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.serve.conftest import LINEAR, Host, hosting, ready, row

from credo.cli.main import main

LEARN, PREDICT = "/v1/models/linear/learn", "/v1/models/linear/predict"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A service with a linear model, a fresh one, and a bandit; the first has learned 10 rows."""
    with hosting(tmp_path_factory.mktemp("reports")) as client:
        assert client.put("/v1/models/linear", json=LINEAR).status_code == 202
        assert client.put("/v1/models/fresh", json=LINEAR).status_code == 202
        ready(client)
        for number in range(10):
            assert client.post(LEARN, json=row(number)).status_code == 200
        yield client


def seen(host: Host) -> int:
    """How many rows the model has learned."""
    state: dict[str, int] = host.get("/v1/models/linear").json()["state"]
    return state["rows"]


def strict(text: str) -> Any:
    """JSON, in which NaN and infinity are an error."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_no_answer_holds_a_number_that_json_has_not(host: Host) -> None:
    """fastapi/fastapi#459: an answer that holds NaN cannot be written as JSON, and becomes an error 500."""
    for path in ("/v1/models", "/v1/models/fresh", "/v1/models/linear", "/openapi.json"):
        assert isinstance(strict(host.get(path).text), dict)
    for name, cells in (("fresh", {}), ("fresh", row(3)["x"]), ("linear", {}), ("linear", {"a": 1e300})):
        answer = host.post(f"/v1/models/{name}/predict", json={"x": cells})
        forecast = strict(answer.text)["forecast"]
        assert answer.status_code == 200 and forecast["sd"] > 0 and isinstance(forecast["mean"], float)


@pytest.mark.parametrize(
    "body", [b'{"x": {"c": "\xff\xfe"}}', b"\x80\x81\x82\xff", b'{"x": {"c": "\\ud800"}}']
)
def test_a_body_that_is_no_text_is_refused_as_a_mistake_of_the_caller(host: Host, body: bytes) -> None:
    """debpalash/VoiceStudio#1513: a binary body fails in the handler of errors, and becomes an error 500."""
    for path in (PREDICT, LEARN, f"{LEARN}:batch"):
        answer = host.post(path, content=body)
        assert answer.status_code == 400 and strict(answer.text)["detail"].endswith(".")
    assert seen(host) == 10


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ('{"id": "t", "x": {"a": 1, "a": 2}, "y": 1}', "a"),
        ('{"id": "t", "id": "u", "x": {"a": 1}, "y": 1}', "id"),
        ('{"id": "t", "x": {"a": 1, "c": "u"}, "y" : 1, "y" : -1}', "y"),
    ],
)
def test_a_key_that_comes_twice_in_a_body_is_refused(host: Host, body: str, key: str) -> None:
    """freedomofpress/securedrop-client#1752: a key that comes twice overwrites the first one in silence."""
    for path, text in ((LEARN, body), (f"{LEARN}:batch", f"{body}\n")):
        answer = host.post(path, content=text)
        assert answer.status_code == 400
        assert f"the body must have each key once; it has the key '{key}' twice." in answer.json()["detail"]
    assert seen(host) == 10
    alike = json.dumps({"x": {"c": 'a":"c": :'}})  # a text may look like keys
    assert host.post(PREDICT, content=alike).status_code == 200


def test_callers_that_send_one_id_at_once_have_one_row_learned(host: Host) -> None:
    """fossasia/eventyay#602: nothing tests two callers that send the same request at the same time."""
    before, content = seen(host), {**row(700), "id": "once"}
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: host.post(LEARN, json=content), range(12)))
    assert {answer.status_code for answer in answers} == {200} and seen(host) == before + 1
    assert len({answer.json()["seq"] for answer in answers}) == 1
    assert sum("duplicate" in answer.json() for answer in answers) == 11


def test_an_id_that_comes_again_with_another_row_is_said_and_not_learned(host: Host) -> None:
    """ietf-wg-httpapi/idempotency#2: nothing says what becomes of a key that comes with another content."""
    first = {**row(701), "id": "kept"}
    assert host.post(LEARN, json=first).status_code == 200
    before = seen(host)
    again = host.post(LEARN, json={**first, "y": first["y"] + 1.0})
    assert again.status_code == 409 and "kept" in again.json()["detail"] and seen(host) == before
    assert host.post(LEARN, json=first).json()["duplicate"] is True


def test_each_row_has_its_prediction_by_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """VowpalWabbit/vowpal_wabbit#1441: predictions have fewer lines than the data, and nobody sees which."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{number % 7},{number % 5},{3 * (number % 7) - number % 5}" for number in range(120)]
    Path("t.csv").write_text("\n".join(["a,b,y", *rows]) + "\n")
    assert main(["learn", "t.csv", "--target", "y", "--model", "linear", "--out", "o", "-q"]) == 0
    Path("new.csv").write_text("a,b\n1,2\n\n3,text\n4\n5,1\n")
    capsys.readouterr()
    assert main(["predict", "o/belief.credo", "new.csv"]) == 0
    printed = capsys.readouterr()
    assert [one["row"] for one in csv.DictReader(io.StringIO(printed.out))] == ["2", "6"]
    assert "2 bad rows" in printed.err and "line 4" in printed.err
