"""The OpenAPI document: the paths that the framework knows, and what it does not: routes, bodies, answers."""

from __future__ import annotations

from typing import Any

import msgspec

from credo.serve.contents import KINDS
from credo.serve.problems import JSON, LINES, PROBLEM
from credo.serve.specs import NAME, BanditSpec, TableSpec

__all__ = ["completed"]

_WORDS = {
    "learn": "Learn a row; the answer is its forecast before, and its score.",
    "predict": "Forecast a row; with an id it is kept, and waits for its label.",
    "label": "Learn what was observed of a row that was forecast.",
    "decide": "Choose an arm.",
    "reward": "Learn the reward of a decision.",
    "observe": "Learn from a choice that was made elsewhere.",
}
_REFUSALS = {
    "400": "The body is no JSON object.",
    "401": "The token is missing or unknown.",
    "403": "The token has not the scope, or the request is of a page or a name of another place.",
    "404": "There is no such model or id.",
    "405": "The method is not one of this path.",
    "408": "The body did not come in time.",
    "409": "The id has come with other content.",
    "410": "The window of the id is over.",
    "413": "The body is too long.",
    "415": "The body does not say that it is of a kind that is taken, or is compressed.",
    "422": "A field is not what is allowed.",
    "429": "Too many lines wait.",
    "503": "The model is not ready.",
    "504": "There was no answer in time.",
    "507": "The disk is full.",
}
_TEXTS = {"/livez": "text/plain", "/metrics": "text/plain", "/v1/models/{name}/events": "text/event-stream"}
"""What is answered with texts."""

_STAGES = ("/readyz", "/v1/models/{name}/ready")
"""What is answered with 503, and no refusal, while something is built."""


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """The document with all routes, bodies and answers."""
    kinds = [*KINDS.values(), TableSpec, BanditSpec]
    _, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    for lines in KINDS.values():
        body = components[lines.__name__]
        body["additionalProperties"] = False
        body.setdefault("properties", {})["id"] = {
            "type": "string",
            "minLength": 1,
            "maxLength": 200,
            "description": "The id of the row, which makes it happen once: characters that can be printed.",
        }
        if lines is not KINDS["predict"]:
            body.setdefault("required", []).append("id")
    components["Problem"] = {
        "type": "object",
        "required": ["detail", "status", "title", "type"],
        "properties": {
            "detail": {"type": "string", "description": "A sentence with field, value and what is allowed."},
            "field": {"type": "string"},
            "status": {"type": "integer"},
            "title": {"type": "string"},
            "type": {"type": "string"},
        },
    }
    document.setdefault("components", {})["schemas"] = components
    document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    paths, model = document["paths"], "/v1/models/{name}"
    for path, operations in paths.items():
        for method, operation in operations.items():
            operation["responses"] = _of_framework(path, method)
    for kind, words in _WORDS.items():
        body = _body({"$ref": f"#/components/schemas/{KINDS[kind].__name__}"}, JSON)
        paths[f"{model}/{kind}"] = {
            "post": {"summary": words, "operationId": kind, "requestBody": body, "responses": _answers(JSON)}
        }
        batch = paths.get(f"{model}/{kind}:batch")
        if batch is not None:
            batch["post"] |= {"requestBody": _body({"type": "string"}, LINES), "responses": _answers(LINES)}
    specs = {"oneOf": [{"$ref": f"#/components/schemas/{one.__name__}"} for one in (TableSpec, BanditSpec)]}
    for path in (model, f"{model}/challenger"):
        paths[path]["put"]["requestBody"] = _body(specs, JSON)
    name = {"type": "string", "pattern": f"^{NAME.pattern}$"}
    for path, operations in paths.items():
        for operation in operations.values():
            if "{name}" in path:
                operation["parameters"] = [{"name": "name", "in": "path", "required": True, "schema": name}]
    return document


def _of_framework(path: str, method: str) -> dict[str, Any]:
    if path in _TEXTS:
        return _answers(_TEXTS[path])
    answers = _answers(JSON)
    if path in _STAGES:
        answers["503"] = {"description": "Not yet.", "content": answers["200"]["content"]}
    if method == "delete":
        answers["204"] = {"description": "It is gone."}
    return answers


def _body(schema: dict[str, Any], media: str) -> dict[str, Any]:
    return {"required": True, "content": {media: {"schema": schema}}}


def _answers(media: str) -> dict[str, Any]:
    schema = {"type": "object"} if media == JSON else {"type": "string"}
    done = {"content": {media: {"schema": schema}}}
    waits = {"description": "It is on the disk; the model is not there yet.", **done}
    refused = {"content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    refusals = {status: {"description": words, **refused} for status, words in _REFUSALS.items()}
    return {"200": {"description": "Done.", **done}, "202": waits, **refusals}
