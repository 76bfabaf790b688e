"""The OpenAPI document: what the framework knows, and the routes and bodies that it does not."""

from __future__ import annotations

from typing import Any

import msgspec

from credo.serve.contents import KINDS
from credo.serve.problems import JSON, LINES, PROBLEM
from credo.serve.specs import BanditSpec, TableSpec

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
    "403": "The token has not the scope.",
    "404": "There is no such model or id.",
    "409": "The id has come with other content.",
    "410": "The window of the id is over.",
    "413": "The body is too long.",
    "422": "A field is not what is allowed.",
    "429": "Too many lines wait.",
    "503": "The model is not ready.",
    "504": "There was no answer in time.",
    "507": "The disk is full.",
}


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """The document with all routes and bodies."""
    kinds = [*KINDS.values(), TableSpec, BanditSpec]
    _, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    for lines in KINDS.values():
        components[lines.__name__].setdefault("properties", {})["id"] = {
            "type": "string",
            "minLength": 1,
            "maxLength": 200,
            "description": "The id of the row, which makes it happen once.",
        }
        if lines is not KINDS["predict"]:
            components[lines.__name__].setdefault("required", []).append("id")
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
    document.setdefault("components", {}).setdefault("schemas", {}).update(components)
    model = "/v1/models/{name}"
    for kind, words in _WORDS.items():
        document["paths"][f"{model}/{kind}"] = {"post": _operation(kind, words, JSON)}
        batch = document["paths"].get(f"{model}/{kind}:batch")
        if batch is not None:
            batch["post"] |= {"requestBody": _body({"type": "string"}, LINES), "responses": _answers(LINES)}
    specs = {"oneOf": [{"$ref": f"#/components/schemas/{one.__name__}"} for one in (TableSpec, BanditSpec)]}
    for path in (model, f"{model}/challenger"):
        document["paths"][path]["put"] |= {"requestBody": _body(specs, JSON), "responses": _answers(JSON)}
    document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return document


def _operation(kind: str, words: str, media: str) -> dict[str, Any]:
    name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
    reference = {"$ref": f"#/components/schemas/{KINDS[kind].__name__}"}
    return {
        "summary": words,
        "operationId": kind,
        "parameters": [name],
        "requestBody": _body(reference, media),
        "responses": _answers(media),
    }


def _body(schema: dict[str, Any], media: str) -> dict[str, Any]:
    return {"required": True, "content": {media: {"schema": schema}}}


def _answers(media: str) -> dict[str, Any]:
    schema = {"type": "object"} if media == JSON else {"type": "string"}
    done = {"content": {media: {"schema": schema}}}
    waits = {"description": "It is on the disk; the model is not there yet.", **done}
    refused = {"content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    refusals = {status: {"description": words, **refused} for status, words in _REFUSALS.items()}
    return {"200": {"description": "Done.", **done}, "202": waits, **refusals}
