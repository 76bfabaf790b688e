"""The service over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from litestar import Litestar, Request, Response, delete, get, post, put
from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.exceptions import HTTPException
from litestar.handlers import BaseRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.params import FromPath
from litestar.response import ServerSentEvent
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

import credo
from credo.serve.document import completed
from credo.serve.doors import BODY, FRAMEWORK, SECONDS, Doors, failed
from credo.serve.gate import JSON_BODIES, LINE_BODIES, SAVED, Gate, require_kind
from credo.serve.problems import Problem, Reply, encode
from credo.serve.requests import read_lines, read_object
from credo.serve.service import Service
from credo.serve.tokens import Tokens

__all__ = ["BATCH_BODY", "build_app"]


class _Collector:
    """The numbers of a service, read when they are asked for."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def collect(self) -> Iterator[Metric]:
        service = self.service
        one = {
            "credo_journal_lines": ("Lines that were written.", service.writer.lines),
            "credo_journal_transactions": ("Transactions that were written.", service.writer.transactions),
            "credo_requests_refused": ("Requests that were refused.", service.refused),
        }
        for name, (words, value) in one.items():
            yield CounterMetricFamily(name, words, value=value)
        yield GaugeMetricFamily(
            "credo_waiting_lines", "Lines that wait to be written.", value=service.writer.waiting
        )
        yield GaugeMetricFamily(
            "credo_waiting_items", "Items that wait to be learned.", value=service.learner.waiting
        )
        failing = bool(service.writer.failure or service.snapshots.failure)
        yield GaugeMetricFamily("credo_disk_failing", "Whether the latest write failed.", value=failing)
        learned = CounterMetricFamily(
            "credo_lines_taken", "Lines that a model took.", labels=["model", "kind"]
        )
        ready = GaugeMetricFamily("credo_model_ready", "Whether a model answers.", labels=["model"])
        seq = GaugeMetricFamily("credo_model_line", "The last line that it took.", labels=["model"])
        for hosted in list(service.hosts.values()):
            for kind, count in (("learn", hosted.taken - hosted.decided), ("bandit", hosted.decided)):
                learned.add_metric([hosted.name, kind], count)
            learned.add_metric([hosted.name, "predict"], hosted.forecasts)
            ready.add_metric([hosted.name], hosted.stage == "ready")
            seq.add_metric([hosted.name], hosted.applied)
        yield from (learned, ready, seq)


def metrics(service: Service) -> bytes:
    """The metrics in the text format of Prometheus."""
    registry = CollectorRegistry()
    registry.register(_Collector(service))
    return generate_latest(registry)


BATCH_BODY = 1 << 24
"""The longest body of a batch, in bytes."""

PAGES = Path(__file__).parent / "pages"
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css"}
TYPES |= {".svg": "image/svg+xml"}
SAFE = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
PLAIN = "text/plain; charset=utf-8"
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


async def _body(request: Asked, kinds: tuple[str, ...]) -> bytes:
    """The body, which must be of one of some kinds."""
    require_kind(request.scope["headers"], kinds)
    try:
        async with asyncio.timeout(SECONDS):
            return await request.body()
    except TimeoutError:
        raise Problem(408, f"the body must come within {SECONDS:g} seconds.") from None


async def _within(answer: Awaitable[Reply]) -> Response[bytes]:
    try:
        async with asyncio.timeout(SECONDS):
            return _send(await answer)
    except TimeoutError:
        sentence = f"there was no answer within {SECONDS:g} seconds; ask again with the same id."
        raise Problem(504, sentence) from None


@get("/livez")
async def live(request: Asked) -> Response[bytes]:
    """Whether the process answers, and none of its threads has ended."""
    failure = _service(request).failure
    return _send(Reply(503, failure.encode(), PLAIN) if failure else Reply(200, b"ok", PLAIN))


@get("/readyz")
async def ready(request: Asked) -> Response[bytes]:
    """Whether every model that has its rows answers."""
    return _send(Reply(200, b'{"ready":true}') if _service(request).ready else Reply(503, b'{"ready":false}'))


@get("/metrics", guards=READ)
async def measured(request: Asked) -> Response[bytes]:
    """Metrics for Prometheus."""
    # the framework adds the charset
    return Response(metrics(_service(request)), media_type="text/plain; version=0.0.4")


@get("/v1/models", guards=READ)
async def listing(request: Asked) -> Response[bytes]:
    """All models."""
    return _send(_service(request).listing())


