"""Whatever is sent, the service says what is wrong: it never fails."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings
from tests.serve.conftest import Host

from credo.serve.app import completed

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
CELLS = st.dictionaries(st.sampled_from(["a", "b", "c", "y", "new", ""]), JSON, max_size=4)
ROWS = st.fixed_dictionaries(
    {},
    optional={"id": st.text(max_size=5) | JSON, "x": CELLS | JSON, "y": JSON, "context": JSON, "value": JSON},
)
ROUTES = ("learn", "predict", "label", "decide", "reward", "learn:batch", "predict:batch")
SPECS = st.fixed_dictionaries(
    {},
    optional={"target": JSON, "kind": st.sampled_from(["bandit", "table"]) | JSON, "columns": JSON}
    | {"arms": JSON, "options": JSON, "levels": JSON, "first": JSON, "classes": JSON, "drop": JSON},
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(route=st.sampled_from(ROUTES), content=ROWS | JSON, raw=st.none() | st.binary(max_size=30))
def test_no_row_makes_it_fail(host: Host, route: str, content: Any, raw: bytes | None) -> None:
    body = json.dumps(content).encode() if raw is None else raw
    answer = host.post(f"/v1/models/linear/{route}", content=body)
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        problem = answer.json()
        assert problem["status"] == answer.status_code and problem["detail"].endswith((".", "?"))
    assert host.service.hosts["linear"].stage == "ready"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=SPECS | JSON)
def test_no_specification_makes_it_fail(host: Host, content: Any) -> None:
    answer = host.put("/v1/models/other", content=json.dumps(content).encode())
    assert answer.status_code < 500, answer.text
    if answer.status_code in (200, 202):
        assert host.delete("/v1/models/other").status_code == 204


def test_the_document_names_every_route_and_its_body(host: Host) -> None:
    document = host.get("/openapi.json").json()
    assert document == completed(document)
    for route in ROUTES:
        operation = document["paths"][f"/v1/models/{{name}}/{route}"]["post"]
        (content,) = operation["requestBody"]["content"].values()
        assert content["schema"] and {"200", "401", "422", "429", "507"} <= set(operation["responses"])
    learn = document["components"]["schemas"]["Learn"]
    assert set(learn["required"]) == {"id", "x", "y"} and set(learn["properties"]) == {
        *learn["required"],
        "weight",
        "time",
    }
    assert pytest.approx(3.1, abs=0.01) == float(document["openapi"][:3])
