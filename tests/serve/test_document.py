"""Schemathesis makes requests of the OpenAPI document: none makes it fail, and all answers are as it says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from litestar.testing import TestClient
from tests.needed import needs
from tests.serve.conftest import LINEAR, Host, ready, row

from credo.serve.app import build_app
from credo.serve.service import Service

EXAMPLES = max(10, settings().max_examples // 20)
"""Requests of each operation: 10, and 25 with `HYPOTHESIS_PROFILE=thorough`."""

BANDIT = {"kind": "bandit", "arms": ["red", "blue"], "agent": "beta", "features": 0}
KEPT = ("p", "q", "d")
"""Ids that are known, and one that is not."""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A service whose streams of events end at once, with a table and a bandit; no more models are built."""
    service = Service(tmp_path_factory.mktemp("service"))
    with TestClient(build_app(service, stopping=lambda: True), base_url="http://127.0.0.1") as client:
        client.put("/v1/models/linear", json=LINEAR)
        client.put("/v1/models/shop", json=BANDIT)
        ready(client)
        service.builder.build = lambda *_, **__: None  # type: ignore[method-assign]
        for number in range(15):
            client.post("/v1/models/linear/learn", json=row(number))
        for id in ("p", "q"):
            client.post("/v1/models/linear/predict", json={"id": id, "x": row(1)["x"]})
        client.post("/v1/models/shop/decide", json={"id": "d"})
        client.service = service  # type: ignore[attr-defined]
        yield client


@cache
def checks() -> list[Any]:
    """What an answer must pass."""
    openapi = needs("schemathesis.specs.openapi.checks")
    return [
        needs("schemathesis.checks").not_a_server_error,
        openapi.status_code_conformance,
        openapi.content_type_conformance,
        openapi.response_schema_conformance,
    ]


def send(host: Host, operation: Any, case: Any, own: bool, id: str | None) -> None:
    """Send a request, by choice to a model that is there, and with an id that is known; check the answer."""
    kind = operation.path.rsplit("/")[-1]
    spoils = operation.method in ("put", "delete") and kind == "{name}"
    if own and "name" in case.path_parameters and not spoils:
        case.path_parameters["name"] = "shop" if kind in ("decide", "reward", "observe") else "linear"
    if id is not None and isinstance(case.body, dict):
        case.body["id"] = id
    given = case.as_transport_kwargs(base_url=str(host.base_url))
    names = ("method", "url", "headers", "params", "json", "content")
    data = {} if given.get("data") is None else {"content": given["data"]}
    wanted = {name: given[name] for name in names if name in given}
    answer = host.request(**wanted, **data)
    case.validate_response(needs("schemathesis").Response.from_any(answer), checks=checks())
    if kind in ("learn", "predict") and "json" in wanted:
        lines = "\n".join([json.dumps(wanted["json"])] * 2)
        assert host.post(f"{wanted['url']}:batch", content=lines.encode()).status_code < 500
    for name in ("linear", "shop"):
        hosted = host.service.hosts[name]
        assert hosted.stage == "ready", hosted.reason


def many(host: Host, operation: Any, mode: Any) -> None:
    """Send requests that are as the document asks, or are not."""

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(
        case=operation.as_strategy(mode),
        own=st.sampled_from([True, True, True, False]),
        id=st.sampled_from([None, *KEPT]),
    )
    def one(case: Any, own: bool, id: str | None) -> None:
        send(host, operation, case, own, id)

    one()


def test_a_score_beyond_all_numbers_is_none(host: Host) -> None:
    """The square of a distance that floats hold is one that they do not."""
    host.post("/v1/models/linear/predict", json={"id": "far", "x": row(2)["x"]})
    answer = host.post("/v1/models/linear/label", json={"id": "far", "y": -3e306})
    assert answer.json()["forecast"]["sd"] and answer.json()["nlpd"] is None
    assert host.service.hosts["linear"].stage == "ready"


@pytest.mark.slow
def test_no_request_of_the_document_makes_it_fail(host: Host) -> None:
    schemathesis, result = needs("schemathesis"), needs("schemathesis.core.result")
    schemathesis.serializer("application/x-ndjson")(as_lines)
    schema = schemathesis.openapi.from_dict(host.get("/openapi.json").json())
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, result.Ok)]
    assert len(operations) == 20
    for operation in operations:
        many(host, operation, schemathesis.GenerationMode.POSITIVE)
        if operation.body or operation.path_parameters:
            many(host, operation, schemathesis.GenerationMode.NEGATIVE)
    assert all(thread.is_alive() for thread in host.service._threads)


def as_lines(context: Any, value: Any) -> bytes:
    """A batch as it is sent."""
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else json.dumps(value).encode()
