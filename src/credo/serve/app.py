"""The service over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

from litestar import Litestar, MediaType, Request, Response, delete, get, post, put
from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.exceptions import HTTPException
from litestar.handlers import BaseRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.params import FromPath
from litestar.response import ServerSentEvent

import credo
from credo.core.errors import CredoError
from credo.serve.problems import Problem, Reply, problem_reply
from credo.serve.requests import read_lines, read_object
from credo.serve.service import Service
from credo.serve.tokens import Tokens
from credo.serve.watching import metrics

__all__ = ["BATCH_BODY", "BODY", "SECONDS", "build_app"]

BODY, BATCH_BODY, SECONDS = 1 << 20, 1 << 24, 30.0
"""The longest body of a request and of a batch, in bytes, and how long either may take to come."""

PAGES = Path(__file__).parent / "pages"
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css"}
SAFE = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
MODEL = "/v1/models/{name:str}"

Asked: TypeAlias = Request[Any, Any, State]
Guard: TypeAlias = Callable[[ASGIConnection[Any, Any, Any, State], BaseRouteHandler], None]


def _service(request: Asked) -> Service:
    service: Service = request.app.state["service"]
    return service


def _may(scope: str) -> list[Guard]:
    def guard(connection: ASGIConnection[Any, Any, Any, State], _: BaseRouteHandler) -> None:
        tokens: Tokens = connection.app.state["tokens"]
        tokens.require(connection.headers.get("authorization"), scope)

    return [guard]


READ, LEARN, ADMIN = _may("read"), _may("learn"), _may("admin")


def _send(reply: Reply) -> Response[bytes]:
    headers = {"WWW-Authenticate": "Bearer"} if reply.status == 401 else None
    return Response(reply.body, status_code=reply.status, media_type=reply.kind, headers=headers)


async def _body(request: Asked) -> bytes:
    try:
        return await asyncio.wait_for(request.body(), SECONDS)
    except TimeoutError:
        raise Problem(408, f"the body must come within {SECONDS:g} seconds.") from None


async def _within(answer: Awaitable[Reply]) -> Response[bytes]:
    try:
        return _send(await asyncio.wait_for(answer, SECONDS))
    except TimeoutError:
        sentence = f"there was no answer within {SECONDS:g} seconds; ask again with the same id."
        raise Problem(504, sentence) from None


@get("/livez", media_type=MediaType.TEXT)
async def live() -> str:
    """Whether the process answers."""
    return "ok"


@get("/readyz")
async def ready(request: Asked) -> Response[bytes]:
    """Whether every model that has its rows answers."""
    return _send(Reply(200, b'{"ready":true}') if _service(request).ready else Reply(503, b'{"ready":false}'))


@get("/metrics", guards=READ)
async def measured(request: Asked) -> Response[bytes]:
    """Metrics for Prometheus."""
    return Response(metrics(_service(request)), media_type="text/plain; version=0.0.4; charset=utf-8")


@get("/v1/models", guards=READ)
async def listing(request: Asked) -> Response[bytes]:
    """All models."""
    return _send(_service(request).listing())


@put(MODEL, guards=ADMIN)
async def add(name: FromPath[str], request: Asked) -> Response[bytes]:
    """Add a model."""
    return await _within(_service(request).put(name, read_object(await _body(request))))


@get(MODEL, guards=READ)
async def look(name: FromPath[str], request: Asked) -> Response[bytes]:
    """A model, its scores and its notes."""
    return await _within(_service(request).view(name))


@delete(MODEL, guards=ADMIN, status_code=200)
async def remove(name: FromPath[str], request: Asked) -> Response[bytes]:
    """Remove a model and all that it has learned."""
    return await _within(_service(request).remove(name))


@get(f"{MODEL}/ready", guards=READ)
async def model_ready(name: FromPath[str], request: Asked) -> Response[bytes]:
    """Whether a model answers."""
    stage = _service(request).host(name).stage
    return _send(Reply(200 if stage == "ready" else 503, b'{"stage":"%s"}' % stage.encode()))


@get(f"{MODEL}/events", guards=READ)
async def events(name: FromPath[str], request: Asked) -> ServerSentEvent:
    """The state of a model, once a second, as server-sent events."""
    service, stopping = _service(request), request.app.state["stopping"]
    service.host(name)

    async def states() -> AsyncIterator[str]:
        while not stopping() and name in service.hosts:
            yield (await service.view(name)).body.decode()
            await asyncio.sleep(1.0)

    return ServerSentEvent(states())


def _one(kind: str, guards: list[Guard], words: str) -> Any:
    """The handler of one row."""

    async def handle(name: FromPath[str], request: Asked) -> Response[bytes]:
        content = read_object(await _body(request))
        return await _within(_service(request).submit(name, kind, [content], False))

    handle.__doc__, handle.__name__ = words, kind
    return post(f"{MODEL}/{kind}", guards=guards, status_code=200)(handle)


def _many(kind: str, guards: list[Guard], words: str) -> Any:
    """The handler of a batch, whose lines are read in a thread, so that others need not wait."""

    async def handle(name: FromPath[str], request: Asked) -> Response[bytes]:
        rows = await asyncio.to_thread(read_lines, await _body(request))
        return await _within(_service(request).submit(name, kind, rows, True))

    handle.__doc__, handle.__name__ = words, f"{kind}_batch"
    path = f"{MODEL}/{kind}:batch"
    return post(path, guards=guards, status_code=200, request_max_body_size=BATCH_BODY)(handle)


def _page(path: str, file: str) -> Any:
    """The handler of a file of the page of a model."""

    async def show() -> Response[bytes]:
        kind = TYPES[Path(file).suffix]
        return Response((PAGES / file).read_bytes(), media_type=kind, headers=SAFE)

    show.__doc__ = f"The file {file} of the page of a model."
    return get(path, include_in_schema=False)(show)


HANDLERS = [
    *(live, ready, measured, listing, add, look, remove, model_ready, events),
    _one("learn", LEARN, "Learn a row; the answer is its forecast before, and its score."),
    _one("predict", READ, "Forecast a row; with an id it is kept, and waits for its label."),
    _one("label", LEARN, "Learn what was observed of a row that was forecast."),
    _one("decide", LEARN, "Choose an arm."),
    _one("reward", LEARN, "Learn the reward of a decision."),
    _many("learn", LEARN, "Learn rows, one JSON object a line, in order."),
    _many("predict", READ, "Forecast rows, one JSON object a line, in order."),
    _page("/models/{name:str}", "view.html"),
    _page("/pages/view.js", "view.js"),
    _page("/pages/view.css", "view.css"),
]


def _refuse(request: Asked, error: Exception) -> Response[bytes]:
    _service(request).refused += 1
    if isinstance(error, HTTPException):
        error = Problem(error.status_code, _sentence(error))
    elif not isinstance(error, CredoError):
        error = Problem(500, "the service failed; this is a bug in credo, please report it.")
    return _send(problem_reply(error))


def _sentence(error: HTTPException) -> str:
    if error.status_code == 413:
        return f"a body must have at most {BODY:,} bytes, and a batch {BATCH_BODY:,}."
    if error.status_code == 404:
        return "there is nothing at this path."
    return f"{error.detail or 'the request is not allowed'}".rstrip(".") + "."


def build_app(
    service: Service, tokens: Tokens | None = None, stopping: Callable[[], bool] = lambda: False
) -> Litestar:
    """The application.

    Arguments:
        service: the models; it is started and stopped with the application.
        tokens: who may do what; by default anybody may do all.
        stopping: whether the server ends, so that streams of events must.
    """

    async def start() -> None:
        service.start()

    async def stop() -> None:
        await asyncio.to_thread(service.stop)

    document = OpenAPIConfig(
        title="credo serve",
        version=credo.__version__,
        path="/openapi",
        render_plugins=[JsonRenderPlugin()],
    )
    return Litestar(
        HANDLERS,
        state=State({"service": service, "tokens": tokens or Tokens(), "stopping": stopping}),
        on_startup=[start],
        on_shutdown=[stop],
        exception_handlers={Exception: _refuse},
        request_max_body_size=BODY,
        openapi_config=document,
        logging_config=None,
    )
