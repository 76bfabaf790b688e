"""The service over HTTP.

The routes that rows take, as plain ASGI: of a request the framework would take twice what learning takes.

All other routes, and what comes in a form that these do not know, go on to the application behind.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
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
from credo.core.errors import CredoError
from credo.serve.contents import KINDS
from credo.serve.gate import JSON_BODIES, LINE_BODIES, SAVED, Gate, require_kind
from credo.serve.problems import FAILED, JSON, LINES, PROBLEM, Problem, Reply, encode, problem_reply
from credo.serve.requests import read_lines, read_object
from credo.serve.service import Service
from credo.serve.specs import NAME, BanditSpec, TableSpec
from credo.serve.tokens import Tokens

__all__ = ["BATCH_BODY", "build_app", "completed"]


# The longest body of a request, in bytes, and how long it and its answer may take.
BODY = 1 << 20
SECONDS = 30.0

# The length of a body in bytes from which to read it takes as long as to answer several short ones, and the
# share of the event loop's time that may go to such bodies.
LONG = 1 << 14
SHARE = 0.25

LATE = {
    HTTPStatus.REQUEST_TIMEOUT: "the body must come within {:g} seconds.",
    HTTPStatus.GATEWAY_TIMEOUT: "no answer within {:g} seconds; ask again with the same id.",
}
"""The refusals of a body that took longer, and of an answer that did."""

ROUTES = {"learn": "learn", "predict": "read", "label": "learn"}
ROUTES |= dict.fromkeys(("decide", "reward", "observe"), "learn")
"""The scope that each route needs of a token."""

PATH = re.compile(rf"/v1/models/([^/]{{1,200}})/({'|'.join(ROUTES)})")

FRAMEWORK = "/framework"
"""The path of the framework's own pages, which would need no token and load scripts of other hosts."""

App = Callable[[Any, Any, Any], Any]


def failed(error: Exception) -> Reply:
    """The answer to a request that fails."""
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
        self.app = app
        self.service = service
        self.tokens = tokens
        self.gate = gate
        self._long = asyncio.Lock()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        try:
            self.gate.require(headers, scope["method"])
        except Problem as problem:
            self.service.refused += 1
            await _send_on(problem_reply(problem), send)
            return
        route = PATH.fullmatch(scope["path"])
        if route is None:
            await self._hand_on(scope, receive, send)
            return
        if scope["method"] != "POST":
            refusal = problem_reply(Problem(405, "the method must be POST."))
            return await _send_on(refusal, send, [(b"allow", b"POST")])
        name, kind = route.groups()
        late = HTTPStatus.REQUEST_TIMEOUT
        try:
            async with asyncio.timeout(SECONDS):
                if self.tokens.scopes is not None:
                    self._require(scope, ROUTES[kind])
                require_kind(headers, JSON_BODIES)
                content = await self._read_content(receive)
                if self.tokens.scopes is not None and kind == "predict" and content.get("id") is not None:
                    self._require(scope, "keep")
                late = HTTPStatus.GATEWAY_TIMEOUT
                reply = await self.service.submit(name, kind, [content], caller=scope.get("client"))
        except TimeoutError:
            reply = problem_reply(Problem(late, LATE[late].format(SECONDS)))
        except Exception as error:
            reply = failed(error)
        if reply.status >= 400:
            self.service.refused += 1
        await _send_on(reply, send)

    async def _read_content(self, receive: Any) -> dict[str, Any]:
        """The object of a body. Long ones are read one after the other, however many come, and take at most
        `SHARE` of the time: what others sent is answered in between.
        """
        body = await _read_body(receive)
        if len(body) <= LONG:
            return read_object(body)
        async with self._long:
            start = time.perf_counter()
            try:
                return read_object(body)
            finally:
                await asyncio.sleep((1 / SHARE - 1) * (time.perf_counter() - start))

    async def _hand_on(self, scope: Any, receive: Any, send: Any) -> None:
        """Hand a request to the framework; HEAD as GET without the body, which it does not do by itself."""
        if scope["path"].startswith(FRAMEWORK):
            await _send_on(problem_reply(Problem(404, "there is nothing at this path.")), send)
            return
        if scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def send_head(message: Any) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self.app({**scope, "method": "GET"}, receive, send_head)

    def _require(self, scope: Any, right: str) -> None:
        header = next((value for key, value in scope["headers"] if key == b"authorization"), b"")
        self.tokens.require(header.decode("latin-1"), right)


