"""The answers of a service: a reply, or a refusal of one sentence."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec

from credo.core.errors import CredoError

__all__ = ["FAILED", "JSON", "LINES", "PROBLEM", "Problem", "Reply", "encode", "problem_reply"]

# The kinds of bodies: JSON, lines of JSON, and a refusal (RFC 9457).
JSON = "application/json"
LINES = "application/x-ndjson"
PROBLEM = "application/problem+json"

FAILED = "the service failed; this is a bug in credo, please report it."
"""The sentence about a failure that nobody thought of."""

encode = msgspec.json.Encoder().encode


class Problem(CredoError):
    """A request that is refused, and by which status."""

    def __init__(self, status: int, message: str, *, field: str | None = None) -> None:
        super().__init__(message, field=field)
        self.status = status


class Reply(NamedTuple):
    """An answer as HTTP sends it."""

    status: int
    body: bytes
    kind: str = JSON


def problem_reply(problem: CredoError) -> Reply:
    """A refusal in the form of RFC 9457, whose detail is the sentence."""
    status = problem.status if isinstance(problem, Problem) else HTTPStatus.UNPROCESSABLE_ENTITY
    content: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": int(status),
        "detail": str(problem),
    }
    if problem.field is not None:
        content["field"] = problem.field
    return Reply(status, encode(content), PROBLEM)
