"""The routes that rows take, as plain ASGI: of a request the framework would take twice what learning takes.

All other routes, and what comes in a form that these do not know, go on to the application behind.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

from credo.core.errors import CredoError
from credo.serve.gate import JSON_BODIES, Gate, require_kind
from credo.serve.problems import FAILED, Problem, Reply, problem_reply
from credo.serve.requests import read_object
from credo.serve.service import Service
from credo.serve.tokens import Tokens

__all__ = ["BODY", "FRAMEWORK", "ROUTES", "SECONDS", "Doors", "failed"]

BODY, SECONDS = 1 << 20, 30.0
"""The longest body of a request, in bytes, and how long it and its answer may take."""

ROUTES = {"learn": "learn", "predict": "read", "label": "learn"}
ROUTES |= dict.fromkeys(("decide", "reward", "observe"), "learn")
"""What each route needs of a token."""

PATH = re.compile(rf"/v1/models/([^/]{{1,200}})/({'|'.join(ROUTES)})")

FRAMEWORK = "/framework"
"""Where the framework would show its own pages, which need no token, and load scripts of other hosts."""

App = Callable[[Any, Any, Any], Any]


def failed(error: Exception) -> Reply:
    """What is answered where a request fails."""
    if not isinstance(error, CredoError):
        error = Problem(500, FAILED)
    return problem_reply(error)


class Doors:
    """The application as a server calls it.

    Arguments:
        app: what has all other routes.
        service: the models.
        tokens: who may do what.
        gate: what a request must say of itself.
    """

    def __init__(self, app: App, service: Service, tokens: Tokens, gate: Gate) -> None:
        self.app, self.service, self.tokens, self.gate = app, service, tokens, gate

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            self.gate.require(scope["headers"], scope["method"])
        except Problem as problem:
            self.service.refused += 1
            await _send(problem_reply(problem), send)
            return
        route = PATH.fullmatch(scope["path"])
        if route is None:
            await self._hand_on(scope, receive, send)
            return
        if scope["method"] != "POST":
            refusal = problem_reply(Problem(405, "the method must be POST."))
            return await _send(refusal, send, [(b"allow", b"POST")])
        late = 408, f"the body must come within {SECONDS:g} seconds."
        try:
            self.service.callers.note(scope.get("client"))
            async with asyncio.timeout(SECONDS):
                self._require(scope, ROUTES[route[2]])
                require_kind(scope["headers"], JSON_BODIES)
                content = read_object(await _body(receive))
                if route[2] == "predict" and content.get("id") is not None:
                    self._require(scope, "keep")
                late = 504, f"no answer within {SECONDS:g} seconds; ask again with the same id."
                reply = await self.service.submit(route[1], route[2], [content], False)
        except TimeoutError:
            reply = problem_reply(Problem(*late))
        except Exception as error:
            reply = failed(error)
        if reply.status >= 400:
            self.service.refused += 1
        await _send(reply, send)

    async def _hand_on(self, scope: Any, receive: Any, send: Any) -> None:
        """Let the framework answer; HEAD as GET without the body, which it does not do by itself."""
        if scope["path"].startswith(FRAMEWORK):
            await _send(problem_reply(Problem(404, "there is nothing at this path.")), send)
            return
        if scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def send_head(message: Any) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self.app({**scope, "method": "GET"}, receive, send_head)

    def _require(self, scope: Any, right: str) -> None:
        if self.tokens.scopes is not None:
            header = next((value for key, value in scope["headers"] if key == b"authorization"), b"")
            self.tokens.require(header.decode("latin-1"), right)


async def _body(receive: Any) -> bytes:
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body"):
        parts, size = [body], len(body)
        while message.get("more_body") and size <= BODY:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Problem(400, "the body ended before its length.")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
        body = b"".join(parts)
    if len(body) > BODY:
        raise Problem(413, f"a body must have at most {BODY:,} bytes.")
    return body


async def _send(reply: Reply, send: Any, more: Sequence[tuple[bytes, bytes]] = ()) -> None:
    headers = [
        (b"content-type", reply.kind.encode()),
        (b"content-length", str(len(reply.body)).encode()),
        *more,
    ]
    if reply.status == HTTPStatus.UNAUTHORIZED:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": int(reply.status), "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})