async def _read_body(receive: Any) -> bytes:
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body"):
        parts = [body]
        size = len(body)
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


async def _send_on(reply: Reply, send: Any, more: Sequence[tuple[bytes, bytes]] = ()) -> None:
    headers = [
        (b"content-type", reply.kind.encode()),
        (b"content-length", str(len(reply.body)).encode()),
        *more,
    ]
    if reply.status == HTTPStatus.UNAUTHORIZED:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": int(reply.status), "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


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
"""The paths that are answered with texts."""

_STAGES = ("/readyz", "/v1/models/{name}/ready")
"""The paths that are answered with 503, and no refusal, while something is built."""


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
    paths = document["paths"]
    model = "/v1/models/{name}"
    for path, operations in paths.items():
        for method, operation in operations.items():
            operation["responses"] = _of_framework(path, method)
    for kind, words in _WORDS.items():
        body = _body_of({"$ref": f"#/components/schemas/{KINDS[kind].__name__}"}, JSON)
        paths[f"{model}/{kind}"] = {
            "post": {"summary": words, "operationId": kind, "requestBody": body, "responses": _answers(JSON)}
        }
        batch = paths.get(f"{model}/{kind}:batch")
        if batch is not None:
            batch["post"] |= {
                "requestBody": _body_of({"type": "string"}, LINES),
                "responses": _answers(LINES),
            }
    specs = {"oneOf": [{"$ref": f"#/components/schemas/{one.__name__}"} for one in (TableSpec, BanditSpec)]}
    for path in (model, f"{model}/challenger"):
        paths[path]["put"]["requestBody"] = _body_of(specs, JSON)
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


def _body_of(schema: dict[str, Any], media: str) -> dict[str, Any]:
    return {"required": True, "content": {media: {"schema": schema}}}


def _answers(media: str) -> dict[str, Any]:
    schema = {"type": "object"} if media == JSON else {"type": "string"}
    done = {"content": {media: {"schema": schema}}}
    waits = {"description": "It is on the disk; the model is not there yet.", **done}
    refused = {"content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    refusals = {status: {"description": words, **refused} for status, words in _REFUSALS.items()}
    return {"200": {"description": "Done.", **done}, "202": waits, **refusals}


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


READ = _may("read")
LEARN = _may("learn")
ADMIN = _may("admin")


def _send(reply: Reply) -> Response[bytes]:
    headers = {"WWW-Authenticate": "Bearer"} if reply.status == 401 else None
    return Response(reply.body, status_code=reply.status, media_type=reply.kind, headers=headers)


async def _body(request: Asked, kinds: tuple[str, ...]) -> bytes:
    """The body, which must be of one of some kinds."""
    require_kind(dict(request.scope["headers"]), kinds)
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
    """Start a challenger: another model that learns every row beside it."""
    return await _within(_service(request).challenge(name, read_object(await _body(request, JSON_BODIES))))


@delete(f"{MODEL}/challenger", guards=ADMIN, status_code=200)
async def withdraw(name: FromPath[str], request: Asked) -> Response[bytes]:
    """Remove the challenger."""
    return await _within(_service(request).withdraw(name))


@post(f"{MODEL}/promote", guards=ADMIN, status_code=200)
async def promote(name: FromPath[str], request: Asked) -> Response[bytes]:
    """Replace the model by its challenger."""
    return await _within(_service(request).promote(name))


@get(f"{MODEL}/ready", guards=READ)
async def model_ready(name: FromPath[str], request: Asked) -> Response[bytes]:
    """Whether a model answers."""
    stage = _service(request).host(name).stage
    return _send(Reply(200 if stage == "ready" else 503, b'{"stage":"%s"}' % stage.encode()))


@get(f"{MODEL}/events", guards=READ)
async def events(name: FromPath[str], request: Asked) -> ServerSentEvent:
    """The state of a model, once a second, as server-sent events."""
    service = _service(request)
    stopping = request.app.state["stopping"]
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
        return await _within(_service(request).submit(name, kind, rows, many=True))

    handle.__doc__ = words
    handle.__name__ = f"{kind}_batch"
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
    """The description of the service, in the form of OpenAPI 3.1."""
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