@put(MODEL, guards=ADMIN, request_max_body_size=BATCH_BODY)
async def add(name: FromPath[str], request: Asked) -> Response[bytes]:
    """Add a model, by its specification or from a saved session."""
    body = await _body(request, (*JSON_BODIES, SAVED))
    if request.headers.get("content-type") == SAVED:
        return await _within(_service(request).put_saved(name, body))
    return await _within(_service(request).put(name, read_object(body)))


@get(MODEL, guards=READ)
async def look(name: FromPath[str], request: Asked) -> Response[bytes]:
    """A model, its scores and its notes."""
    return await _within(_service(request).view(name))


@delete(MODEL, guards=ADMIN, status_code=200)
async def remove(name: FromPath[str], request: Asked) -> Response[bytes]:
    """Remove a model and all that it has learned."""
    return await _within(_service(request).remove(name))


@put(f"{MODEL}/challenger", guards=ADMIN)
async def challenge(name: FromPath[str], request: Asked) -> Response[bytes]:
    """Let another model learn every row beside it."""
    return await _within(_service(request).challenge(name, read_object(await _body(request, JSON_BODIES))))


@delete(f"{MODEL}/challenger", guards=ADMIN, status_code=200)
async def withdraw(name: FromPath[str], request: Asked) -> Response[bytes]:
    """Remove the challenger."""
    return await _within(_service(request).withdraw(name))


@post(f"{MODEL}/promote", guards=ADMIN, status_code=200)
async def promote(name: FromPath[str], request: Asked) -> Response[bytes]:
    """Let the challenger take the place of the model."""
    return await _within(_service(request).promote(name))


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


def _many(kind: str, guards: list[Guard], words: str) -> Any:
    """The handler of a batch, whose lines are read in a thread, so that others need not wait."""

    async def handle(name: FromPath[str], request: Asked) -> Response[bytes]:
        rows = await asyncio.to_thread(read_lines, await _body(request, LINE_BODIES))
        if kind == "predict" and any(row.get("id") is not None for row in rows):
            request.app.state["tokens"].require(request.headers.get("authorization"), "keep")
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


def _refuse(request: Asked, error: Exception) -> Response[bytes]:
    _service(request).refused += 1
    if isinstance(error, HTTPException):
        error = Problem(error.status_code, _sentence(error))
    return _send(failed(error))


@get("/openapi.json", include_in_schema=False)
async def document(request: Asked) -> Response[bytes]:
    """What the service can do, in the form of OpenAPI 3.1."""
    return _send(Reply(200, encode(completed(request.app.openapi_schema.to_schema()))))


def _sentence(error: HTTPException) -> str:
    if error.status_code == 413:
        return f"a body must have at most {BODY:,} bytes, and a batch {BATCH_BODY:,}."
    if error.status_code == 404:
        return "there is nothing at this path."
    return f"{error.detail or 'the request is not allowed'}".rstrip(".") + "."


HANDLERS = [
    *(live, ready, measured, listing, add, look, remove, model_ready, events, document),
    *(challenge, withdraw, promote),
    _many("learn", LEARN, "Learn rows, one JSON object a line, in order."),
    _many("predict", READ, "Forecast rows, one JSON object a line, in order."),
    _page("/", "index.html"),
    _page("/pages/index.js", "index.js"),
    _page("/models/{name:str}", "view.html"),
    _page("/pages/view.js", "view.js"),
    _page("/pages/view.css", "view.css"),
    _page("/pages/icon.svg", "icon.svg"),
]


def build_app(
    service: Service,
    tokens: Tokens | None = None,
    stopping: Callable[[], bool] = lambda: False,
    names: Sequence[str] = (),
) -> Doors:
    """The application.

    Arguments:
        service: the models; it is started and stopped with the application.
        tokens: who may do what; by default anybody may do all.
        stopping: whether the server ends, so that streams of events must.
        names: the names under which it is reached, besides loopback addresses.
    """

    async def start() -> None:
        service.start()

    async def stop() -> None:
        await asyncio.to_thread(service.stop)

    known = tokens or Tokens()
    config = OpenAPIConfig(
        title="credo serve",
        version=credo.__version__,
        path=FRAMEWORK,
        render_plugins=[JsonRenderPlugin()],
    )
    app = Litestar(
        HANDLERS,
        state=State({"service": service, "tokens": known, "stopping": stopping}),
        on_startup=[start],
        on_shutdown=[stop],
        exception_handlers={Exception: _refuse},
        request_max_body_size=BODY,
        openapi_config=config,
        logging_config=None,
    )
    return Doors(app, service, known, Gate(names, closed=known.scopes is None))
